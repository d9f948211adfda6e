"""TFX nodes that TFX lacks, one folder each. They never import one another: artifacts are their interface."""
