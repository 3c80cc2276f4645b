"""`write_report`: from a finished result to one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayesfair.audit import Audit, AuditGroup
from bayesfair.audit.duels.result import DuelAudit
from bayesfair.base.arguments import PATH, PLAIN, instance_of, takes
from bayesfair.base.writing import check_target, write_text
from bayesfair.comparisons import Comparisons
from bayesfair.errors import OptionError
from bayesfair.inference.comparison_problem import SCALES
from bayesfair.ranking.summary import fit_summary
from bayesfair.report import calls
from bayesfair.report.audits import group_context, groups_in_full, log_context
from bayesfair.report.duels import duel_context
from bayesfair.report.files import digests
from bayesfair.report.fits import fit_context
from bayesfair.report.labels import Labels, labels_of_page
from bayesfair.report.render import render_page
from bayesfair.typing import FilePath
from bayesfair.value import PolicyValue, value_numbers

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["report_page", "write_report"]

_COMPARISONS = instance_of("Comparisons", "NoneType", called="the comparisons that were fitted")
_LOG = PATH._replace(called="the path of the file, folder or glob that was read")

_DUEL_CALL = (
    "import bayesfair as bf\n\n"
    "duels = bf.read_duels(...)\naudit = bf.audit_comparisons(duels, ...)\n"
    "bf.write_report(audit, 'audit.html')"
)


@takes(command=PLAIN, comparisons=_COMPARISONS, log=_LOG)
def write_report(
    result: Audit | AuditGroup | DuelAudit | xr.DataTree,
    path: FilePath,
    *,
    comparisons: Comparisons | None = None,
    value: PolicyValue | Mapping[str, PolicyValue] | None = None,
    log: FilePath | None = None,
    command: str | None = None,
) -> None:
    """Write a result as one self-contained HTML page, for reading, printing and handing on.

    The page needs no network, follows the reader's light or dark mode, and carries its numbers
    (``to_dict()``; of a fit those of ``bayesfair fit --json``) as JSON. The same result gives the
    same bytes.

    Parameters
    ----------
    result : Audit, AuditGroup, DuelAudit or xarray.DataTree
        What `bayesfair.audit`, `bayesfair.load_audit`, `bayesfair.audit_comparisons`, or
        `bayesfair.fit` of comparisons returned. Of an audit that holds its log, the rounds are
        gone through once more.
    path : str or path
        File to write; one that exists is replaced once the new page is complete.
    comparisons : Comparisons, optional
        What was fitted; a fit needs it, for its links and checks.
    value : PolicyValue or mapping of label to PolicyValue, optional
        What `bayesfair.value.policy_value` returned for the audited log, or for the logs of an
        AuditGroup: shown beside the audit, and ``value`` in the JSON.
    log : str or path, optional
        File, folder or glob that was read: the page gives the SHA-256 of each file.
    command : str, optional
        Command line that made the result, shown under how to repeat it; default is the Python
        call.

    Raises
    ------
    OptionError
        If `result` is of another kind, or the file cannot be written.
    DataError
        If a file of `log` cannot be read.

    Examples
    --------
    >>> import bayesfair as bf
    >>> from bayesfair import examples
    >>> result = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "audit.html"
    ...     bf.write_report(result, page, log=examples.path("ecmo"))
    ...     page.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    try:
        target = check_target(path, "path")
        page = report_page(result, comparisons=comparisons, value=value, log=log, command=command)
        write_text(target, page)
    except BrokenPipeError:
        raise  # whoever read it has left, which is no fault
    except OSError as error:
        raise OptionError(
            f"cannot write the report to {str(path)[:200]!r}: {error.strerror or error}."
        ) from None


