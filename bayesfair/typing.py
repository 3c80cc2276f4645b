"""Names for types that many signatures share: arrays, places in messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flags", "Floats", "Ints", "Where"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Where = Callable[[int], str]
