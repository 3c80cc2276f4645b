"""The paper's decision rules and others to compare them with.

A policy is a frozen set of parameters with pure functions on an explicit state: `start`,
`selection_probability` (exact given the known history) and `update`.
"""

from bayesfair.policies.base import Policy, State
from bayesfair.policies.calibrated import SDTS, CalibratedOracle, FairSDTS, SDTSMixture
from bayesfair.policies.classic import (
    UCB1,
    EpsilonGreedy,
    Greedy,
    RandomisedPlayTheWinner,
    Softmax,
    Thompson,
    Uniform,
)
from bayesfair.policies.duels import DuelState, FairSDDTS
from bayesfair.policies.fair_rivals import ChainedConfidence, FairnessOfExposure
from bayesfair.policies.features import LinUCB
from bayesfair.policies.registry import POLICIES, policy_from_name

__all__ = [
    "POLICIES",
    "SDTS",
    "UCB1",
    "CalibratedOracle",
    "ChainedConfidence",
    "DuelState",
    "EpsilonGreedy",
    "FairSDDTS",
    "FairSDTS",
    "FairnessOfExposure",
    "Greedy",
    "LinUCB",
    "Policy",
    "RandomisedPlayTheWinner",
    "SDTSMixture",
    "Softmax",
    "State",
    "Thompson",
    "Uniform",
    "policy_from_name",
]