def report_page(
    result: Any, *, comparisons: Any = None, value: Any = None, log: FilePath | None = None,
    command: str | None = None,
) -> str:  # fmt: skip
    """Return the page that `write_report` writes."""
    repeat = {"command": command, "files": digests(log)}
    if hasattr(result, "children") and "log_worth" in str(result.attrs.get("reads", "")):
        _refuse_value(value, "a fit")
        return _fit_page(result, comparisons, repeat)
    if comparisons is not None:
        raise OptionError(
            "comparisons= goes with a fit to comparisons; leave it out for an audit.",
            kind="unused_option", column="comparisons",
        )  # fmt: skip
    numbers = result.to_dict() if hasattr(result, "to_dict") else None
    kinds = {"arms", "groups", "items"}
    if not isinstance(numbers, dict) or "verdict" not in numbers or not kinds & set(numbers):
        raise OptionError(
            f"cannot report on a {type(result).__name__}: give what bayesfair.audit, "
            "bayesfair.load_audit, bayesfair.audit_comparisons, or bayesfair.fit of comparisons "
            "returns.",
            kind="wrong_kind", column="result",
        )  # fmt: skip
    if "items" in numbers:
        _refuse_value(value, "an audit of duels")
        context = duel_context(result, numbers)
        labels = Labels([numbers["log"]["source"], *(one["item"] for one in numbers["items"])])
        return render_page("duels.html", context, numbers, labels, **repeat, call=_DUEL_CALL)
    if value is not None:
        numbers = numbers | {"value": _value_beside(numbers, value)}
    if "groups" in numbers:
        in_full = groups_in_full(result, numbers)
        labels = labels_of_page(numbers | {"groups": numbers["groups"] | in_full})
        context = group_context(result, numbers, in_full, labels)
        call = calls.call(context["first"], several=True)
        return render_page("groups.html", context, numbers, labels, **repeat, call=call)
    context = log_context(result, numbers)
    call = calls.call(numbers, several=False)
    return render_page("audit.html", context, numbers, labels_of_page(numbers), **repeat, call=call)


def _refuse_value(value: Any, what: str) -> None:
    if value is not None:
        raise OptionError(
            f"value= goes with an audit of a log; leave it out for {what}.",
            kind="unused_option", column="value",
        )  # fmt: skip


def _value_beside(numbers: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return the numbers of the values of rules, of the logs that were audited."""
    several = isinstance(value, Mapping)
    if not all(isinstance(one, PolicyValue) for one in (value.values() if several else [value])):
        raise OptionError(
            "value= must be what bayesfair.value.policy_value returned, got "
            f"{type(value).__name__}.",
            kind="option_value", column="value",
        )  # fmt: skip
    labels = numbers.get("groups")
    if (set(map(str, value)) if several else None) != (None if labels is None else set(labels)):
        raise OptionError(
            "value= is not of the logs that were audited: give policy_value the same log, or "
            "mapping of logs, as audit.",
            kind="not_the_same", column="value",
        )  # fmt: skip
    return value_numbers(value)


def _fit_page(tree: Any, comparisons: Any, repeat: dict[str, Any]) -> str:
    if comparisons is None:
        raise OptionError(
            "a report of a fit needs what was fitted, for its links and checks: give "
            "write_report(fit, path, comparisons=...).",
            kind="missing_option", column="comparisons",
        )  # fmt: skip
    numbers = fit_summary(tree, comparisons)
    seed = int(tree.attrs["seed"]) if str(tree.attrs.get("seed", "")).isdigit() else 0
    context = fit_context(tree, comparisons, numbers, seed)
    labels = Labels([comparisons.source, *(item["item"] for item in numbers["items"])])
    call = (
        "import bayesfair as bf\n\n"
        f"comparisons = bf.read_comparisons({comparisons.source!r}, ...)\n"
        f"fit = bf.fit(comparisons, {_fit_options(tree)})\n"
        "bf.write_report(fit, 'fit.html', comparisons=comparisons)"
    )
    return render_page("fit.html", context, numbers, labels, **repeat, call=call)


def _fit_options(tree: Any) -> str:
    """Return the options of `bayesfair.fit` that its tree tells and that are no defaults."""
    of, found = tree.attrs, [f"model={tree.attrs['model']!r}"]
    if of["ties"] in ("half", "drop"):
        found.append(f"ties={of['ties']!r}")
    for name, usual in ({"prior_sd": 1.0} | SCALES).items():
        if float(of.get(name, usual)) != usual:
            found.append(f"{name}={float(of[name])!r}".replace("=inf", "=float('inf')"))
    if of["method"] == "nuts":
        found.append("method='nuts'")
    if of["method"] != "mle":
        found += [f"draws={of['draws']}", f"seed={of['seed']}"]
    return ", ".join(found)
