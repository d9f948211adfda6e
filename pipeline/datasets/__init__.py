"""Public sets of data that recipes are shown with, and how they are fetched."""
