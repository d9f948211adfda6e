"""The user code that TFX nodes call by dotted path: one package a recipe, the same files in each."""
