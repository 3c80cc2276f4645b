"""The command ``bayesfair audit``: whether a logged decision history is fair."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesfair.cli.clusters import check_scheduler, cluster, in_parts
from bayesfair.cli.gate import check_level, end_on_regret, end_on_verdict
from bayesfair.cli.interrupts import at_interrupt
from bayesfair.cli.large_files import in_parts_if_large, say_work, why_whole
from bayesfair.cli.model import load_model
from bayesfair.cli.options import AUDIT_OUTPUT, AUDIT_QUESTION, LOG_COLUMNS, Values
from bayesfair.cli.resume import arms_of, earlier_audit, followed_of, go_on
from bayesfair.cli.tools import (
    check_suffix,
    check_targets,
    complain,
    report_to,
    show_progress,
    write,
)
from bayesfair.cli.value import ValueAsked

if TYPE_CHECKING:
    from bayesfair.audit import Audit, AuditGroup
    from bayesfair.audit.saved.checkpoint import Checkpoint

__all__ = ["AUDIT_HELP", "audit_command"]

AUDIT_HELP = """Audit a logged decision history.

Columns: arm, reward, and where present p_{arm} (the probability of every arm) or propensity (of the
chosen arm), timestamp.

Example: `bayesfair audit --example ecmo`

Example: `bayesfair examples ecmo`

Then: `bayesfair audit ecmo.csv --json audit.json --report audit.html`

Other columns: `bayesfair audit log.csv --arm item --reward click --order time`
"""


def audit_command(  # noqa: D103 - the help is AUDIT_HELP
    shell: typer.Context,
    columns: Annotated[Values, LOG_COLUMNS],
    question: Annotated[Values, AUDIT_QUESTION],
    output: Annotated[Values, AUDIT_OUTPUT],
    log: Annotated[
        str | None,
        typer.Argument(
            help="CSV, JSON or Parquet: a file, a folder or a glob; - for standard input."
        ),
    ] = None,
    example: Annotated[str | None, typer.Option(help="Audit a bundled log instead: ecmo.")] = None,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Run the code in --model FILE.py:build.")
    ] = False,
) -> None:
    from bayesfair.base.checks import check_in_range
    from bayesfair.errors import DataError, OptionError

    if (log is None) == (example is None):
        raise OptionError("give a LOG to audit, or --example ecmo; see bayesfair audit --help.")
    check_level(output.fail_on)
    question.model = load_model(question.model, allow_code)
    _fold_version(question)
    if output.rounds is not None and columns.by is not None:
        raise OptionError("--rounds writes one log; it cannot be combined with --by.")
    if output.max_regret_per_round is not None:
        check_in_range(output.max_regret_per_round, "--max-regret-per-round", 0, 1)
    targets = {
        "--json": output.json_file, "--rounds": output.rounds, "--save": output.save,
        "--report": output.report,
    }  # fmt: skip
    check_targets(targets, read=log, resumed=output.resume)
    check_suffix(output.rounds, "--rounds", (".parquet", ".pq"))
    earlier = None if output.resume is None else earlier_audit(output.resume, columns, shell)
    _check_rounds(output.rounds, earlier)
    columns.arms = columns.arms or arms_of(earlier)
    for name, kept in followed_of(earlier).items():
        setattr(columns, name, getattr(columns, name) or kept)
    source: Any = log if example is None else _bundled(example)
    from bayesfair.audit import Audit, audit
    from bayesfair.audit.group_text import render_group
    from bayesfair.audit.text import render
    from bayesfair.families import may_have_levels

    value = ValueAsked(output, question, columns, source, resumed=earlier is not None)
    whole = output.scan is False and columns.by is None
    check_scheduler(output.scheduler, resumed=earlier is not None, whole=whole)
    keeper = _keeper(None if output.scheduler else output.save, earlier)

    def run(data: Any) -> tuple[Audit | AuditGroup, Audit | AuditGroup]:
        """Return the audit of this log alone, and together with the earlier one."""
        _check_prior_sensitivity(output.prior_sensitivity, question.objective, data)
        value.of(data)
        say_work(
            data, question.family, question.draws if question.objective else 0,
            model=question.model is not None, rounds=output.rounds is not None,
        )  # fmt: skip
        if earlier is not None:
            return go_on(earlier, data, shell, keeper)
        with cluster(output.scheduler) as client:
            result = audit(
                data, **vars(question), progress=show_progress(), partial=keeper, client=client
            )
        return result, result

    needing = why_whole(
        by=columns.by, known_until=columns.known_until, model=question.model,
        prior_sensitivity=output.prior_sensitivity, value=output.value,
        value_rule=output.value_rule, across=question.across,
    )  # fmt: skip
    seen = earlier is None and question.support is None and may_have_levels(question.family)
    with _keeping(keeper, output.resume):
        try:
            part, result = in_parts_if_large(
                source, in_parts(output, columns), vars(columns), run, whole=needing, by_values=seen
            )
        except DataError as error:
            return write(*value.alone(error), output.json_file, shell)
        if output.prior_sensitivity:
            result = _add_prior_sensitivity(result)
        if isinstance(result, Audit) or output.json_file is not None:
            numbers = result.to_dict()
        else:
            numbers = result.brief()
        if output.rounds is not None and isinstance(part, Audit):  # never with --by
            from bayesfair.audit.log.per_round import write_rounds

            write_rounds(part, output.rounds)
        if output.save is not None:
            value.kept_in(result).save(output.save)
            if keeper is not None:
                keeper.drop()
    report_to(result, output.report, source, value=value.found)
    text = render_group(numbers) if "groups" in numbers else render(numbers)
    numbers, text = value.beside(numbers, text)
    write(numbers, text, output.json_file, shell)
    end_on_verdict(numbers, output.fail_on)
    end_on_regret(numbers, output.max_regret_per_round)


def _fold_version(question: Values) -> None:
    """Make --across and --rule-version the one option that `bayesfair.audit` takes."""
    from bayesfair.base.checks import check_choice
    from bayesfair.errors import OptionError

    version = vars(question).pop("rule_version")
    if version is None:
        return
    if question.across is None:
        raise OptionError(
            f"--rule-version {version} says within which rounds pairs are made, and --across was "
            "not given: add --across contexts.",
            kind="bad_option", column="rule_version", value=version,
        )  # fmt: skip
    check_choice(question.across, "--across", ("contexts",))
    question.across = {"rule_version": version}


def _bundled(example: str) -> Path:
    """Return the file of a bundled log."""
    from bayesfair import examples
    from bayesfair.base.checks import check_choice

    return examples.path(check_choice(example, "--example", examples.LOGS))


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
    from bayesfair.history.logs import logs_in

    if wanted and not objective:
        raise OptionError(
            "--prior-sensitivity asks about the objective verdict; leave out --no-objective."
        )
    if wanted and any(hasattr(log, "chunks") for log in logs_in(data)):
        raise OptionError(
            "--prior-sensitivity needs the whole log in memory, and this one is read in parts; "
            "add --no-scan, or leave it out."
        )


def _add_prior_sensitivity(result: Any) -> Any:
    from bayesfair.audit.truth.sensitivity import with_prior_sensitivity

    return with_prior_sensitivity(result)
