"""Resolves what a run is compared with: the newest blessed model, the newest accepted statistics."""
