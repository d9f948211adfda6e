"""The image recipe: a classifier of photos into a tree of classes."""

# Importing this first settles which Keras every module of the recipe gets, whatever it imports afterwards.
from pipeline.training import legacy_keras as legacy_keras
