"""Classifiers of many classes, each with a parent: what they answer, joined by name, and how good it is."""
