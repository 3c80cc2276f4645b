"""The command ``bayesfair audit``: whether a logged decision history is fair."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayesfair.cli import options as opt
from bayesfair.cli.interrupts import at_interrupt
from bayesfair.cli.large_files import in_parts_if_large, say_work, why_whole
from bayesfair.cli.resume import arms_of, earlier_audit, go_on, unique_of
from bayesfair.cli.tools import (
    Progress,
    check_suffix,
    check_targets,
    complain,
    labels,
    words,
    write,
)
from bayesfair.cli.tools import numbers as numbers_of

if TYPE_CHECKING:
    from bayesfair.audit import Audit, AuditGroup
    from bayesfair.audit.saved.checkpoint import Checkpoint

__all__ = ["AUDIT_HELP", "audit_command"]


_EXIT = {
    "unfair": ("unfair",),
    "inconsistent": ("unfair", "inconsistent"),
    "undetermined": ("unfair", "inconsistent", "undetermined", "not_auditable"),
}
"""--fail-on -> what ends with status 1; a log that contradicts itself is no fair one."""


AUDIT_HELP = """Audit a logged decision history.

Columns: arm, reward, and where present p_{arm} (the probability of every arm) or propensity (of the
chosen arm), timestamp.

Example: `bayesfair audit --example ecmo`

