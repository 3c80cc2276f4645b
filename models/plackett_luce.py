r"""Rankings and choices: at every stage an item is chosen in proportion to its worth.

    log_worth_i ~ Normal(0, prior_sd), then centred          i = 1..k     dims ("item",)
    worth_i = exp(log_worth_i) / sum_j exp(log_worth_j)                   dims ("item",)
    P(ranking) = prod over stages  worth_chosen / sum of worths still in the set

With item covariates x (dims ("item", "covariate")):

    coefficient_j ~ Normal(0, coefficient_sd / sd(x_j))                   dims ("covariate",)
    deviation_i ~ Normal(0, prior_sd), then centred                       dims ("item",)
    log_worth_i = sum_j coefficient_j (x_ij - mean_j) + deviation_i

Full rankings, rankings of a subset, top-k rankings (the rest stays in every set, unordered),
choices from a set, and duels (sets of two) are all products of such stages. Where items share a
place the log-likelihood is averaged over their orders.

Prior rationale. Independent normal log-worths, centred, are a ZeroSumNormal; only gaps enter the
likelihood. With prior_sd = 1 a gap has sd 1.41: P(i before j) is in (0.059, 0.941) with probability
95 %, and among 10 items the largest worth is below 0.54 with probability 95 %.

Contract. Observed: how often each choice set was chosen from and each item won, sufficient. Read
downstream: ``log_worth``. worth_i is P*(i), the probability of being chosen from all items. Use for
rankings and choices; assumes that the choice at a stage depends on nothing but the items still
there (independence of irrelevant alternatives) and that rankers agree up to chance.

References: Luce (1959), Individual Choice Behavior; Plackett (1975), Applied Statistics 24,
193-202; Hunter (2004), Annals of Statistics 32, 384-406.
"""

import pymc as pm
import pytensor.tensor as pt

from bayesfair.comparisons import Comparisons

READS = ("log_worth",)
PRIOR = (
    "log_worth ~ Normal(0, {prior_sd:g}) each, centred; "
    "coefficients ~ Normal(0, {coefficient_sd:g}) per standard deviation"
)


def build(
    comparisons: Comparisons,
    *,
    prior_sd: float = 1.0,
    coefficient_sd: float = 1.0,
    ties: str = "refuse",
) -> pm.Model:
    """Return the unsampled model; ``ties`` concerns duels: refuse, half or drop."""
    index, weight, wins = comparisons.choice_sets(ties=ties)
    x, scale = comparisons.standard_covariates()
    coords = {"item": comparisons.items, "covariate": comparisons.covariate_names}
    with pm.Model(coords=coords) as model:
        if len(scale):
            deviation = pm.ZeroSumNormal("deviation", sigma=prior_sd, dims="item")
            slope = pm.Normal("coefficient", 0, coefficient_sd / scale, dims="covariate")
            worths = deviation + pm.math.dot(x * scale, slope)
            log_worth = pm.Deterministic("log_worth", worths, dims="item")
        else:
            log_worth = pm.ZeroSumNormal("log_worth", sigma=prior_sd, dims="item")
        pm.Deterministic("worth", pm.math.softmax(log_worth), dims="item")
        chosen = pm.Data("chosen", wins, dims="item")
        times = pm.Data("times", weight, dims=("chain_of_sets", "position"))
        # the worth of the padding is 0; sums from the last position to the first are the sets
        padded = pt.concatenate([pt.exp(log_worth), pt.zeros(1)])
        sets = pt.cumsum(padded[index][:, ::-1], axis=1)[:, ::-1]
        used = pt.switch(pt.gt(times, 0), sets, 1.0)
        pm.Potential("choices", pm.math.dot(chosen, log_worth) - (times * pt.log(used)).sum())
    return model
