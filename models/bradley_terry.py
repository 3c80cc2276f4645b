r"""Duels without ties: the odds that one item beats another are the ratio of their worths.

    log_worth_i ~ Normal(0, prior_sd), then centred          i = 1..k     dims ("item",)
    order_effect ~ Normal(0, order_sd)            advantage of being shown first, log-odds
    gap_c = log_worth_left(c) - log_worth_right(c) + first_c order_effect     dims ("cell",)
    w_c ~ Binomial(n_c, 1 / (1 + exp(-gap_c)))                                dims ("cell",)

With item covariates x (dims ("item", "covariate")):

    coefficient_j ~ Normal(0, coefficient_sd / sd(x_j))                       dims ("covariate",)
    deviation_i ~ Normal(0, prior_sd), then centred                           dims ("item",)
    log_worth_i = sum_j coefficient_j (x_ij - mean_j) + deviation_i

A cell is one pair in one presentation; first_c is 1, -1 or 0: left, right or neither shown first.

Prior rationale. Independent normal log-worths, centred, are a ZeroSumNormal; only gaps enter the
likelihood, so centring loses nothing. With prior_sd = 1 a gap has sd 1.41: P(i beats j) is in
(0.059, 0.941) with probability 95 %. order_sd = 1 keeps the chance of the one shown first, items
alike, within (0.12, 0.88). A covariate moves log-worth by a standard normal amount per standard
deviation of its own.

Contract. Observed: wins per cell, sufficient, so cost does not grow with the number of duels
(half wins from ``ties="half"`` enter through their log-likelihood). Read downstream: ``log_worth``.
Use for duels that always have a winner; with ties use davidson. Assumes that duels are independent
given the worths and that worths stay the same throughout; cycles (a > b > c > a) it cannot express.

References: Bradley and Terry (1952), Biometrika 39, 324-345; Davidson and Beaver (1977), Biometrics
33, 693-702 (order effect); Agresti (2013), Categorical Data Analysis, 3rd ed., section 11.6.
"""

import numpy as np
import pymc as pm

from bayesfair.comparisons import Comparisons

READS = ("log_worth",)
PRIOR = (
    "log_worth ~ Normal(0, {prior_sd:g}) each, centred; order_effect ~ Normal(0, {order_sd:g}); "
    "coefficients ~ Normal(0, {coefficient_sd:g}) per standard deviation"
)


def build(
    comparisons: Comparisons,
    *,
    prior_sd: float = 1.0,
    order_effect: bool | None = None,
    order_sd: float = 1.0,
    coefficient_sd: float = 1.0,
    ties: str = "refuse",
) -> pm.Model:
    """Return the unsampled model; ``order_effect`` None: if the data say who was shown first."""
    ordered = bool(comparisons.first.any()) if order_effect is None else order_effect
    cells = comparisons.duel_counts(ties=ties, by_first=ordered)
    names = [
        f"{comparisons.items[i]} | {comparisons.items[j]}"
        for i, j in zip(cells.left, cells.right, strict=True)
    ]
    x, scale = comparisons.standard_covariates()
    coords = {"item": comparisons.items, "covariate": comparisons.covariate_names, "cell": names}
    with pm.Model(coords=coords) as model:
        if len(scale):
            deviation = pm.ZeroSumNormal("deviation", sigma=prior_sd, dims="item")
            slope = pm.Normal("coefficient", 0, coefficient_sd / scale, dims="covariate")
            worths = deviation + pm.math.dot(x * scale, slope)
            log_worth = pm.Deterministic("log_worth", worths, dims="item")
        else:
            log_worth = pm.ZeroSumNormal("log_worth", sigma=prior_sd, dims="item")
        pm.Deterministic("worth", pm.math.softmax(log_worth), dims="item")
        gap = log_worth[cells.left] - log_worth[cells.right]
        if ordered:
            gap = gap + pm.Normal("order_effect", 0, order_sd) * cells.first
        won = pm.Data("wins_left", cells.wins_left, dims="cell")
        total = pm.Data("duels", cells.total, dims="cell")
        if np.array_equal(cells.wins_left, np.round(cells.wins_left)):
            pm.Binomial("wins", n=total, logit_p=gap, observed=won, dims="cell")
        else:
            pm.Potential("wins", (won * gap - total * pm.math.log1pexp(gap)).sum())
    return model
