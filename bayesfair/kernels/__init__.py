"""Arrays in, arrays out: numpy, scipy.special and numba; no labels, no input or output."""
