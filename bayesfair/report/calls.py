"""The Python call that repeats an audit, from its `to_dict` alone."""

from __future__ import annotations

import textwrap
from pathlib import PurePath
from typing import Any

from bayesfair.report.labels import clean

__all__ = ["call"]


def _context_and_pairs(first: dict[str, Any]) -> tuple[list[str] | None, list[str]]:
    """Return the columns of the context, and the options that ask for pairs of rounds."""
    columns, across = first.get("context", {}).get("columns"), first.get("across")
    if across is None:
        return columns, []
    version = [name for name in [across["rule_version"]] if name is not None]
    asked = {"rule_version": version[0]} if version else across["of"]
    return [*columns, *version], [f"across={asked!r}"]


def call(first: dict[str, Any], *, several: bool) -> str:
    """Return the Python call that repeats the audit, as far as the numbers of a log tell.

    Parameters
    ----------
    first : dict
        Of one log.
    several : bool
        Whether it is one of several.
    """
    asked, source = first["criterion"], clean(first["log"]["source"])
    if several:
        source = source.rsplit(",", 1)[0]  # without the group's own name
    options = [
        f"{name}={asked[name]:g}"
        for name in ("eps1", "eps2", "delta")
        if name != "eps2" or asked["eps2_reason"] == "asked for"
    ]
    if asked["from_round"]:
        options.append(f"from_round={asked['from_round']}")
    if asked["judge"] != "both":
        options.append(f"judge={asked['judge']!r}")
    for name, default in (("divergence", "total_variation"),
                          ("reward_divergence", asked["divergence"])):  # fmt: skip
        if asked[name] != default:
            options.append(f"{name}={asked[name]!r}")
    options.append(f"family={asked['family']!r}")
    model = asked["model"]
    if model is None:
        options.append("objective=False")
    elif model == "truth":
        options.append("truth=...")
    elif model != "conjugate":
        options.append(f"model={model!r}")
    derived = any("(tolerance= changes this)" in notice for notice in first["notices"])
    if asked["tolerance"] != 1e-9 and not derived:
        options.append(f"tolerance={asked['tolerance']:g}")
    if model not in (None, "truth"):
        options.append(f"draws={asked['draws']}")
    if asked["seed"] is not None:
        options.append(f"seed={asked['seed']}")
    options += ["arm_groups=..."] * ("arm_groups" in first)
    options += [f"propensity_draws={n}" for n in [asked.get("propensity_draws")] if n]
    options += [
        f"rule='estimated', rule_window={one['window']}" for one in [first.get("modelled")] if one
    ]
    columns, pairs = _context_and_pairs(first)
    options += pairs
    given = ""
    if columns is not None:
        own = asked["beliefs_model"] == "conjugate"
        options += [f"context_model={first['context']['model']!r}"] * own
        given = f", context={columns!r}"
    arguments = textwrap.fill(
        ", ".join(["history", *options]), 76, initial_indent="    ", subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    by = ", by=..." if several else ""
    read = (
        f"bf.read_history({source!r}{by}{given})"
        if PurePath(source).suffix
        else f"...  # {source!r}"
    )
    return (
        f"import bayesfair as bf\n\nhistory = {read}\n"
        f"audit = bf.audit(\n{arguments},\n)\nbf.write_report(audit, 'audit.html')"
    )
