"""Audit whether a sequence of logged decisions was fair to its options, and how surely.

Smooth and calibrated fairness in bandits (Liu et al. 2017, arXiv:1707.01875) on PyMC and ArviZ.
Names load on first use; the list is in ``__init__.pyi``.
"""

import lazy_loader as _lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
