"""Kernels that run a decision rule and log its exact probabilities."""
