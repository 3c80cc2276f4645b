"""Notices of many logs: by kind, with how many logs they concern, and one of them in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesfair.audit.log.checks import CONTRADICTIONS
from bayesfair.audit.record import Record
from bayesfair.audit.together import Pass
from bayesfair.base.notices import Notice

__all__ = ["kinds_of", "notices_by_kind", "tiny_groups"]

_TINY = 30
"""Rounds below which a log can hardly decide against its prior."""
_SEVERAL = 10  # groups, from which on their size is a habit
_NAMED = 5  # groups


def tiny_groups(sizes: Sequence[int]) -> list[Notice]:
    """Return a notice if most of several logs are tiny.

    Parameters
    ----------
    sizes : sequence of int
        Their rounds.

    Examples
    --------
    >>> [notice.n for notice in tiny_groups([4] * 9 + [1000])], tiny_groups([400] * 9 + [7])
    ([9], [])
    """
    small = int(np.count_nonzero(np.asarray(sizes) < _TINY))
    if len(sizes) < _SEVERAL or 2 * small <= len(sizes):
        return []
    return [
        Notice(
            f"{small} of {len(sizes)} groups hold fewer than {_TINY} rounds (half of all at most "
            f"{int(np.median(sizes))}): there the true rewards are hardly known, and every number "
            "that uses them rests on the prior. Put groups together (by= a coarser column; a "
            "measurement cut into a few classes), or give prior= what is known of the arms.",
            kind="small_groups",
            column="by",
            n=small,
        )
    ]


def notices_by_kind(groups: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the notices of several audits by their kind, the gravest and then the commonest first.

    Parameters
    ----------
    groups : mapping of str to dict
        JSON values by label.

    Returns
    -------
    list of dict
        ``kind``; ``n``, in how many logs; ``groups``, the first of them; ``text``, what it says of
        the first; ``alike``, whether it says that of all logs.
    """
    found: dict[str, dict[str, Any]] = {}
    for label, audit in groups.items():
        for note in {note["kind"]: note for note in reversed(audit["findings"])}.values():
            new = {"kind": note["kind"], "n": 0, "groups": [], "text": note["text"], "alike": True}
            entry = found.setdefault(note["kind"], new)
            entry["n"] += 1
            entry["groups"] += [label][: _NAMED - len(entry["groups"])]
            entry["alike"] &= note["text"] == entry["text"]
    return _sorted(list(found.values()), len(groups))


def kinds_of(found: Pass, audits: Mapping[str, Record]) -> list[dict[str, Any]]:
    """Return what `notices_by_kind` does, from a pass over many logs; two logs of a kind speak.

    A notice counts as said of all logs alike where the first and the last one have the same words.
    """
    labels, entries = list(audits), []
    for kind, where in found.kinds.items():
        places = np.flatnonzero(where)
        words = [
            next(str(note) for note in audits[labels[g]].findings if Notice.of(note).kind == kind)
            for g in (places[0], places[-1])
        ]
        entries.append({
            "kind": kind,
            "n": len(places),
            "groups": [labels[g] for g in places[:_NAMED]],
            "text": words[0],
            "alike": words[0] == words[1],
        })  # fmt: skip
    return _sorted(entries, len(labels))


def _sorted(entries: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    for entry in entries:
        entry["alike"] = bool(entry["alike"] and entry["n"] == n)
    return sorted(entries, key=lambda e: (e["kind"] not in CONTRADICTIONS, -e["n"], e["kind"]))
