"""What every room may use: settings, errors, gates, manifests, files. No TensorFlow, no TFX."""
