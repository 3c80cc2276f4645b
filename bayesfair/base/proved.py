"""What is proved of the rule that selects with P*, by pair of divergences, in words."""

from __future__ import annotations

__all__ = ["CHI2", "PROVED", "WASSERSTEIN"]

# of the rewards TV <= sqrt(KL/2), sqrt(2 JS), sqrt(chi2)/2, sqrt(2) H; of decisions JS <= ln 2 TV
_MEETS = "Proved: with independent arms the rule that selects with P* meets eps1 = {}, eps2 = 0 "
_SQUARE = (
    "Total variation of decisions with another divergence D of rewards: total variation of the "
    "rewards is at most {0}, so |pi_i - pi_j| <= 2 {0} for the rule that selects with P*; near "
    "equal arms D falls like the square of the difference, so no constant eps1 is enough."
)
WASSERSTEIN = (
    "No constant eps1 is enough under Wasserstein in general (counterexample: point masses at 1 "
    "and 1 - h), and eps1 carries the reward's unit. With Bernoulli rewards Wasserstein is total "
    "variation."
)
CHI2 = "No guarantee under chi2: with P* a counterexample exceeds eps1 = 2 (supremum there 9/4)."
PROVED = {
    ("total_variation", "total_variation"): _MEETS.format(2)
    + "under total variation (eps1 = 1 for Bernoulli rewards).",
    ("total_variation", "hellinger"): _MEETS.format("2 sqrt(2)")
    + "with total variation of decisions and Hellinger distance of rewards.",
    ("jensen_shannon", "total_variation"): _MEETS.format("2 ln 2")
    + "with Jensen-Shannon divergence of decisions and total variation of rewards.",
    ("total_variation", "kl"): _SQUARE.format("sqrt(D/2)"),
    ("total_variation", "jensen_shannon"): _SQUARE.format("sqrt(2 D)"),
    ("total_variation", "chi2"): _SQUARE.format("sqrt(D)/2"),
}
