"""What a model of the arms promises: its name, its `build`, the variables to read, its rewards."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bayesfair.base.checks import check_choice, did_you_mean, listed, shown
from bayesfair.base.labels import text_of
from bayesfair.errors import OptionError
from bayesfair.families import FAMILIES, Family, family_named
from bayesfair.history import History
from bayesfair.history.cells import no_context

__all__ = [
    "ARM_MODELS",
    "CONTEXT_MODELS",
    "SHIPPED",
    "Contract",
    "check_reads",
    "checked_options",
    "closed_form",
    "contract_of",
    "family_of_model",
    "family_of_models",
    "label_of",
    "share_options",
]

#: Shipped models of the arms and their reward families.
ARM_MODELS: dict[str, str] = {
    "bernoulli_independent": "bernoulli",
    "bernoulli_hierarchical": "bernoulli",
    "bernoulli_drifting": "bernoulli",
    "finite_independent": "finite",
    "poisson_independent": "poisson",
    "normal_independent": "normal",
}

#: Those of rewards given a context.
CONTEXT_MODELS: dict[str, str] = {
    "bernoulli_cells": "bernoulli",
    "bernoulli_pooled_cells": "bernoulli",
    "bernoulli_shared_weights": "bernoulli",
}

SHIPPED = ARM_MODELS | CONTEXT_MODELS
"""All of them."""

_HOW = (
    'Declare beside build: READS = ("theta",) for 0/1 rewards, ("probability",) for finite ones, '
    '("rate",) for counts, ("mean", "sd") for normal rewards.'
)


def closed_form(model: Any) -> Family | None:
    """Return the family whose posterior in closed form a model's name stands for, if it does."""
    if not isinstance(model, str):  # what is no name may be no truth value either
        return None
    return next((family for family in FAMILIES.values() if family.model == model), None)


def family_of_model(model: str) -> Family:
    """Return the reward family of a model that is named, without importing it.

    Raises
    ------
    OptionError
        Naming the known ones.
    """
    own = {family.model: family.name for family in FAMILIES.values()}
    return FAMILIES[(own | SHIPPED)[check_choice(model, "model", tuple(SHIPPED | own))]]


