"""Kernels that pass over a log: beliefs, decisions, pairs and checks of every round."""
