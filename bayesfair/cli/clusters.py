"""The workers that ``--scheduler`` names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["check_scheduler", "cluster", "in_parts"]


def check_scheduler(scheduler: str | None, *, resumed: bool, whole: bool) -> None:
    """Refuse what is no scheduler, and where none can help, before anything is read.

    Parameters
    ----------
    scheduler : str or None
        What was given.
    resumed, whole : bool
        Whether an earlier audit goes on, or one log is to be read in one piece.

    Raises
    ------
    OptionError
        Naming the option.
    """
    from bayesfair.errors import OptionError

    if scheduler is None:
        return
    if resumed:
        raise OptionError(
            "--scheduler does not go with --resume: what follows an audit is audited here. Leave "
            "one of them out.",
            kind="unused_option", column="scheduler", value=scheduler,
        )  # fmt: skip
    if whole:
        raise OptionError(
            "--scheduler does not go with --no-scan: workers share a log that is read in parts, or "
            "the groups of --by. Leave one of them out.",
            kind="unused_option", column="scheduler", value=scheduler,
        )  # fmt: skip
    if scheduler != "local" and "://" not in scheduler:
        raise OptionError(
            f"--scheduler {scheduler!r} is no address. Name it as tcp://HOST:PORT, or local.",
            kind="bad_option", column="scheduler", value=scheduler,
        )  # fmt: skip


@contextlib.contextmanager
def cluster(scheduler: str | None) -> Iterator[Any]:
    """Give the client of a scheduler within the block, None where none was asked for.

    Raises
    ------
    OptionError
        If distributed is not installed, or no scheduler answers there.
    """
    if scheduler is None:
        yield None
        return
    from bayesfair.errors import OptionError

    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise OptionError(
            f"--scheduler {scheduler} needs Dask: pip install 'bayesfair[distributed]'.",
            kind="not_installed", column="scheduler", value=scheduler,
        ) from None  # fmt: skip
    with contextlib.ExitStack() as stack:
        if scheduler == "local":
            workers = LocalCluster(threads_per_worker=1, dashboard_address="127.0.0.1:0")
            stack.enter_context(workers)
            client = Client(workers)
        else:
            try:
                client = Client(scheduler, timeout="10s")
            except (OSError, ValueError, TypeError) as error:
                raise OptionError(
                    f"no Dask scheduler answers at --scheduler {scheduler!r} "
                    f"({str(error)[:120]}). Name it as tcp://HOST:PORT, or local.",
                    kind="bad_option", column="scheduler", value=scheduler,
                ) from None  # fmt: skip
        yield stack.enter_context(client)


def in_parts(output: Any, columns: Any) -> bool | None:
    """Return whether a log is read in parts: workers share one that is, if not its groups."""
    return output.scan or (True if output.scheduler and columns.by is None else output.scan)
