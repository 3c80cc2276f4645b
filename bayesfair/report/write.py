"""`write_report`: from a finished audit to one HTML file."""

from __future__ import annotations

import json
from typing import Any

from bayesfair.audit import Audit, AuditGroup
from bayesfair.audit.context_text import WITHOUT, context_table, without_words
from bayesfair.audit.group_text import collected_notices, group_columns, worst_first
from bayesfair.audit.log.check_words import check_rows
from bayesfair.audit.log.verdict_words import lead, regret_words, remarks
from bayesfair.audit.text import (
    VERDICT_WORDS,
    arm_columns,
    hangs_words,
    log_words,
    show_worst,
)
from bayesfair.base.arguments import PLAIN, takes
from bayesfair.base.checks import counted
from bayesfair.base.shown import MOST_ROWS, number
from bayesfair.base.writing import check_target, write_text
from bayesfair.errors import OptionError
from bayesfair.report import words
from bayesfair.report.figures import audit_figures, group_figures
from bayesfair.report.labels import LONGEST, Labels, clean, labels_of_page
from bayesfair.typing import FilePath

__all__ = ["write_report"]

_MOST_ARMS = 100
_MOST_ARMS_OF_A_GROUP = 10
_MOST_GROUPS_IN_FULL = 12
_MOST_GROUPS = 1000
_MOST_QUANTITIES = 40


@takes(command=PLAIN)
def write_report(audit: Audit | AuditGroup, path: FilePath, *, command: str | None = None) -> None:
    """Write an audit as one self-contained HTML page, for reading, printing and handing on.

    The page needs no network, follows the reader's light or dark mode, and carries the numbers of
    ``audit.to_dict()`` as JSON. The same audit gives the same bytes.

    Parameters
    ----------
    audit : Audit, AuditGroup or loaded audit
        What `bayesfair.audit` or `bayesfair.load_audit` returns.
    path : str or path
        File to write; one that exists is replaced once the new page is complete.
    command : str, optional
        Command line that made the audit, shown under how to repeat it; default is the Python
        call.

    Raises
    ------
    OptionError
        If `audit` is no audit of a log, or the file cannot be written.

    Examples
    --------
    >>> import bayesfair as bf
    >>> from bayesfair import examples
    >>> result = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bf.write_report(result, pathlib.Path(folder) / "audit.html")
    ...     (pathlib.Path(folder) / "audit.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    try:
        target = check_target(path, "path")
        page = report_page(audit, command=command)
        write_text(target, page)
    except BrokenPipeError:
        raise  # whoever read it has left, which is no fault
    except OSError as error:
        raise OptionError(
            f"cannot write the report to {str(path)[:200]!r}: {error.strerror or error}."
        ) from None


def report_page(audit: Any, *, command: str | None = None) -> str:
    """Return the page that `write_report` writes."""
    numbers = audit.to_dict() if hasattr(audit, "to_dict") else None
    if not isinstance(numbers, dict) or not ("arms" in numbers or "groups" in numbers):
        raise OptionError(
            f"cannot report on a {type(audit).__name__}: give what bayesfair.audit or "
            "bayesfair.load_audit returns."
        )
    if "groups" in numbers:
        in_full = _in_full(audit, numbers)
        labels = labels_of_page(numbers | {"groups": numbers["groups"] | in_full})
        context = _group_context(numbers, in_full, labels)
        return _render("groups.html", context, numbers, labels, command)
    labels = labels_of_page(numbers)
    series = audit.series() if hasattr(audit, "series") else None
    context = _audit_context(numbers, _MOST_ARMS)
    context["figures"] = audit_figures(numbers, series)
    return _render("audit.html", context, numbers, labels, command)


def _audit_context(numbers: dict[str, Any], most_arms: int) -> dict[str, Any]:
    columns = arm_columns(numbers)
    arms, chosen_how = _shown_arms(numbers, most_arms)
    if numbers["log"]["selection"] == "chosen":
        n = max(numbers["log"]["n_judged"], 1)
        columns.append(("share of choices", lambda arm: number(arm["n"] / n)))
    return {
        "audit": numbers,
        "sentences": words.verdict_sentences(numbers),
        "headline": words.HEADLINE[numbers["verdict"]],
        "worst_shown": show_worst(numbers),
        "unchecked": words.unchecked(numbers),
        "check_rows": check_rows(numbers["checks"]),
        "arm_headings": [name for name, _ in columns],
        "arm_rows": [[cell(arm) for _, cell in columns] for arm in arms],
        "arm_statement": chosen_how,
        "contexts": _contexts(numbers),
    }


def _contexts(numbers: dict[str, Any]) -> dict[str, Any] | None:
    """Return the table of contexts, where beliefs are given one."""
    if "context" not in numbers:
        return None
    title, headings, rows, _ = context_table(numbers)
    more = max(len(rows) - MOST_ROWS, 0)
    return {
        "title": title, "headings": headings, "rows": rows[:MOST_ROWS], "n_unlisted": more,
        "without": f"{without_words(numbers['context'])} {WITHOUT}",
    }  # fmt: skip


def _shown_arms(numbers: dict[str, Any], most: int) -> tuple[list[dict[str, Any]], str]:
    """Return the arms of the table and, where it is not all of them, how they were chosen."""
    arms, n = numbers["arms"], max(numbers["log"]["n_judged"], 1)
    if len(arms) <= most:
        return arms, ""

    def gap(arm: dict[str, Any]) -> float:
        share = arm["n"] / n if arm["selection_mean"] is None else arm["selection_mean"]
        return -abs(float(share) - float(arm["p_best_subjective"] or 0.0))

    shown = sorted(arms, key=gap)[:most]
    known = numbers["log"]["selection"] == "full"
    what = "mean selection probability" if known else "share of the choices"
    return shown, (
        f"{most} of {len(arms)} arms are shown, those whose {what} lies furthest from P* believed, "
        f"furthest first; {counted(len(arms) - most, 'arm')} not shown. The JSON in this file "
        "lists all of them."
    )


def _in_full(audit: Any, numbers: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return everything of the groups that are shown in full: of all, or of the worst."""
    groups = numbers["groups"]
    shown = list(groups) if len(groups) <= _MOST_GROUPS_IN_FULL else (
        worst_first(groups)[:_MOST_GROUPS_IN_FULL]
    )  # fmt: skip
    brief = numbers["detail"] == "brief"
    return {label: audit[label].to_dict() if brief else groups[label] for label in shown}


