r"""Duels decided by normal noise: Thurstone's case V, the probit twin of Bradley-Terry.

    log_worth_i ~ Normal(0, prior_sd), then centred          i = 1..k     dims ("item",)
    order_effect ~ Normal(0, order_sd)            advantage of being shown first, probit units
    gap_c = log_worth_left(c) - log_worth_right(c) + first_c order_effect     dims ("cell",)
    P(left) = Phi(gap_c)                                                      dims ("cell",)

Each item shows a performance Normal(log_worth_i, variance 1/2), independent from duel to duel, and
the higher one wins. ``log_worth`` takes the place it has in the other models, but in probit units,
about 1 / 1.6 of their log-odds. ``worth`` of a fit is the probability of the best performance.

Prior rationale. With prior_sd = 1 a gap has sd 1.41: P(i beats j) is in (0.0028, 0.9972) with
probability 95 %, wider than in bradley_terry at the same prior_sd; 0.6 gives about the same prior.

Contract. Observed: wins per cell (one pair in one presentation), sufficient, through their
log-likelihood (its tails are computed as log Phi). Read downstream: ``log_worth``. Use where noise
adds up from many small causes, or to see whether conclusions depend on the link; tails are lighter
than the logistic ones, so that upsets weigh more.

References: Thurstone (1927), Psychological Review 34, 273-286; Mosteller (1951), Psychometrika 16.
"""

import pymc as pm

from bayesfair.comparisons import Comparisons

READS = ("log_worth",)
PRIOR = (
    "log_worth ~ Normal(0, {prior_sd:g}) each, centred, in probit units; order_effect ~ "
    "Normal(0, {order_sd:g}); coefficients ~ Normal(0, {coefficient_sd:g}) per standard deviation"
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
        gap = log_worth[cells.left] - log_worth[cells.right]
        if ordered:
            gap = gap + pm.Normal("order_effect", 0, order_sd) * cells.first
        won = pm.Data("wins_left", cells.wins_left, dims="cell")
        lost = pm.Data("wins_right", cells.wins_right, dims="cell")
        normal = pm.Normal.dist(0, 1)
        log_p = won * pm.logcdf(normal, gap) + lost * pm.logcdf(normal, -gap)
        pm.Potential("wins", log_p.sum())
    return model
