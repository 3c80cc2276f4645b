"""Densities of PyMC models at points in the terms of the model, without compiling anything."""

from __future__ import annotations

import numpy as np

__all__ = ["log_density"]


def log_density(model, points):
    """Return the log density of each ``{variable: value}``, ``(n,)``, jacobians left out."""
    import pytensor.tensor as pt
    from pytensor.compile.mode import Mode

    plain = Mode(linker="py", optimizer=None)
    density = model.compile_logp(jacobian=False, mode=plain)
    found = []
    for point in points:
        sampled = {
            model.rvs_to_values[rv].name: np.asarray(point[rv.name], dtype=float)
            if (transform := model.rvs_to_transforms[rv]) is None
            else transform.forward(pt.as_tensor(point[rv.name]), *rv.owner.inputs).eval(mode=plain)
            for rv in model.free_RVs
        }
        found.append(float(density(sampled)))
    return np.array(found)
