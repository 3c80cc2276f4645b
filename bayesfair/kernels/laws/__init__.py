"""Reward laws and which arm is best under them: exact probabilities, divergences, quadrature."""
