"""Reward families: one object each for law, conjugate prior and the check of rewards.

`FAMILIES` holds them by name. To add one, derive a class from `Family`, in one file of your own,
and `register` an object of it; from then on ``family="its name"`` goes to `bayesfair.audit`,
`bayesfair.fit`, `bayesfair.beliefs` and to the decision rules. What has to be written is what is
abstract there: which rewards it `holds`, what a reward `added` to the parameters of its prior, and
how these give the laws of the next reward (`predictive`), posterior `draws`, the laws at drawn
parameters (`truth`) and `best_mean`. Laws are any `bayesfair.rewards.Rewards`. The rest has
defaults, or is refused by name where it is asked for. A family is never chosen unasked; beliefs
are streamed by one compiled kernel, which adds what `added` says.

Examples
--------
Measurements whose noise has a known standard deviation of 1, with normal beliefs on their mean: in
the parameters (sum, weight), beliefs are Normal(sum / weight, 1 / weight).

>>> import numpy as np
>>> import bayesfair as bf
>>> from bayesfair.families import FAMILIES, Family, register
>>> class UnitNoise(Family):
...     name, model = "unit_noise", "unit_noise_independent"
...     parameters, default, free = ("sum", "weight"), (0.0, 0.1), ("sum",)
...     law, reads, allowed = "mean ~ Normal(sum / weight, 1 / weight), {}", ("mean",), "any number"
...     continuous = True
...     def holds(self, reward, support):
...         return np.isfinite(reward)
...     def added(self, coded):
...         return np.stack([coded, np.ones_like(coded)], axis=1)
...     def predictive(self, table, support, arms):
...         total, weight = table[..., 0], table[..., 1]
...         return bf.rewards.Normal(total / weight, np.sqrt(1 + 1 / weight), arms=arms)
...     def best_mean(self, table, support):
...         mean = bf.rewards.Normal(table[:, 0] / table[:, 1], table[:, 1] ** -0.5)
...         return mean.best_arm_probability()
...     def draws(self, table, shape, rng):
...         z = rng.standard_normal((*shape, len(table)))
...         return {"mean": table[:, 0] / table[:, 1] + z * table[:, 1] ** -0.5}
...     def truth(self, reads, arms, level):
...         return bf.rewards.Normal(reads["mean"], 1.0, arms=arms)
>>> register(UnitNoise())
>>> log = bf.History(["a", "b", "a"], [1.2, 0.1, 0.9], selection_probability=[[0.5, 0.5]] * 3)
>>> audit = bf.audit(log, family="unit_noise", seed=1)
>>> audit.prior
'mean ~ Normal(sum / weight, 1 / weight), 0, 0.1, every arm, independent'
>>> del FAMILIES["unit_noise"]
"""

from bayesfair.base.checks import check_choice
from bayesfair.errors import OptionError
from bayesfair.families.base import Family, Known, Tail
from bayesfair.families.bernoulli import BernoulliFamily
from bayesfair.families.finite import FiniteFamily
from bayesfair.families.normal import NormalFamily
from bayesfair.families.poisson import PoissonFamily

__all__ = ["FAMILIES", "Family", "Known", "Tail", "family_named", "may_have_levels", "register"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (BernoulliFamily(), FiniteFamily(), PoissonFamily(), NormalFamily())
}
"""The families by name, in the order in which messages name them."""


def register(family: Family) -> None:
    """Let a family of your own be asked for by its name.

    Raises
    ------
    OptionError
        If it is no family, does not say what it must, or its name or model is taken.
    """
    if not isinstance(family, Family):
        raise OptionError(
            f"family={family!r} must be an object of a class derived from "
            "bayesfair.families.Family (give the object, not the class).",
            kind="wrong_kind",
            column="family",
        )
    needed = ("name", "model", "parameters", "default", "law", "reads", "allowed")
    missing = [field for field in needed if not hasattr(family, field)]
    if missing:
        raise OptionError(
            f"{type(family).__name__} does not say its {missing[0]!r}: every family says "
            f"{', '.join(needed)}.",
            kind="family_lacks",
            column="family",
            value=missing[0],
        )
    if len(family.default) != len(family.parameters):
        raise OptionError(
            f"family {family.name!r} has {len(family.parameters)} parameters and "
            f"{len(family.default)} default values.",
            kind="option_value",
            column="family",
        )
    for other in FAMILIES.values():
        if family.name in ("auto", other.name) or family.model == other.model:
            raise OptionError(
                f"the name of family {family.name!r} or of its model {family.model!r} is taken; "
                f"known families: {', '.join(FAMILIES)}.",
                kind="name_taken",
                column="family",
                value=family.name,
            )
    FAMILIES[family.name] = family


def may_have_levels(name: str) -> bool:
    """Return whether a log that is asked for by this name may need the values of all rewards."""
    return name == "auto" or (name in FAMILIES and FAMILIES[name].has_levels)


def family_named(name: str, option: str = "family") -> Family:
    """Return the family of this name.

    Raises
    ------
    OptionError
        Naming the known ones.
    """
    return FAMILIES[check_choice(name, option, tuple(FAMILIES))]
