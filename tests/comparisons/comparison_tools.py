"""What the tests of published fits share."""

import numpy as np

from bayesfair.comparisons import Comparisons
from bayesfair.inference.comparisons import fit_comparisons


def mle(data, **options):
    return fit_comparisons(data, prior_sd=np.inf, seed=0, **options)["mode"].to_dataset()


def by_item(values):
    return {str(item): float(v) for item, v in zip(values["item"].values, values.values,
                                                   strict=True)}  # fmt: skip


def with_ghost(rankings, items):
    """Add an item with half a win and half a loss against each other one ("npseudo")."""
    ghost = [pair for item in items for pair in ([item, "(ghost)"], ["(ghost)", item])]
    return Comparisons.from_rankings(
        [*rankings, *ghost],
        partial="subset",
        weight=[1.0] * len(rankings) + [0.5] * len(ghost),
    )