@dataclass(frozen=True)
class Contract:
    """A model of the arms, resolved.

    Attributes
    ----------
    name : str
        Shipped name, or module and name of a build function.
    build : callable
        ``build(history, **options)`` returns an unsampled ``pymc.Model``.
    reads : tuple of str
        Variables that downstream functions may rely on.
    family : str
        Reward family.
    prior : str
        The prior in one line; may hold ``{option}`` fields.
    log_prior : callable or None
        Log density of the top-level prior at posterior draws.
    """

    name: str
    build: Callable[..., Any]
    reads: tuple[str, ...]
    family: str
    prior: str
    log_prior: Callable[..., Any] | None

    @property
    def options(self) -> dict[str, Any]:
        """Keyword options of `build` and their defaults."""
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}

    def takes(self, name: str) -> bool:
        """Return whether `build` has an option of this name."""
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        return name in self.options or any(p.kind is p.VAR_KEYWORD for p in parameters)

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return `options`, refusing those that `build` does not take."""
        parameters = list(inspect.signature(self.build).parameters.values())[1:]
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            return dict(options)
        unknown = [name for name in options if name not in self.options]
        if unknown:
            known = list(self.options)
            raise OptionError(
                f"model {self.name!r} has no option {unknown[0]!r}. Options: "
                f"{listed(known) if known else 'none'}.{did_you_mean(unknown[0], known)}"
            )
        return dict(options)

    def describe(self, options: Mapping[str, Any]) -> str:
        """Return the prior in one line, with the values of the options in it."""
        try:
            return self.prior.format(**{**self.options, **options})
        except (KeyError, IndexError, ValueError):
            return self.prior


def contract_of(model: Any) -> Contract:
    """Return the contract of a shipped model's name, a build function or a module with one.

    Raises
    ------
    OptionError
        If the name is unknown, the object is no build function, or it declares no `READS`.
    """
    if isinstance(model, str):
        own = closed_form(model)
        if own is not None and model not in SHIPPED:
            raise OptionError(
                f"model {model!r} is the closed form of family {own.name!r}, of which no PyMC "
                "model is shipped: give model= your build function.",
                kind="no_model",
                column="model",
                value=model,
            )
        name = check_choice(model, "model", tuple(SHIPPED))
        source: Any = importlib.import_module(f"bayesfair.models.{name}")
        build = source.build
    elif isinstance(model, ModuleType):
        name, source = model.__name__, model
        build = getattr(model, "build", None)
    else:
        build = source = model
        inner = _inner(model)
        name = f"{getattr(inner, '__module__', '?')}.{getattr(inner, '__qualname__', 'build')}"
    if not callable(build) or hasattr(build, "free_RVs"):
        raise OptionError(
            f"model={shown(model)} must be a shipped model's name ({listed(SHIPPED)}), or a "
            "function build(history) that returns an unsampled pymc.Model (not the model itself)."
        )
    reads = _declared(source, build, "READS")
    if reads is None:
        raise OptionError(f"model {name!r} declares no READS. {_found(source, build)} {_HOW}")
    reads = (reads,) if isinstance(reads, str) else tuple(str(read) for read in reads)
    family = _declared(source, build, "FAMILY")
    if family is None:
        matching = [f.name for f in FAMILIES.values() if set(f.reads) <= set(reads)]
        if not matching:
            raise OptionError(
                f"model {name!r} declares READS {listed(reads)}, which are no reward parameters. "
                f"{_HOW}"
            )
        family = matching[0]
    needed = family_named(family, f"FAMILY of model {name!r}").reads
    lacking = [read for read in needed if read not in reads]
    if lacking:
        raise OptionError(
            f"model {name!r} has rewards of family {family!r} but does not declare "
            f"{listed(lacking)} in READS; it declares {listed(reads)}."
        )
    prior = _declared(source, build, "PRIOR") or f"as written in {name}"
    return Contract(name, build, reads, family, str(prior), _declared(source, build, "log_prior"))


def label_of(model: Any) -> str:
    """Return a short name of a model: the shipped name, or that of the function or module."""
    if isinstance(model, str):
        return model
    inner = _inner(model)
    return str(getattr(inner, "__name__", type(inner).__name__))


def family_of_models(family: str, *models: Any) -> str:
    """Return the reward family that models have in common; without a model, `family` itself.

    Raises
    ------
    OptionError
        If the models, or a model and a `family` other than ``"auto"``, do not agree.
    """
    for model in models:
        if model is None:
            continue
        if isinstance(model, str):  # known without importing it
            name, own = model, family_of_model(model).name
        else:
            contract = contract_of(model)
            name, own = contract.name, contract.family
        if family not in ("auto", own):
            raise OptionError(
                f"model {name!r} has rewards of family {own!r}, not {family!r}; leave family out "
                "or choose another model."
            )
        family = own
    return family


def checked_options(options: Any, function: Callable[..., Any]) -> dict[str, Any]:
    """Return ``model_options`` as a dict of its own.

    Raises
    ------
    OptionError
        If it is no mapping, or holds an option of the function itself.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise OptionError(
            f"model_options={options!r:.60} must be a mapping of the options of the model, such as "
            "{'n_bins': 5}.",
            kind="option_value",
            column="model_options",
        )
    for name in inspect.signature(function).parameters:
        if name in options:
            raise OptionError(
                f"model_options has {name!r}, which is an option of {function.__name__} itself: "
                f"give {name}= beside it.",
                kind="option_value",
                column="model_options",
                value=name,
            )
    return dict(options)


def share_options(
    options: Mapping[str, Any], takers: Mapping[str, tuple[Any, tuple[str, ...]]]
) -> dict[str, dict[str, Any]]:
    """Return for each role the options that it takes, those of its `build` as `model_options`.

    Parameters
    ----------
    options : mapping
        What was given.
    takers : mapping of role to (model, names)
        A model (None: the role is not taken) and what its caller takes beside its `build`.

    Raises
    ------
    OptionError
        If nobody takes an option.
    """
    used = {role: pair for role, pair in takers.items() if pair[0] is not None}
    shares: dict[str, dict[str, Any]] = {role: {} for role in takers}
    for name, value in options.items():
        # where there is one model, it says itself what it does not know
        taking = [
            role
            for role, (model, names) in used.items()
            if len(used) == 1 or name in names or contract_of(model).takes(name)
        ]
        if not taking:
            known = [n for model, names in used.values() for n in contract_of(model).options]
            raise OptionError(
                f"none of the models has an option {name!r}. Options: "
                f"{listed(list(dict.fromkeys(known)))}.{did_you_mean(name, known)}"
            )
        for role in taking:
            own = name in used[role][1]
            (shares[role] if own else shares[role].setdefault("model_options", {}))[name] = value
    return shares


