"""The workers of a Dask cluster: tasks handed out, waited for, and done again where one is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bayesfair.errors import BayesfairError, DataError, OptionError

__all__ = ["check_workers", "results_of", "spread", "wait_for"]


def check_workers(client: Any) -> None:
    """Refuse what is no client.

    Raises
    ------
    OptionError
        Saying what it must be.
    """
    if not callable(getattr(client, "submit", None)) or not callable(
        getattr(client, "gather", None)
    ):
        raise OptionError(
            f"client={client!r:.60} must be a dask.distributed.Client.",
            kind="bad_option",
            column="client",
        )


def spread[Found](
    client: Any,
    labels: Sequence[str],
    make: Callable[..., Found],
    arguments: Callable[[str], Any],
    *,
    at_once: int = 16,
    seen: Callable[[int], None] | None = None,
) -> dict[str, Found]:
    """Return what `make` makes of each label, ``at_once`` labels per task, most being small.

    Parameters
    ----------
    client : distributed.Client
    labels : sequence of str
    make : callable
        Called as ``make(label, *arguments(label))`` by a worker.
    arguments : callable
    at_once : int
    seen : callable, optional
        Told of every task done how many labels it had.
    """
    tasks = [labels[i : i + at_once] for i in range(0, len(labels), at_once)]
    futures = [
        client.submit(_each, make, {label: arguments(label) for label in task}, pure=False)
        for task in tasks
    ]
    found: dict[str, Found] = {}
    wait_for(
        client, futures, [""] * len(futures),
        lambda done: None if seen is None else seen(len(tasks[futures.index(done)])),
    )  # fmt: skip
    for part in client.gather(futures):
        found |= part
    return found


def _each(make: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {label: make(label, *given) for label, given in arguments.items()}


def wait_for(
    client: Any, futures: Sequence[Any], names: Sequence[str], seen: Callable[[Any], None]
) -> None:
    """Wait for all, and say which of ``names`` failed.

    Raises
    ------
    BayesfairError
        That of the first task that failed, ahead of it its name; `DataError` for any other.
    """
    from distributed import as_completed

    for future in as_completed(futures):
        if future.status not in ("error", "cancelled"):  # lost with its worker: it is done again
            seen(future)
            continue
        # asked before the others are cancelled, and it with them
        error = future.exception() if future.status == "error" else None
        name = names[list(futures).index(future)]
        client.cancel(futures)
        if isinstance(error, BayesfairError):
            where = f"{name}: " if name and name not in str(error) else ""
            raise error.with_message(f"{where}{error}")
        what = f"{type(error).__name__}: {str(error)[:200]}"
        raise DataError(
            f"{name or 'a task'} could not be read by the workers ({what}). Every worker needs the "
            "same path; nothing of what was asked is kept.",
            kind="unreadable",
            source=name,
        ) from error


def results_of(client: Any, futures: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Return what tasks give, in their order; see `wait_for`."""
    wait_for(client, futures, names, lambda future: None)
    return list(client.gather(list(futures)))
