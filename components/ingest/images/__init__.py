"""Ingestion of photos: a tree of class folders, or a manifest, becomes splits of tf.Example records."""
