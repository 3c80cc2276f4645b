"""Reward families: conjugate priors, sufficient statistics, and rewards far outside a prior."""
