"""The audit as plain text for a terminal, from the same values as its JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayesfair.audit.context_text import across_lines, context_lines
from bayesfair.audit.criterion import QUESTIONS
from bayesfair.audit.log.check_words import check_line, contradiction_lines
from bayesfair.audit.log.intervals import wilson_interval
from bayesfair.audit.log.verdict_words import (
    VERDICT_WORDS,
    interval_words,
    prior_title,
    question_words,
    regret_line,
    verdict_lines,
)
from bayesfair.base.checks import counted
from bayesfair.base.shown import MOST_ROWS, fitted, number, shortened, table, visible, wrapped
from bayesfair.base.value_text import render_value

__all__ = [
    "VERDICT_WORDS",
    "arm_columns",
    "asked",
    "divergence_words",
    "hangs_words",
    "listing",
    "log_words",
    "modelled_lines",
    "modelled_words",
    "notice_lines",
    "render",
    "sensitivity_lines",
    "show_worst",
]

Columns = list[tuple[str, Callable[[dict[str, Any]], str]]]

_MEANINGS = (
    "P*: probability that an arm's reward is the highest. The eps2 a log needs: the largest "
    "divergence of two arms' probabilities in a round, less eps1 times that of their rewards."
)


def render(audit: dict[str, Any]) -> str:
    """Return the report of one audit."""
    log, criterion = audit["log"], audit["criterion"]
    head = [
        f"Fairness audit of {visible(log['source'])}",
        f"  {log_words(log)}",
        "",
        *verdict_lines(audit, asked(criterion)),
        *contradiction_lines(audit),
        "",
        *_smooth_lines(audit),
        "",
        *_calibration_lines(audit),
        *_utility_lines(audit),
        *modelled_lines(audit),
        *across_lines(audit),
    ]
    tested = check_line(audit["checks"])
    foot = [
        *([tested] if tested else []),
        " ".join([f"{prior_title(criterion)}: {criterion['prior']}.", *interval_words(audit)]),
        *wrapped(_MEANINGS, "", 90),
    ]
    lines = [
        *fitted(head),
        *_sensitivity_lines(audit),
        "",
        *listing(arm_columns(audit), audit["arms"]),
        "",
        *context_lines(audit),
        *fitted(foot),
        *notice_lines(audit),
        *(["", render_value(audit["value"])] if "value" in audit else []),
    ]
    return "\n".join(lines)


def log_words(log: dict[str, Any]) -> str:
    """Return what was logged, in one line."""
    return (
        f"{_rounds_words(log)}, {counted(log['n_arms'], 'arm')}, "
        + {
            "full": "the whole decision rule logged",
            "chosen": "only the chosen arm's probability logged",
            "none": "no probabilities logged",
        }[log["selection"]]
        + (
            f", {counted(log['n_unobserved'], 'reward')} not observed"
            if log["n_unobserved"]
            else ""
        )
        + (f", {counted(log['n_skipped'], 'row')} left out" if log["n_skipped"] else "")
        + (", in the order of the rows (no times were read)" if log["order"] == "rows" else "")
    )


def _rounds_words(log: dict[str, Any]) -> str:
    judged = log.get("n_judged", log["n_rounds"])
    some = "" if judged == log["n_rounds"] else f" ({judged} of them judged)"
    return counted(log["n_rounds"], "round") + some


def asked(criterion: dict[str, Any]) -> str:
    """Return what was asked, in one pair of brackets."""
    return (
        f"(eps1 = {criterion['eps1']:g}, eps2 = {criterion['eps2']:g}, "
        f"delta = {criterion['delta']:g}, {divergence_words(criterion)})"
    )


def divergence_words(criterion: dict[str, Any]) -> str:
    """Return the names of the divergences."""
    decisions, rewards = criterion["divergence"], criterion["reward_divergence"]
    words = decisions.replace("_", " ")
    return words if decisions == rewards else f"{words} on decisions, {rewards} on rewards"


def _posterior(audit: dict[str, Any]) -> str:
    """Say where the true rewards come from."""
    criterion = audit["criterion"]
    known = criterion["model"] == "truth"
    return " (known)" if known else f" ({criterion['draws']} draws)"


def show_worst(audit: dict[str, Any]) -> bool:
    """Return whether a worst round is worth naming: it needs more than the log resolves."""
    needed = audit["subjective"]["smallest_eps2"]
    if audit["subjective"]["worst"] is None or needed is None:
        return False
    return isinstance(needed, str) or needed > audit["criterion"]["tolerance"]


def _smooth_lines(audit: dict[str, Any]) -> list[str]:
    subjective, objective, eps1 = (
        audit["subjective"],
        audit["objective"],
        audit["criterion"]["eps1"],
    )
    lines = ["Smooth fairness: similar arms, similar probabilities"]
    if covered := audit.get("covered"):
        return [*lines, *_covered_lines(covered, audit)]
    if subjective["verdict"] == "not_auditable":
        return [*lines, f"  {question_words(audit, 'subjective')}"]
    lines.append(
        f"  {QUESTIONS['subjective']:<36} the log needs eps2 = "
        f"{number(subjective['smallest_eps2'])} at eps1 = {eps1:g}"
    )
    worst = subjective["worst"]
    if show_worst(audit):
        of = f" of {worst['source']}" if "source" in worst else ""
        row = "" if worst["row"] is None else f" (row {worst['row']}{of})"
        lines.append(
            f"  worst round {worst['round']}{row}: {worst['arm']!r} was favoured over "
            f"{worst['arm_other']!r}"
        )
    if objective is not None and objective["smallest_eps2"] is not None:
        eps2 = objective["smallest_eps2"]
        known = audit["criterion"]["model"] == "truth"
        limits = "" if known else f" [{number(eps2['lower'])}, {number(eps2['upper'])}]"
        lines.append(
            f"  {QUESTIONS['objective'] + _posterior(audit):<36} it needs eps2 = "
            f"{number(eps2['mean'])}{limits}"
        )
    shown = [f for f in audit["frontier"] if f["eps1"] in (0, 0.5, 1, 2) or f["eps1"] == eps1]
    if shown and shown[0]["subjective"] is not None:
        lines.append(
            f"  {'smallest eps2 by eps1:':<36} "
            + ",  ".join(f"{f['eps1']:g}: {number(f['subjective'])}" for f in shown)
        )
    return lines


def _covered_lines(covered: dict[str, Any], audit: dict[str, Any]) -> list[str]:
    """Show what pairs amount to where the probabilities of some arms are known."""
    pairs, eps1 = covered["pairs"], audit["criterion"]["eps1"]
    lines = [f"  {'pairs known, counted in every round':<36} {pairs['known']} of {pairs['all']}"]
    for name, title in (("subjective", QUESTIONS["subjective"]),
                        ("objective", QUESTIONS["objective"] + _posterior(audit))):  # fmt: skip
        if part := covered[name]:
            low, high = (number(part["smallest_eps2"][end]) for end in ("lower", "upper"))
            lines.append(f"  {title:<36} the log needs eps2 = {low} to {high} at eps1 = {eps1:g}")
    if worst := covered["subjective"]["worst"]:
        row = "" if worst["row"] is None else f" (row {worst['row']})"
        lines.append(
            f"  worst round {worst['round']}{row}, by what is known: {worst['arm']!r} was favoured "
            f"over {worst['arm_other']!r}"
        )
    return lines


def _calibration_lines(audit: dict[str, Any]) -> list[str]:
    calibration = audit["calibration"]
    lines = ["Calibrated fairness: fairness regret, the shortfall from P* (best-arm probability)"]
    for name, title in (
        ("subjective", "under the beliefs"),
        ("objective", "under the true rewards" + _posterior(audit)),
    ):
        part = calibration[name]
        if part["regret_per_round"] is None:
            if part["lower"] is not None:
                lines.append(f"  {title:<36} at least {number(part['lower'])} per round (95 %)")
            continue
        lines.append(regret_line(title, part))
    if calibration["effective_sample_size"] is not None and audit["log"]["selection"] == "chosen":
        lines.append(
            f"  check of the probabilities, weights P*_a/pi_a: effective sample size "
            f"{number(calibration['effective_sample_size'], 1)}, mean "
            f"{number(calibration['mean_weight'])}, largest {number(calibration['max_weight'], 1)}"
        )
    if len(lines) == 1:
        lines.append("  no value: see the notices")
    return lines


def _utility_lines(audit: dict[str, Any]) -> list[str]:
    """Show utility beside fairness, where the true rewards are known."""
    found = audit.get("utility")
    if found is None:
        return []
    return [
        "",
        f"Utility under the known truth: {number(found['reward_per_round'])} reward per round, "
        f"standard regret {number(found['standard_regret'], 1)} in total "
        f"({number(found['standard_regret_per_round'])} per round)",
    ]


def modelled_words(found: dict[str, Any], title: str) -> str:
    """Return what a rule needs and lacks, one line with its intervals."""
    eps2, regret = (
        f"{number(x['mean'])} [{number(x['lower'])}, {number(x['upper'])}]"
        for x in (found["smallest_eps2"], found["regret_per_round"])
    )
    return f"{title}: it needs eps2 = {eps2}, regret {regret} per round"


def modelled_lines(audit: dict[str, Any]) -> list[str]:
    """Show what a rule that was estimated from the choices amounts to, where that was asked."""
    found = audit.get("modelled")
    if found is None:
        return []
    windows = counted(found["n_windows"], "window")
    return [
        "",
        f"Rule estimated from the choices (a model, no part of the verdict): {windows} of "
        f"{found['window']} rounds, {found['prior']}",
        f"  {modelled_words(found, 'as estimated')}",
        f"  {modelled_words(found['if_calibrated'], 'choices drawn from P* would show')}",
    ]


def _sensitivity_lines(audit: dict[str, Any]) -> list[str]:
    """Show how the objective verdict reacts to the prior, where that was asked."""
    found = audit.get("prior_sensitivity")
    return [] if found is None else ["", *sensitivity_lines(found)]


def hangs_words(found: dict[str, Any]) -> str:
    """Say whether the verdict hangs on the prior, and within which of its powers."""
    if found["hangs_on_prior"] is None:
        return "There is no objective verdict that could hang on the prior."
    trusted = [row["power"] for row in found["powers"] if row["trusted"]]
    does = "hangs" if found["hangs_on_prior"] else "does not hang"
    return (
        f"The objective verdict {does} on the prior within powers {min(trusted):g} to "
        f"{max(trusted):g}."
    )


def sensitivity_lines(found: dict[str, Any]) -> list[str]:
    """Return the report of a sensitivity to the prior, from its JSON."""
    powers, quantities = found["powers"], found["quantities"]
    rows = [
        [
            f"{row['power']:g}",
            row["verdict"].replace("_", " "),
            number(row["probability_fair"]),
            number(row["regret_per_round"]),
            number(row["khat"], 2),
            "" if row["trusted"] else "no",
        ]
        for row in powers
    ]
    header = ["power", "verdict", "p(fair)", "regret per round", "k-hat", "to be trusted"]
    if all(row["trusted"] for row in powers):
        header, rows = header[:-1], [row[:-1] for row in rows]
    lines = [
        "Sensitivity to the prior: raised to powers, draws reweighted, nothing fitted again",
        *table(header, rows),
    ]
    if found["hangs_on_prior"] is not None:
        lines.append(f"  {hangs_words(found)}")
    shown = {q["quantity"] for q in sorted(quantities, key=lambda q: -q["prior"])[:MOST_ROWS]}
    kept = [q for q in quantities if q["quantity"] in shown]
    rows = [
        [name, number(q["prior"]), number(q["likelihood"]), q["diagnosis"]]
        for name, q in zip(shortened(q["quantity"] for q in kept), kept, strict=True)
    ]
    header = ["sensitivity (0.05: much)", "prior", "likelihood", "diagnosis"]
    lines += ["", *table(header, rows, n=len(quantities), rest="less sensitive to the prior")]
    return lines


def arm_columns(audit: dict[str, Any]) -> Columns:
    """Return the columns of the table of arms: a heading, and the text of an arm's cell."""
    arms, log = audit["arms"], audit["log"]
    frequencies = log["selection"] == "none"
    columns: Columns = [
        ("arm", lambda a: str(a["arm"])),
        ("n", lambda a: str(a["n"])),
        ("mean reward", lambda a: number(a["reward_mean"])),
        ("P* believed", lambda a: number(a["p_best_subjective"])),
    ]
    if any(a["p_best_objective"] is not None for a in arms):
        known = audit["criterion"]["model"] == "truth"
        columns.append(
            ("P* true" if known else "P* posterior", lambda a: number(a["p_best_objective"]))
        )
    if frequencies:
        columns.append(("share", lambda a: number(a["selection_mean"])))
        columns.append(("95 %", lambda a: _share_interval(a["n"], log["n_judged"])))
    elif any(a["selection_mean"] is not None for a in arms):
        columns.append(("mean selection", lambda a: number(a["selection_mean"])))
    if any(a["n_unobserved"] for a in arms):
        columns.append(("not observed", lambda a: str(a["n_unobserved"])))
    return columns


def listing(columns: Columns, entries: list[dict[str, Any]]) -> list[str]:
    """Return the table of arms or items; the first column names them."""
    shown = entries[:MOST_ROWS]
    names = shortened(columns[0][1](entry) for entry in shown)
    rows = [
        [name, *(cell(entry) for _, cell in columns[1:])]
        for name, entry in zip(names, shown, strict=True)
    ]
    return table([name for name, _ in columns], rows, n=len(entries))


def notice_lines(audit: dict[str, Any]) -> list[str]:
    """Return the notices under their heading; nothing where there are none."""
    lines = [line for notice in audit["notices"] for line in wrapped(notice)]
    return ["", "Notices", *lines] if lines else []


def _share_interval(n: int, total: int) -> str:
    low, high = wilson_interval(n, total)
    return f"[{low:.4f}, {high:.4f}]"
