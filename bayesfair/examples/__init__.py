"""Small real logs that come with the package; SOURCE.md says where each is from."""

from __future__ import annotations

from pathlib import Path

from bayesfair.base.checks import check_choice

__all__ = ["ABOUT", "LOGS", "names", "path"]

LOGS = ("ecmo",)
"""Decision histories; the others are comparisons."""

ABOUT = {
    "baseball": "273 games of 7 teams of baseball's American League, 1987: counts of wins",
    "ecmo": "the first randomised ECMO trial, 1985: 12 patients, 2 treatments, the whole rule",
}
"""What each holds, in one line."""

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
