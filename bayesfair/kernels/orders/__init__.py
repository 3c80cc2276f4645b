"""Kernels of comparisons: likelihoods, orders, who is linked to whom, samplers of worths."""
