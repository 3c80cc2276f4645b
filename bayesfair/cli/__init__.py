"""The command line; the only place that prints. Nothing is imported here: see `__main__`."""
