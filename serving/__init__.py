"""Everything after the push. Never imports TFX or Beam; TensorFlow only where a model is loaded."""
