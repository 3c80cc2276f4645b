"""Arrays in, arrays out: numpy, scipy.special and numba; no labels, no input or output."""

from bayesfair.kernels.compiled import drop_stale

drop_stale()
