"""Reward distributions of k arms at once, one family per file."""

from bayesfair.rewards.base import Rewards
from bayesfair.rewards.bernoulli import Bernoulli
from bayesfair.rewards.empirical import Empirical
from bayesfair.rewards.finite import Finite
from bayesfair.rewards.negative_binomial import NegativeBinomial
from bayesfair.rewards.normal import Normal
from bayesfair.rewards.poisson import Poisson
from bayesfair.rewards.student_t import StudentT

__all__ = [
    "Bernoulli",
    "Empirical",
    "Finite",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "Rewards",
    "StudentT",
]
