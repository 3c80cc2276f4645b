r"""Bernoulli arms in contexts that are alike as far as they show: partial pooling for each arm.

    mu_i ~ Beta(alpha_i, beta_i)                   i = 1..k                dims ("arm",)
    log kappa_i ~ Uniform(log 0.5, log 200)        i = 1..k                dims ("arm",)
    theta_ci ~ Beta(kappa_i mu_i, kappa_i (1 - mu_i))   c = 1..C           dims ("context", "arm")
    logit_ci = log(theta_ci / (1 - theta_ci))                              dims ("context", "arm")
    s_ci ~ Binomial(n_ci, theta_ci)                                        dims ("context", "arm")

Prior rationale. mu is where an arm's contexts lie, by default Beta(1/2, 1/2) as for one context
alone. kappa is how alike they are, in plays: a context with n plays weighs its own mean by
n / (n + kappa). At 0.5 contexts are nearly all 0 or 1, at 200 their standard deviation is at most
0.036; half of the mass lies below 10.

Geometry. Sampled is ``logit``: where kappa is small, much of the mass of theta is nearer to 1 than
the nearest number below 1, and a density written in theta has no slope there. Written in log-odds
it has one everywhere; their tails are as long as 1/kappa, so the sampler sees their arcsinh.

Contract. Observed: ``successes`` per context and arm, sufficient together with the data ``pulls``.
Read downstream: ``theta``, P(reward = 1) given the context. Arms are independent under the
posterior, contexts of an arm are not. This file is the definition of the beliefs of
``audit(context_model="pooled")``, which has them without a sampler on 40 x 20 nodes of (mu, kappa).

References: Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., section 5.3.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesfair.families import FAMILIES
from bayesfair.families.logs import coded_of, earlier_counts
from bayesfair.families.priors import prior_table
from bayesfair.history import History
from bayesfair.history.cells import counts_by_context

READS = ("theta",)
FAMILY = "bernoulli"


def build(
    history: History, *, prior: Any = None, alike: tuple[float, float] = (0.5, 200.0)
) -> pm.Model:
    """Return the unsampled model; ``prior`` of mu; ``alike``: smallest and largest kappa."""
    contexts, pulls, successes = counts_by_context(history)
    family = FAMILIES[FAMILY]
    coded_of(history, family, np.empty(0))  # checks that they are 0 or 1
    table = prior_table(prior, family, history.arms) + earlier_counts(history, family, whole=False)
    low, high = np.log(alike)
    cells = ("context", "arm")
    with pm.Model(coords={"context": contexts, "arm": history.arms}) as model:
        alpha = pm.Data("alpha", table[:, 0], dims="arm")
        beta = pm.Data("beta", table[:, 1], dims="arm")
        n = pm.Data("pulls", pulls, dims=cells)
        mu = pm.Beta("mu", alpha=alpha, beta=beta, dims="arm")
        kappa = pm.math.exp(pm.Uniform("log_kappa", lower=low, upper=high, dims="arm"))
        shape = (kappa * mu)[None, :] + 0.0 * n, (kappa * (1 - mu))[None, :] + 0.0 * n
        logit = pm.CustomDist(
            "logit", *shape, dist=_logit_beta, logp=_log_density, dims=cells,
            default_transform=_ShortTails(),
        )  # fmt: skip
        pm.Deterministic("theta", pt.sigmoid(logit), dims=cells)
        observed = pm.Data("observed_successes", successes.astype(np.int64), dims=cells)
        pm.CustomDist(
            "successes", n, logit, dist=_wins, logp=_log_chance, observed=observed, dims=cells,
            dtype="int64",
        )  # fmt: skip
    return model


class _ShortTails(pm.distributions.transforms.Transform):
    """The log-odds as sinh(y): tails as long as 1/kappa become short ones."""

    name = "arcsinh"

    def forward(self, value: Any, *inputs: Any) -> Any:
        return pt.arcsinh(value)

    def backward(self, value: Any, *inputs: Any) -> Any:
        return pt.sinh(value)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        return pt.softplus(2 * value) - value - np.log(2)  # of cosh


def _logit_beta(alpha: Any, beta: Any, size: Any) -> Any:
    """Log-odds of a Beta law: a gamma of shape a is one of a + 1 times u^(1/a)."""

    def log_gamma(a: Any) -> Any:
        u = pm.Uniform.dist(size=size)
        return pt.log(pm.Gamma.dist(a + 1, 1, size=size)) + pt.log(u) / a

    return log_gamma(alpha) - log_gamma(beta)


def _log_density(value: Any, alpha: Any, beta: Any) -> Any:
    constant = pt.gammaln(alpha + beta) - pt.gammaln(alpha) - pt.gammaln(beta)
    return constant - alpha * pt.softplus(-value) - beta * pt.softplus(value)


def _wins(n: Any, logit: Any, size: Any) -> Any:
    return pm.Binomial.dist(n=n, p=pt.sigmoid(logit), size=size)


def _log_chance(value: Any, n: Any, logit: Any) -> Any:
    ways = pt.gammaln(n + 1) - pt.gammaln(value + 1) - pt.gammaln(n - value + 1)
    return ways - value * pt.softplus(-logit) - (n - value) * pt.softplus(logit)
