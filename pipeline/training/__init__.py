"""What a `run_fn` calls: which Keras, how many steps, how records reach the model, how a model is exported."""
