"""The tabular recipe: a wide-and-deep binary classifier over the columns that the settings name."""

# Importing this first settles which Keras every module of the recipe gets, whatever it imports afterwards.
from pipeline.training import legacy_keras as legacy_keras