def _group_context(
    numbers: dict[str, Any], in_full: dict[str, dict[str, Any]], labels: Labels
) -> dict[str, Any]:
    groups: dict[str, dict[str, Any]] = numbers["groups"]
    listed = list(groups) if len(groups) <= _MOST_GROUPS else worst_first(groups)[:_MOST_GROUPS]
    columns = group_columns()
    return {
        "audit": numbers,
        "sentences": words.group_sentences(numbers),
        "headline": words.GROUP_HEADLINE[numbers["verdict"]],
        "group_headings": ["group", *(name for name, _ in columns)],
        "group_rows": [
            [label, groups[label]["verdict"], *(cell(groups[label]) for _, cell in columns[1:])]
            for label in listed
        ],
        "n_unlisted": len(groups) - len(listed),
        "in_full": [(label, _audit_context(one, _MOST_ARMS_OF_A_GROUP))
                    for label, one in in_full.items()],
        "n_in_brief": len(groups) - len(in_full),
        "notices": collected_notices(numbers, {label: labels.text(label) for label in groups}),
        "first": next(iter(in_full.values())),
        "figures": group_figures(numbers),
    }  # fmt: skip


def _most_sensitive(quantities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the quantities of the table of sensitivities: in order, or the most sensitive."""
    if len(quantities) <= _MOST_QUANTITIES:
        return quantities
    return sorted(quantities, key=lambda q: -float(q["prior"] or 0.0))[:_MOST_QUANTITIES]


def _render(
    template: str, context: dict[str, Any], numbers: dict[str, Any], labels: Labels, command: Any
) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bayesfair.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters |= {"number": number, "label": labels.shown, "short": labels.text}
    environment.globals |= {
        "verdict_word": VERDICT_WORDS,
        "lead": lead,
        "remarks": remarks,
        "regret_words": regret_words,
        "log_words": log_words,
        "criterion_rows": words.criterion_rows,
        "exactness": words.exactness,
        "counted": counted,
        "cut": labels.cut,
        "longest": LONGEST,
        "most_quantities": _MOST_QUANTITIES,
        "most_sensitive": _most_sensitive,
        "prior_sentence": hangs_words,
    }
    return environment.get_template(template).render(
        **context,
        limits=words.limits(context["audit"]["criterion"]),
        command=command,
        call=words.call(context.get("first", numbers), several="groups" in numbers),
        json_text=_script_safe(numbers),
    )


def _script_safe(numbers: dict[str, Any]) -> str:
    """Return JSON that cannot end or change the script element it stands in."""
    text = json.dumps(numbers, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
