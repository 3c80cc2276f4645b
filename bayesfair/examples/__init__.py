"""Small real logs that come with the package; SOURCE.md says where each is from."""

from __future__ import annotations

from pathlib import Path

from bayesfair.base.checks import check_choice

__all__ = ["LOGS", "names", "path"]

LOGS = ("ecmo",)
"""Decision histories; the others are comparisons."""

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Return the names of the bundled logs.

    Examples
    --------
    >>> "ecmo" in names()
    True
    """
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.csv")))


def path(name: str) -> Path:
    """Return the file of a bundled log.

    Raises
    ------
    OptionError
        If there is no such log; names those there are.

    Examples
    --------
    >>> path("ecmo").name
    'ecmo.csv'
    """
    return _FOLDER / f"{check_choice(name, 'example', names())}.csv"
