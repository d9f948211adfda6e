"""One file a stage: what it reads, what decides whether it can be reused, and how its node is built."""
