"""Evaluator: metrics of a model on held-out examples, by slice, and the verdict on them."""
