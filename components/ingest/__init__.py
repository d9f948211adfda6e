"""Ingestion of tables: CSV, Parquet and TFRecord files become splits of tf.Example records."""
