"""bayesfair.examples."""