Example: `bayesfair audit log.csv --arm item_id --reward click --propensity p --order timestamp`
"""


def audit_command(  # noqa: D103, PLR0917 - typer: the help is AUDIT_HELP, options are arguments
    context: typer.Context,
    log: opt.Log = None,
    example: opt.ExampleLog = None,
    arm: opt.Arm = "arm",
    reward: opt.Reward = "reward",
    propensity: opt.Propensity = None,
    probabilities: opt.Probabilities = None,
    order: opt.Order = None,
    by: opt.By = None,
    arms: opt.Arms = None,
    offered: opt.OfferedArms = None,
    offered_delimiter: opt.OfferedDelimiter = "|",
    known_at: opt.KnownAt = None,
    known_until: opt.KnownUntil = None,
    unique: opt.Unique = None,
    rewards: opt.RewardWords = None,
    missing: opt.MissingRewards = "error",
    delimiter: opt.Delimiter = None,
    decimal: opt.Decimal = ".",
    probability_tolerance: opt.ProbabilityTolerance = None,
    eps1: opt.Eps1 = 2.0,
    eps2: opt.Eps2 = None,
    delta: opt.Delta = 0.05,
    divergence: opt.Divergence = "total_variation",
    reward_divergence: opt.RewardDivergence = None,
    family: opt.Family = "auto",
    prior: opt.Prior = None,
    support: opt.Support = None,
    model: opt.RewardModel = None,
    tolerance: opt.Tolerance = None,
    draws: opt.Draws = 4000,
    seed: opt.Seed = 0,
    objective: opt.Objective = True,
    from_round: opt.FromRound = 0,
    judge: opt.Judge = "both",
    prior_sensitivity: opt.PriorSensitivity = False,
    json_file: opt.JsonFile = None,
    rounds: opt.RoundsFile = None,
    save: opt.SaveAudit = None,
    resume: opt.Resume = None,
    report: opt.Report = None,
    fail_on: opt.FailOn = None,
    max_regret_per_round: opt.MaxRegretPerRound = None,
    scan: opt.Scan = None,
) -> None:
    from bayesfair.base.checks import check_choice, check_in_range
    from bayesfair.errors import OptionError

    if (log is None) == (example is None):
        raise OptionError("give a LOG to audit, or --example ecmo; see bayesfair audit --help.")
    if fail_on is not None:
        check_choice(fail_on, "--fail-on", tuple(_EXIT))
    if rounds is not None and by is not None:
        raise OptionError("--rounds writes one log; it cannot be combined with --by.")
    if max_regret_per_round is not None:
        check_in_range(max_regret_per_round, "--max-regret-per-round", 0, 1)
    targets = {"--json": json_file, "--rounds": rounds, "--save": save, "--report": report}
    check_targets(targets, read=log, resumed=resume)
    check_suffix(rounds, "--rounds", (".parquet", ".pq"))
    earlier = None if resume is None else earlier_audit(resume, context)
    _check_rounds(rounds, earlier)
    source: Any = log
    if example is not None:
        from bayesfair import examples

        source = examples.path(check_choice(example, "--example", examples.LOGS))
    columns: dict[str, Any] = dict(
        arm=arm,
        reward=reward,
        propensity=propensity,
        probabilities=probabilities,
        order=order,
        by=by,
        arms=arms if arms == "by_group" else labels(arms, "--arms") or arms_of(earlier),
        offered=offered,
        offered_delimiter=offered_delimiter,
        known_at=known_at,
        known_until=known_until,
        unique=unique or unique_of(earlier),
        rewards=words(rewards, "--rewards"),
        missing=missing,
        delimiter=delimiter,
        decimal=decimal,
        probability_tolerance=probability_tolerance,
    )
    from bayesfair.audit import Audit, audit
    from bayesfair.audit.group_text import render_group
    from bayesfair.audit.text import render

    keeper = _keeper(save, earlier)

    def run(data: Any) -> tuple[Audit | AuditGroup, Audit | AuditGroup]:
        """Return the audit of this log alone, and together with the earlier one."""
        _check_prior_sensitivity(prior_sensitivity, objective, data)
        say_work(data, family, draws if objective else 0)
        with Progress(data) as progress:
            if earlier is not None:
                return go_on(earlier, data, context, progress.advance, keeper)
            result = audit(
                data,
                eps1=eps1,
                eps2=eps2,
                delta=delta,
                divergence=divergence,
                reward_divergence=reward_divergence,
                family=family,
                prior=numbers_of(prior, "--prior"),
                support=numbers_of(support, "--support"),
                model=model,
                objective=objective,
                tolerance=tolerance,
                draws=draws,
                seed=seed,
                from_round=from_round,
                judge=judge,
                progress=progress.advance,
                partial=keeper,
            )
            return result, result

    whole = why_whole(
        by=by, known_until=known_until, model=model, prior_sensitivity=prior_sensitivity
    )
    seen = earlier is None and support is None and family in ("auto", "finite")
    with _keeping(keeper, resume):
        part, result = in_parts_if_large(source, scan, columns, run, whole=whole, by_values=seen)
        result = _add_prior_sensitivity(result) if prior_sensitivity else result
        numbers = result.to_dict()
        if rounds is not None and isinstance(part, Audit):  # --rounds and --by exclude each other
            from bayesfair.audit.log.per_round import write_rounds

            write_rounds(part, rounds)
        if save is not None:
            result.save(save)
            if keeper is not None:
                keeper.drop()
    _write_report(result, report)
    text = render_group(numbers) if "groups" in numbers else render(numbers)
    write(numbers, text, json_file, context)
    if fail_on is not None:
        _check_verdict(numbers, fail_on)
    if max_regret_per_round is not None:
        _check_regret(numbers, max_regret_per_round)


def _check_rounds(rounds: Path | None, earlier: Audit | AuditGroup | None) -> None:
    """Refuse --rounds of an interrupted audit that began with other logs: they are not at hand."""
    from bayesfair.audit import Audit
    from bayesfair.errors import OptionError

    begun = earlier.unfinished if isinstance(earlier, Audit) else None
    if rounds is not None and begun is not None and begun.before:
        raise OptionError(
            f"--rounds needs every round, and the audit in this file began with {begun.before} "
            "rounds of logs before this one. Leave --rounds out.",
            kind="unused_option",
            column="rounds",
        )


def _keeper(save: Path | None, earlier: Audit | AuditGroup | None) -> Checkpoint | None:
    """Return where the audit is kept on its way to the file that it is to be saved in.

    One that goes on from an audit of several logs is not: the file of that one stays as it is.
    """
    if save is None or (save.exists() and not save.is_file()):  # a device or a pipe
        return None
    from bayesfair.audit import AuditGroup
    from bayesfair.audit.saved.checkpoint import Checkpoint

    if isinstance(earlier, AuditGroup) and not earlier.unfinished:
        return None

    return Checkpoint(f"{save}.partial")


@contextlib.contextmanager
def _keeping(keeper: Checkpoint | None, resume: Path | None) -> Iterator[None]:
    """Within the block, Ctrl-C keeps what has been audited, and says how to go on."""
    nothing = (
        f"nothing {'of this audit' if resume is None else f'beyond {resume}'} is kept; with --scan "
        "--save FILE, what has been audited between the parts of a log is kept in FILE.partial, "
        "and --resume goes on from there."
    )
    lock = threading.Lock()
    said: list[str] = []

    def say_once() -> None:
        # the command ends by itself, or is ended while it does: whichever is first says it
        with lock:
            if not said:
                said.append((keeper and keeper.last_words()) or nothing)
                complain(said[0])

    with at_interrupt(say_once):
        try:
            yield
        except KeyboardInterrupt:
            say_once()
            raise


def _check_prior_sensitivity(wanted: bool, objective: bool, data: Any) -> None:
    """Refuse the question about the prior where no posterior can answer it."""
    from bayesfair.errors import OptionError

    if wanted and not objective:
        raise OptionError(
            "--prior-sensitivity asks about the objective verdict; leave out --no-objective."
        )
    logs = data.values() if isinstance(data, dict) else [data]
    if wanted and any(hasattr(log, "chunks") for log in logs):
        raise OptionError(
            "--prior-sensitivity needs the whole log in memory, and this one is read in parts; "
            "add --no-scan, or leave it out."
        )


def _add_prior_sensitivity(result: Any) -> Any:
    from bayesfair.audit.truth.sensitivity import with_prior_sensitivity

    return with_prior_sensitivity(result)


def _write_report(result: Any, target: Path | None) -> None:
    """Write the page for readers where asked, with the command that made it."""
    if target is None:
        return
    import shlex

    from bayesfair.report import write_report

    write_report(result, target, command=shlex.join(["bayesfair", *sys.argv[1:]]))


def _check_verdict(numbers: dict[str, Any], level: str) -> None:
    """End with status 1 where the verdict, or the log itself, is bad enough."""
    from bayesfair.audit.log.verdict_words import one_line

    found = []
    if numbers["verdict"] in _EXIT[level]:
        found.append(one_line(numbers))
    if not numbers["consistent"] and "inconsistent" in _EXIT[level]:
        found.append("the log contradicts itself")
    if found:
        print(f"{', '.join(found)} (--fail-on {level})", file=sys.stderr)
        raise typer.Exit(1)


def _check_regret(numbers: dict[str, Any], limit: float) -> None:
    failed = False
    for label, audit in (numbers.get("groups") or {"": numbers}).items():
        lower = audit["calibration"]["subjective"]["lower"]
        if lower is not None and lower > limit:
            group = f" of group {label}" if label else ""
            print(
                f"fairness regret per round{group} is at least {lower:.6g}, above {limit:g} "
                "(--max-regret-per-round)",
                file=sys.stderr,
            )
            failed = True
    if failed:
        raise typer.Exit(1)
