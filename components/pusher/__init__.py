"""Pusher: a blessed model becomes a version that servers may load."""
