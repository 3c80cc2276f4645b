"""A verdict in words: both questions by name, the rounds that violate, the regret beside them.

The sentences are made from the JSON values (`to_dict`) alone, and serve terminal, report and gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from bayesfair.audit.criterion import QUESTIONS, VERDICTS
from bayesfair.base.checks import counted
from bayesfair.base.shown import number

__all__ = [
    "VERDICT_WORDS",
    "interval_words",
    "judged_by",
    "lead",
    "one_line",
    "prior_title",
    "question_words",
    "regret_line",
    "regret_words",
    "remarks",
    "verdict_lines",
]

VERDICT_WORDS = {
    "fair": "FAIR",
    "unfair": "UNFAIR",
    "undetermined": "UNDETERMINED",
    "not_auditable": "NOT AUDITABLE",
}

_NOT_SINCE = 0.9
"""Violations that end before this share of the log are said to have ended."""


def prior_title(criterion: dict[str, Any]) -> str:
    """Return whose prior is printed: with a model of the true rewards that of the beliefs alone."""
    shared = criterion["model"] in (None, "truth", "conjugate")
    return "Prior" if shared else "Prior of the beliefs"


def interval_words(
    audit: dict[str, Any],
    drawn: str = "the true rewards",
    shares: Mapping[str, str] = MappingProxyType({"none": "Wilson's for shares"}),
) -> list[str]:
    """Return what the intervals of a report are; nothing where there are none.

    Parameters
    ----------
    audit : dict
    drawn : str
        What draws are of.
    shares : mapping of what was logged to words
        Where shares stand for probabilities, and what their intervals are.
    """
    model, selection = audit["criterion"]["model"], audit["log"]["selection"]
    with_draws = audit["objective"] is not None and model != "truth"
    found = [f"equal-tailed over the draws of {drawn}"] if with_draws else []
    if selection == "chosen":
        found.append("normal ones of a mean for the estimated regret")
    if selection in shares:
        found.append(shares[selection])
    return [f"Intervals hold 95 %: {', '.join(found)}."] if found else []


def judged_by(audit: dict[str, Any]) -> str:
    """Return whose verdict the top one is: ``both``, ``subjective`` or ``objective``."""
    judge = str(audit["criterion"].get("judge", "both"))
    if audit["objective"] is None:
        return "subjective"
    known = audit["criterion"]["model"] == "truth"
    return "objective" if judge == "both" and known else judge


def regret_words(audit: dict[str, Any]) -> str:
    """Return the fairness regret per round that stands beside a verdict.

    Under the beliefs, or under the true rewards where these alone are judged.
    """
    if "groups" in audit:
        asked = audit["criterion"]  # short records hold none
        return _regret_of_groups([_regret(one, asked) for one in audit["groups"].values()])
    part = _regret(audit, audit["criterion"])
    if part["regret_per_round"] is None:
        if part["lower"] is None:
            return "fairness regret not known"
        return f"fairness regret at least {number(part['lower'])} per round (95 %)"
    upper = 1 if part["upper"] is None else part["upper"]  # it is a probability
    interval = "" if part["exact"] else f" [{number(part['lower'])}, {number(upper)}]"
    return f"fairness regret {number(part['regret_per_round'])}{interval} per round"


def _regret_of_groups(parts: list[dict[str, Any]]) -> str:
    """Return from where to where the regret goes; lower limits are told apart from values."""
    values = [p["regret_per_round"] for p in parts if p["regret_per_round"] is not None]
    limits = [p["lower"] for p in parts if p["regret_per_round"] is None and p["lower"] is not None]
    if not values + limits:
        return "fairness regret not known"

    def span(found: list[float]) -> str:
        low, high = number(min(found)), number(max(found))
        return low if low == high else f"{low} to {high}"

    said = [f"{span(values)} per round"] if values else []
    said += [f"at least {span(limits)} per round (95 %)"] if limits else []
    lacking = len(parts) - len(values) - len(limits)
    said += [f"not known of {counted(lacking, 'log')}"] if lacking else []
    return f"fairness regret {'; '.join(said)}"


def _regret(audit: dict[str, Any], criterion: dict[str, Any]) -> dict[str, Any]:
    parts: dict[str, dict[str, Any]] = audit["calibration"]
    judge = judged_by({"criterion": criterion, "objective": audit["objective"]})
    if judge == "objective" and parts["objective"]["regret_per_round"] is not None:
        return parts["objective"]
    return parts["subjective"]


def one_line(audit: dict[str, Any], questions: dict[str, str] = QUESTIONS) -> str:
    """Return the top verdict with the regret, then both verdicts by name, in one line.

    Such as ``verdict unfair, fairness regret 0.0375 per round; under the beliefs of each round
    unfair, under the true rewards undetermined``.
    """
    both = [
        f"{question} {audit[name]['verdict'].replace('_', ' ')}"
        for name, question in questions.items()
        if audit[name] is not None
    ]
    verdict = audit["verdict"].replace("_", " ")
    return f"verdict {verdict}, {regret_words(audit)}; {', '.join(both)}"


def question_words(audit: dict[str, Any], name: str, unit: str = "round") -> str:
    """Return the verdict of one question in words, with the rounds that violate.

    Parameters
    ----------
    audit : dict
        JSON values of one audit.
    name : str
        ``"subjective"`` or ``"objective"``.
    unit : str
        What is judged: rounds, or duels.
    """
    part, n = audit[name], audit["log"].get("n_judged", audit["log"]["n_rounds"])
    if part is None:
        return "left out on request"
    verdict, found = str(part["verdict"]).replace("_", " "), part["n_violating_rounds"]
    if found is None:
        lacks = "needs the probabilities of all arms in each round" if n else f"no {unit} is judged"
        known = (audit.get("covered") or {}).get(name)
        return f"{verdict}: {_covered_words(known, n, unit) if known else lacks}"
    begin = audit["criterion"].get("from_round", 0)
    first, last = part["first_violating_round"], part["last_violating_round"]
    if isinstance(found, dict) and audit["criterion"]["model"] == "truth" and found["exact"]:
        found = int(found["mean"])
        first, last = (None if end is None else int(end["mean"]) for end in (first, last))
    if not isinstance(found, dict):
        words = f" {_exactly(found, first, last, n, begin, unit)}"
        if verdict == "undetermined" and (error := audit.get("monte_carlo")):
            low, high = (number(x) for x in error["smallest_eps2"])
            words = f": Monte Carlo error leaves the eps2 needed between {low} and {high}"
        return verdict + words
    probability = f"probability fair {number(part['probability_fair'])}"
    if (error := audit.get("monte_carlo")) and error["probability_fair"]:
        low, high = (number(x) for x in error["probability_fair"])
        probability += f" ({low} to {high} with Monte Carlo error)"
    if not part.get("converged", True):
        return f"{verdict}: the draws did not converge ({probability} among them); see the notices"
    if diverged := _divergent(audit, name):
        probability += f" ({diverged} divergent draws, see the notices)"
    if not found["mean"]:
        rounds = "" if verdict == "undetermined" else f" {_exactly(0, None, None, n, begin, unit)}"
        return f"{verdict}{rounds}: {probability}"
    return f"{verdict}: {probability}; {_about(found, first, last, n, begin, unit, part)}"


def _covered_words(part: dict[str, Any], n: int, unit: str) -> str:
    """Say what pairs of arms amount to where the probabilities of some are known."""
    low, high = (number(part["smallest_eps2"][end]) for end in ("lower", "upper"))
    if "probability_fair" in part:
        between = [number(part["probability_fair"][end]) for end in ("lower", "upper")]
        found = between[0] if between[0] == between[1] else " to ".join(between)
        return f"probability fair {found}, by what is known of the probabilities"
    rounds, verdict = part["n_violating_rounds"], part["verdict"]
    if verdict == "unfair":
        first, last = part["first_violating_round"], part["last_violating_round"]
        said = f"at least {rounds['at_least']} of {counted(n, unit)} violate by what is known"
        return f"{said}, the first in {unit} {first}, the last in {unit} {last}"
    if verdict == "fair":
        return f"whatever the unknown probabilities, it needs eps2 = {high} at most"
    return f"what is known of the probabilities leaves the eps2 needed between {low} and {high}"


def _divergent(audit: dict[str, Any], name: str) -> int:
    """Return how many draws of the true rewards ended in a divergence, where few were taken."""
    said = audit.get("findings", ()) if name == "objective" else ()
    return sum(
        int(found["n"]) for found in said
        if found["kind"] == "divergences" and found["column"] == "model"
    )  # fmt: skip


def _about(
    found: dict[str, Any], first: dict[str, float] | None, last: dict[str, float] | None, n: int,
    begin: int, unit: str, part: dict[str, Any],
) -> str:  # fmt: skip
    """Say in about how many of ``n`` rounds, with 95 % intervals, and whether they have ended.

    The first and the last are those of the draws in which some round violates: where these are
    fewer than half, nothing is said of them.
    """
    about = f"{_whole(found['mean'])}{_range(found)}"
    said = "violate" if found["exact"] else "violate (estimated)"
    seldom = part["probability_fair"] is not None and part["probability_fair"] > 0.5
    if first is None or last is None or seldom:  # none of the rounds that were looked at
        return f"{about} of {counted(n, unit)} {said}"
    until = int(last["upper"]) + 1 - begin
    if until <= _NOT_SINCE * n:
        some = counted(until, f"judged {unit}" if begin else unit)
        return f"{about} of the first {some} {said}, not once since (97.5 %)"
    return (
        f"{about} of {counted(n, unit)} {said}, the first in {unit} "
        f"{first['mean']:.0f}{_range(first)}, the last in {unit} "
        f"{last['mean']:.0f}{_range(last)}"
    )


def _exactly(found: int, first: int | None, last: int | None, n: int, begin: int, unit: str) -> str:
    """Say in how many of ``n`` rounds, and whether they have ended."""
    if not found or first is None or last is None:
        return f"in {'the one' if n == 1 else f'all {n}'} {unit if n == 1 else unit + 's'}"
    until = last + 1 - begin
    if until <= _NOT_SINCE * n:
        what = f"judged {unit}" if begin else unit
        some = f"{found} of the first {until} {what}s" if until > 1 else f"the first {what}"
        return f"in {some}, not once since"
    if found == n:
        return f"in {'the one' if n == 1 else f'all {n}'} {unit if n == 1 else unit + 's'}"
    return (
        f"in {found} of {counted(n, unit)}, the first in {unit} {first}, the last in {unit} {last}"
    )


def _whole(value: float) -> str:
    """Return a number of rounds: small means are not rounded away."""
    return f"{value:.0f}" if value >= 10 or value == round(value) else f"{value:.2g}"


def _range(part: dict[str, float]) -> str:
    if part["lower"] == part["upper"]:
        return ""
    return f" [{_whole(part['lower'])}, {_whole(part['upper'])}]"


def lead(audit: dict[str, Any], unit: str = "round") -> list[tuple[str, str, str]]:
    """Return both questions by name, the verdict of each ("" = left out), and the rest in words."""
    found = []
    for name, question in QUESTIONS.items():
        if audit[name] is None:
            found.append((question, "", "left out on request"))
            continue
        verdict = str(audit[name]["verdict"])
        words = _counts(audit, name) if "groups" in audit else question_words(audit, name, unit)
        found.append(
            (question, verdict, words.removeprefix(verdict.replace("_", " ")).lstrip(": "))
        )
    return found


def remarks(
    audit: dict[str, Any], unit: str = "round", questions: dict[str, str] = QUESTIONS
) -> list[str]:
    """Return what has to be known of how the top verdict came about, a sentence each."""
    criterion, found = audit["criterion"], []
    judge = criterion.get("judge", "both")
    if judge != "both" and audit["objective"] is not None:
        found.append(f"The verdict is that {questions[judge]} (judge: {judge}).")
    elif criterion["model"] == "truth":
        known = questions["objective"].removeprefix("under ").capitalize()
        found.append(f"{known} are known: the verdict is that under them.")
    if (error := audit.get("monte_carlo")) and error["band"] is not None:
        found.append(
            f"Probabilities are shares of {error['draws']} draws: {unit}s violate that are beyond "
            f"eps2 + {number(error['band'])}."
        )
    if criterion.get("from_round"):
        found.append(f"Judged from {unit} {criterion['from_round']} on, with beliefs from all.")
    reason = criterion.get("eps2_reason", "asked for")
    if reason != "asked for":
        found.append(f"eps2 = {criterion['eps2']:g} is {reason}.")
    return found


def verdict_lines(
    audit: dict[str, Any],
    asked: str,
    unit: str = "round",
    questions: dict[str, str] = QUESTIONS,
    answer: Callable[[dict[str, Any], str, str], str] = question_words,
) -> list[str]:
    """Return the lead of a report: the top verdict with the regret, then both by name.

    Parameters
    ----------
    audit : dict
        JSON values of one audit, or of several (``groups``).
    asked : str
        What was asked, in brackets.
    unit : str
        What is judged: rounds, or duels.
    questions : dict
        Both questions in words.
    answer : callable
        Takes the audit, a question and the unit; returns the verdict in words.
    """
    lines = [f"Verdict: {VERDICT_WORDS[audit['verdict']]}, {regret_words(audit)}   {asked}"]
    for name, question in questions.items():
        words = _counts(audit, name) if "groups" in audit else answer(audit, name, unit)
        lines.append(f"  {question:<36} {words}")
    return lines + [f"  {sentence}" for sentence in remarks(audit, unit, questions)]


def regret_line(title: str, part: dict[str, Any], unit: str = "round") -> str:
    """Return one regret in a line, with its interval and the total."""
    text = f"  {title:<36} {number(part['regret_per_round'])} per {unit}"
    if not part["exact"]:
        upper = 1 if part["upper"] is None else part["upper"]  # it is a probability
        text += f" [{number(part['lower'])}, {number(upper)}]"
    return f"{text}, {number(part['regret_total'])} in total"


def _counts(group: dict[str, Any], name: str) -> str:
    """Return the worst verdict of several logs, and how many have which."""
    if group[name] is None:
        return "left out on request"
    tally: dict[str, int] = {}
    for audit in group["groups"].values():
        verdict = str(audit[name]["verdict"])
        tally[verdict] = tally.get(verdict, 0) + 1
    order = sorted(tally, key=VERDICTS.index)
    each = ", ".join(f"{tally[verdict]} {verdict.replace('_', ' ')}" for verdict in order)
    return f"{group[name]['verdict'].replace('_', ' ')}: {each}"
