"""bayesfair.readers."""
