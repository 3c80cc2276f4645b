"""PyMC model definitions: one file, one model, one ``build(...)`` that returns it unsampled.

`check` holds a model of your own against what audits and fits rely on; `with_groups` gives a fit
the groups that ArviZ reads.
"""

from bayesfair.inference.groups import with_groups
from bayesfair.inference.model_check import ModelCheck, check

__all__ = ["ModelCheck", "check", "with_groups"]
