"""How well a fit to comparisons describes them and what its top hangs on, in words."""

from __future__ import annotations

import math
from typing import Any

from bayesfair.base.shown import shortened
from bayesfair.errors import BayesfairError
from bayesfair.inference.influence import influence
from bayesfair.ranking import pl_consistency

__all__ = ["check_sentences"]

_LONGEST = 120  # cells of a comparison in a sentence


def check_sentences(tree: Any, comparisons: Any, seed: int, hangs: Any = None) -> list[str]:
    """Return, in plain words, how well the model fits and how few comparisons its top hangs on.

    `hangs` is what `influence` returned, where it is known already.
    """
    sentences = []
    try:
        found = pl_consistency(tree, comparisons, seed=seed)
    except BayesfairError as reason:
        sentences.append(f"Check: whether one worth per item fits could not be judged: {reason}")
    else:
        p = float(found["p_value"])
        verdict = (
            "fits badly: the pairs contradict one worth per item" if p < 0.05 else "is not refuted"
        )
        sentences.append(
            f"Check: one worth per item {verdict}. Inconsistency "
            f"{float(found['inconsistency']):.3f}, {float(found['inconsistency_expected']):.3f} "
            f"expected under the model (p = {p:.3g}); {int(found['cycles'])} triples in a circle, "
            f"{float(found['cycles_expected']):.1f} expected."
        )
    try:
        hangs = influence(tree, comparisons) if hangs is None else hangs
    except BayesfairError as reason:
        return [*sentences, f"Check: no influence on the top could be computed: {reason}"]
    n, leader = float(hangs["flip_n"]), hangs.attrs["leader"]
    if math.isnan(n):
        return [
            *sentences,
            f"Check: no set of comparisons was found without which {leader!r} falls.",
        ]
    removed: dict[str, float] = {}  # the same duel on either side is one kind
    for name, count in zip(hangs["comparison"].values, hangs["flip_removed"].values, strict=True):
        if count:
            removed[str(name)] = removed.get(str(name), 0.0) + float(count)
    names = shortened(removed, _LONGEST)
    few = [f"{n:.12g} x {name}" for n, name in zip(removed.values(), names, strict=True)]
    more = f" and {len(few) - 4} more kinds" if len(few) > 4 else ""
    return [
        *sentences,
        f"Check: without {n:.12g} of {tree.attrs['n_comparisons']:.12g} comparisons "
        f"({100 * float(hangs['flip_share']):.2g} %) {hangs.attrs['flip_to']!r} would have the "
        f"highest worth instead of {leader!r}: {'; '.join(few[:4])}{more}.",
    ]
