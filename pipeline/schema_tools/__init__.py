"""The curated schema: proposed from data, reviewed as a difference, accepted by a person."""
