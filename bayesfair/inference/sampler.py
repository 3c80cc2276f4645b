"""How chains are run: what a user may set of it, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from bayesfair.base.checks import check_choice, check_count, check_in_range
from bayesfair.errors import OptionError
from bayesfair.inference.tree import N_CHAINS

__all__ = ["SAMPLER_OPTIONS", "Sampler", "sampler_mapping"]


@dataclass(frozen=True)
class Sampler:
    """Settings of NUTS; None leaves them to the fit.

    Attributes
    ----------
    target_accept : float or None
        Mean acceptance aimed at, in every attempt.
    tune : int or None
        Transitions that each chain learns from before its draws, in every attempt.
    chains : int
    backend : {"nutpie", "pymc"} or None
        What samples a model in PyMC.
    max_divergent : float
        Share of draws that may end in a divergence, up to the default; 0 refuses any.
    """

    target_accept: float | None = None
    tune: int | None = None
    chains: int = N_CHAINS
    backend: str | None = None
    max_divergent: float = 0.001

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> Sampler:
        """Return the settings that ``sampler=`` holds.

        Raises
        ------
        OptionError
            Naming a key that is none, a value that cannot be, or a backend that is not installed.

        Examples
        --------
        >>> Sampler.of({"chains": 2, "target_accept": 0.99})
        Sampler(target_accept=0.99, tune=None, chains=2, backend=None, max_divergent=0.001)
        """
        options = sampler_mapping(options)
        for name in options:
            check_choice(name, "sampler", SAMPLER_OPTIONS)
        found = {name: value for name, value in options.items() if value is not None}
        if "target_accept" in found:
            goal = found["target_accept"]
            check_in_range(goal, "target_accept", 0, 1, low_open=True, high_open=True)
        if "max_divergent" in found:
            check_in_range(found["max_divergent"], "max_divergent", 0, 0.001)
        for name, least in (("tune", 50), ("chains", 2)):  # chains are held against each other
            if name in found:
                found[name] = check_count(found[name], name, least)
        if "backend" in found:
            backend = check_choice(found["backend"], "backend", ("nutpie", "pymc"))
            if find_spec(backend) is None:
                raise OptionError(
                    f"backend={backend!r} is not installed: pip install {backend}.",
                    kind="not_installed",
                    column="backend",
                    value=backend,
                )
        return cls(**found)

    def given(self) -> dict[str, Any]:
        """Return what differs from the defaults."""
        plain, own = asdict(Sampler()), asdict(self)
        return {name: own[name] for name in SAMPLER_OPTIONS if own[name] != plain[name]}

    def refuse_without_chains(self, why: str) -> None:
        """Raise if anything is set where nothing is sampled."""
        if self.given():
            raise OptionError(
                f"sampler={self.given()} has no effect: {why}",
                kind="unused_option",
                column="sampler",
                value=self.given(),
            )


SAMPLER_OPTIONS = ("target_accept", "tune", "chains", "backend", "max_divergent")


def sampler_mapping(options: Any) -> Mapping[str, Any]:
    """Return ``sampler=``, empty where nothing was given; refuse what is no mapping."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise OptionError(
            f"sampler={options!r:.60} must be a mapping, such as {{'target_accept': 0.99}}.",
            kind="option_value",
            column="sampler",
            value=options,
        )
    return options