def _inner(build: Any) -> Any:
    """Return the function behind functools.partial and decorators."""
    while hasattr(build, "func"):
        build = build.func
    return inspect.unwrap(build) if callable(build) else build


def _declared(source: Any, build: Any, name: str) -> Any:
    """Look beside the build function: on itself, then in the module that defines it."""
    inner = _inner(build)
    for place in (source, build, inner):
        value = getattr(place, name, None)
        if value is not None:
            return value
    return getattr(inner, "__globals__", {}).get(name)


def _found(source: Any, build: Any) -> str:
    names = [n for n in getattr(_inner(build), "__globals__", vars(source)) if n.isupper()]
    return (
        f"Found beside it: {listed(sorted(names))}." if names else "Nothing is declared beside it."
    )


def check_reads(contract: Contract, model: Any, history: History) -> str | None:
    """Raise unless the built model has the declared variables with the dim `arm` in order.

    Returns
    -------
    str or None
        Their dim before the arms, if they have one: ``"bin"`` of time, ``"context"``, ``"round"``.

    Raises
    ------
    OptionError
        Naming the variable, the dims found and the dims needed.
    """
    if not hasattr(model, "free_RVs"):
        raise OptionError(
            f"model {contract.name!r}: build returned {type(model).__name__}, expected an "
            "unsampled pymc.Model."
        )
    variables = [v.name for v in (*model.free_RVs, *model.deterministics)]
    for read in contract.reads:
        if read not in variables:
            raise OptionError(
                f"model {contract.name!r} declares READS {listed(contract.reads)} but has no "
                f"variable {read!r}. Found: {listed(variables)}.{did_you_mean(read, variables)}"
            )
    family = FAMILIES[contract.family]
    along: set[str | None] = set()
    for read in family.reads:
        dims = tuple(model.named_vars_to_dims.get(read) or ())
        allowed = [("arm",), ("bin", "arm"), ("context", "arm"), ("round", "arm")]
        along.add(dims[0] if dims[:1] != ("arm",) else None)
        if family.has_levels:
            allowed = [(*shape, "level") for shape in allowed]
        if dims not in allowed:
            raise OptionError(
                f"model {contract.name!r}: {read!r} has dims {dims}, expected one of "
                f"{', '.join(map(str, allowed))}. Give it dims=... and coords with these names."
            )
    if len(along) > 1:
        raise OptionError(
            f"model {contract.name!r}: {listed(family.reads)} must have the same dims.",
            kind="dims", column="READS",
        )  # fmt: skip
    dim = along.pop()
    _check_labels(contract, model, "arm", history.arms, "arms")
    if dim in ("context", "round"):
        if history.context is None:
            raise no_context(history, f"{contract.name!r} has rewards by {dim}")
        if dim == "context":
            _check_labels(contract, model, "context", history.context.cells[1], "contexts")
        elif len(model.coords["round"]) != history.n_rounds:
            raise OptionError(
                f"model {contract.name!r}: coordinate 'round' has {len(model.coords['round'])} "
                f"values, the log {history.n_rounds} rounds.",
                kind="dims", column="round",
            )  # fmt: skip
        latent = [v.name for v in model.free_RVs
                  if "round" in (model.named_vars_to_dims.get(v.name) or ())]  # fmt: skip
        if latent:
            raise OptionError(
                f"model {contract.name!r}: {latent[0]!r} is an effect of each round, which arms "
                "would have in common and beliefs would take for known. Leave it out of what READS "
                "names, and give rewards that spread accordingly.",
                kind="latent_round", column=latent[0],
            )  # fmt: skip
    return dim


def _check_labels(
    contract: Contract, model: Any, dim: str, expected: tuple[str, ...], what: str
) -> None:
    labels = tuple(text_of(label) for label in model.coords[dim])
    if labels != expected:
        raise OptionError(
            f"model {contract.name!r}: coordinate {dim!r} is {listed(labels)}, expected the {what} "
            f"of the history in order: {listed(expected)}."
        )
