"""NUTS on a PyMC model, and the refusal of what did not converge.

Compiling a model takes seconds, sampling it a fraction of one: a model is compiled once and its
data containers (`pymc.Data`) swapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesfair.base.notices import Notice
from bayesfair.base.progress import steps
from bayesfair.errors import ConvergenceError, OptionError
from bayesfair.inference.compiled import graph_of, labelled, machine_code
from bayesfair.inference.sampler import Sampler
from bayesfair.inference.tree import N_CHAINS
from bayesfair.kernels.orders.convergence import convergence

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "ESS_LIMIT",
    "R_HAT_LIMIT",
    "CompiledModel",
    "diagnose",
    "divergence_notices",
    "refusal",
    "unconverged",
]

#: Largest R-hat and smallest effective sample size (bulk and tail) of a fit that is accepted.
R_HAT_LIMIT = 1.01
ESS_LIMIT = 400

_LEAST = 1000  # draws that convergence is judged by

# Small models: careful steps cost little. The second setting is tried if the first is refused.
_SETTINGS: tuple[dict[str, Any], ...] = (
    {"tune": 1000, "target_accept": 0.95},
    {"tune": 2000, "target_accept": 0.995},
)


class _Chains:
    """How far the chains of nutpie are, which tells it ten times a second, on another thread."""

    def __init__(self, total: int) -> None:
        self._steps, self._total, self._done = steps("draws", total), total, 0
        self._raised: BaseException | None = None
        self.heard = self._steps.heard

    def __call__(self, chains: Sequence[Any]) -> None:
        self._tell(sum(chain.finished_draws for chain in chains))

    def _tell(self, done: int) -> None:
        if done > self._done and self._raised is None:
            try:
                self._steps.add(done - self._done)
            except BaseException as error:  # nutpie would print and forget it
                self._raised = error
            self._done = done

    def end(self) -> None:
        """Tell of the last draws, and raise what telling raised."""
        if self.heard:
            self._tell(self._total)
        if self._raised is not None:
            raise self._raised


class CompiledModel:
    """A PyMC model compiled once.

    Parameters
    ----------
    model : pymc.Model
        Unsampled; what may change between fits sits in `pymc.Data` containers.
    sampler : Sampler
        How it is sampled.
    """

    def __init__(self, model: Any, sampler: Sampler | None = None) -> None:
        if not model.free_RVs:
            raise OptionError("the model has no free variable, so there is nothing to sample.")
        self.model, self.sampler = model, sampler or Sampler()
        self.graph = graph_of(model)
        backend = self.sampler.backend
        discrete = [v.name for v in model.free_RVs if v.dtype.startswith(("int", "uint", "bool"))]
        # nutpie runs its chains in threads: no process is spawned, no main guard needed
        self._compiled: Any = None
        if discrete and backend == "nutpie":
            raise OptionError(
                f"backend='nutpie' samples no discrete variables, and {discrete[0]!r} is one: use "
                "backend='pymc', or sum it out of the model.",
                kind="unused_option",
                column="backend",
                value=backend,
            )
        if not discrete and backend != "pymc":
            self._compiled = machine_code(self.graph)

    def sample(
        self,
        *,
        draws: int,
        tune: int,
        target_accept: float,
        seed: int,
        chains: int = N_CHAINS,
        cores: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> xr.DataTree:
        """Return a tree with the groups posterior and sample_stats; `draws`, `tune` per chain."""
        if self._compiled is None:
            return self._sample_pymc(
                draws=draws,
                tune=tune,
                target_accept=target_accept,
                seed=seed,
                chains=chains,
                cores=cores,
                data=data,
            )
        import nutpie

        told = _Chains(chains * (tune + draws))
        compiled = self._compiled
        if data:
            used = {variable.name for variable in compiled.shared_var_keys}
            compiled = compiled.with_data(**{n: v for n, v in data.items() if n in used})
        try:
            tree: xr.DataTree = nutpie.sample(
                compiled,
                draws=draws,
                tune=tune,
                chains=chains,
                seed=seed,
                save_warmup=False,
                cores=None if cores is None else max(1, int(cores)),
                target_accept=target_accept,
                progress_bar=False,
                progress_callback=told if told.heard else None,
            )
        except RuntimeError as error:
            raise ConvergenceError(
                f"the sampler could not start or stopped: {error}. Check that the model's density "
                "is finite where its priors put their mass, and that no observed value is "
                "impossible under it."
            ) from error
        told.end()
        return labelled(tree, self.model)

    def _sample_pymc(
        self,
        *,
        draws: int,
        tune: int,
        target_accept: float,
        seed: int,
        chains: int,
        cores: int | None,
        data: Mapping[str, Any] | None,
    ) -> xr.DataTree:
        import pymc as pm

        continuous = any(v.dtype.startswith("float") for v in self.model.free_RVs)
        options: dict[str, Any] = {"nuts": {"target_accept": target_accept}} if continuous else {}
        told = steps("draws", chains * (tune + draws))
        if told.heard:
            options["callback"] = lambda **_: told.add()
        # one process unless asked: spawned ones would run an unguarded script again
        with self.model:
            if data:
                pm.set_data(dict(data))
            tree: xr.DataTree = pm.sample(
                draws=draws,
                tune=tune,
                chains=chains,
                cores=cores or 1,
                random_seed=seed,
                progressbar=False,
                quiet=True,
                compute_convergence_checks=False,
                **options,
            )
        return tree

    def fit(
        self,
        *,
        draws: int,
        seed: int,
        cores: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> tuple[xr.DataTree, dict[str, Any]]:
        """Sample, and once more with smaller steps if the draws are refused.

        Parameters
        ----------
        draws : int
            Draws kept, over all chains; at least 1000 are made, and judged.
        seed : int
            Reproducible, whatever `cores`.
        data : mapping, optional
            New values of data containers.

        Returns
        -------
        tree : xarray.DataTree
            Groups posterior and sample_stats.
        diagnostics : dict
            See `diagnose`.
        """
        how = self.sampler
        per_chain = draws // how.chains
        # few draws are no reason to judge by few: the rest is thinned away afterwards
        every = -(-_LEAST // (per_chain * how.chains))
        asked = how.given()
        for name in ("backend", "max_divergent"):
            asked.pop(name, None)
        for attempt, settings in enumerate(_SETTINGS):
            thin = attempt + 1
            tree = self.sample(
                draws=per_chain * every * thin,
                seed=seed + attempt,
                cores=cores,
                data=data,
                **settings | asked,
            )
            if thin > 1:
                tree = tree.isel(draw=slice(None, None, thin))
            found = diagnose(tree)
            found["attempts"] = attempt + 1
            if not refusal(found):  # without any divergence
                break
        found["max_divergent"] = how.max_divergent
        return (tree.isel(draw=slice(None, None, every)) if every > 1 else tree), found


def diagnose(tree: xr.DataTree) -> dict[str, Any]:
    """Return the convergence diagnostics of a posterior.

    Returns
    -------
    dict
        ``values``: list of (element, R-hat, bulk ESS, tail ESS); ``rhat_max``, ``ess_min``,
        ``divergences``, ``where`` (in words, where those are), ``n_chains``, ``n_draws`` (per
        chain).
    """
    posterior = tree["posterior"].to_dataset()
    values: list[tuple[str, float, float, float]] = []
    for name, variable in posterior.data_vars.items():
        if variable.dtype.kind not in "fiu":
            continue
        rest = [dim for dim in variable.dims if dim not in ("chain", "draw")]
        array = variable.transpose(*rest, "chain", "draw").values
        array = array.reshape(-1, *array.shape[-2:])
        # a variable that cannot vary has no R-hat; one that is not finite must not pass for it
        varies = np.flatnonzero(np.ptp(array, axis=(1, 2)) != 0)
        names = _labels(variable, rest)
        for v, numbers in zip(varies.tolist(), convergence(array[varies]).T.tolist(), strict=True):
            rhat, bulk, tail = numbers
            values.append((f"{name}{names[v]}", rhat, bulk, tail))
    diverging = 0
    if "sample_stats" in tree.children and "diverging" in tree["sample_stats"]:
        diverging = int(tree["sample_stats"]["diverging"].sum())
    return {
        "where": _where_divergent(posterior, tree) if diverging else "",
        "values": values,
        "rhat_max": max((v[1] for v in values), default=1.0),
        "ess_min": min((min(v[2], v[3]) for v in values), default=float("inf")),
        "divergences": diverging,
        "n_chains": posterior.sizes["chain"],
        "n_draws": posterior.sizes["draw"],
    }


def _where_divergent(posterior: xr.Dataset, tree: xr.DataTree) -> str:
    """Return which parameter the divergent draws lie farthest off in, and where."""
    bad = tree["sample_stats"]["diverging"].transpose("chain", "draw").values.astype(bool)
    farthest, said = -1.0, ""
    for name, variable in posterior.data_vars.items():
        if variable.dtype.kind != "f":
            continue
        rest = [dim for dim in variable.dims if dim not in ("chain", "draw")]
        array = variable.transpose(*rest, "chain", "draw").values.reshape(-1, *bad.shape)
        mean, sd = array.mean(axis=(1, 2)), array.std(axis=(1, 2))
        here = array[:, bad].mean(axis=1)
        off = np.abs(here - mean) / np.where(sd > 0, sd, np.inf)
        e = int(np.argmax(off))
        if off[e] > farthest:
            farthest = float(off[e])
            label = f"{name}{_labels(variable, rest)[e]}"
            said = f"{label} is about {here[e]:.3g} (its mean is {mean[e]:.3g})"
    return said


def divergence_notices(found: Mapping[str, Any], column: str = "model") -> tuple[Notice, ...]:
    """Return what is said of a fit that was accepted with a few divergences.

    Parameters
    ----------
    found : mapping
        What `CompiledModel.fit` returned.
    column : str
        The option that the model was given by.
    """
    n, total = found["divergences"], found["n_chains"] * found["n_draws"]
    if not n or n > found.get("max_divergent", 0.0) * total:
        return ()
    return (
        Notice(
            f"{n} of {total} draws of the posterior ended in a divergence, on average where "
            f"{found['where']}: there it may have been explored too little. Up to 0.1 % of the "
            "draws are taken; sampler={'max_divergent': 0} refuses any.",
            kind="divergences",
            column=column,
            value=found["where"],
            n=n,
        ),
    )


def _labels(variable: Any, dims: list[Any]) -> list[str]:
    """Return what follows the name of each element, such as "[north]", in C order."""
    if not dims:
        return [""]
    shown = [
        [str(label) for label in variable[d].values] if d in variable.coords
        else [str(i) for i in range(variable.sizes[d])]
        for d in dims
    ]  # fmt: skip
    return [f"[{', '.join(labels)}]" for labels in product(*shown)]


def refusal(found: Mapping[str, Any], *, returnable: bool = True) -> str:
    """Return why a fit is refused, naming the worst variables, or "" if it is accepted.

    Parameters
    ----------
    found : mapping
        What `diagnose` returned.
    returnable : bool
        Whether the caller takes ``allow_unconverged=True``.
    """
    offenders = []
    for name, rhat, bulk, tail in found["values"]:
        reasons = []
        if not rhat <= R_HAT_LIMIT:
            reasons.append(f"R-hat {rhat:.3f} (limit {R_HAT_LIMIT})")
        if not bulk >= ESS_LIMIT:
            reasons.append(f"bulk ESS {bulk:.0f} (need {ESS_LIMIT})")
        if not tail >= ESS_LIMIT:
            reasons.append(f"tail ESS {tail:.0f} (need {ESS_LIMIT})")
        if reasons:
            badness = -rhat if np.isfinite(rhat) else -np.inf
            offenders.append((badness, f"{name} has {' and '.join(reasons)}"))
    offenders.sort(key=lambda pair: pair[0])
    parts = [text for _, text in offenders[:3]]
    if len(offenders) > 3:
        parts.append(f"and {len(offenders) - 3} more variables")
    most = int(found.get("max_divergent", 0.0) * found["n_chains"] * found["n_draws"])
    if found["divergences"] > most:
        at = f", where {found['where']}" if found["where"] else ""
        parts.append(f"{found['divergences']} divergent transitions (limit {most}){at}")
    if not parts:
        return ""
    return (
        f"{'; '.join(parts)}, after {found['n_chains']} x {found['n_draws']} draws. "
        f"{_remedy(found)} The draws are in error.tree"
        + ("; allow_unconverged=True returns them." if returnable else ".")
    )


def unconverged(reason: str) -> Notice:
    """Return what a tree says of draws that were returned although they would be refused.

    Parameters
    ----------
    reason : str
        What `refusal` returned.
    """
    evidence = reason.split(" The draws are in error.tree", maxsplit=1)[0]
    return Notice(
        f"The draws did not converge and were returned on request (allow_unconverged=True): "
        f"{evidence} No number that rests on them can be trusted.",
        kind="unconverged",
    )


def _remedy(found: Mapping[str, Any]) -> str:
    if found["n_chains"] * found["n_draws"] < 2 * ESS_LIMIT:
        return f"Raise draws: {ESS_LIMIT} effective draws need at least as many."
    if found["divergences"]:
        return (
            "Reparametrise the model (non-centred, shares on the logit scale, priors that keep off "
            "the edges), or simplify it; a higher target_accept alone seldom helps."
        )
    return "Raise draws or reparametrise the model."
