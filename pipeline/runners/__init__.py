"""Where the graph runs."""
