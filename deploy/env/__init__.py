"""Sets up `.venv` on a machine that has only python3: what `make env` runs, with the standard library alone."""
