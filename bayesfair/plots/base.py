"""What every plot is made of: colours, new axes, names beside marks, and what it refuses."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bayesfair.base.arguments import AXES, Kind, takes
from bayesfair.base.shown import shortened
from bayesfair.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "ACCENT",
    "FAINT",
    "INK",
    "NAME",
    "ROW",
    "audit_numbers",
    "bare",
    "grid",
    "heat",
    "legend",
    "names_on",
    "new_axes",
    "plot",
    "rank_figure_size",
    "refuse",
    "title",
]

INK, FAINT, ACCENT = "#22313f", "#9aa5b1", "#b5482a"
ROW = 0.24  # inches per item
_TALLEST = 600  # inches; at 100 dots per inch near the largest image that can be written
_NUMBERED_CELLS = 144
NAME = 20  # cells of a name where there is little room
_SCRIPTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Source Han Sans", "Hiragino Sans", "Yu Gothic",
            "Microsoft YaHei", "PingFang SC", "WenQuanYi Micro Hei", "Droid Sans Fallback",
            "Noto Sans Arabic", "Noto Sans Hebrew", "Arial Unicode MS")  # fmt: skip


@takes()
def rank_figure_size(n_items: int) -> tuple[float, float]:
    """Return width and height in inches of a plot with one line per item.

    Examples
    --------
    >>> rank_figure_size(10) < rank_figure_size(100)
    True
    """
    return 7.0, min(1.1 + ROW * n_items, _TALLEST)


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    axes: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return axes


def plot[**P](
    needs: str = "",
    *names: str,
    mark: str = "",
    made: Callable[[Any], Any] | None = None,
    **kinds: Kind,
) -> Callable[[Callable[P, Axes]], Callable[P, Axes]]:
    """Return a decorator for what all plots share: what they take, `ax=`, and that they return it.

    Parameters
    ----------
    needs : str
        What to ask for in the message to whoever gives something else.
    *names : str
        Variables, columns or keys that what is drawn must have.
    mark : str
        Attribute of results that are no such table yet.
    made : callable, optional
        Makes the table of these.
    **kinds : Kind
        Of further options.

    Raises
    ------
    OptionError
        When the plot is called: naming the plot, what it needs, and the type that it got.
    """

    def drawing(function: Callable[P, Axes]) -> Callable[P, Axes]:
        column = next(iter(inspect.signature(function).parameters))

        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            given = args[0] if args else options.pop(column)
            table = made(given) if made is not None and hasattr(given, mark) else given
            if not set(names) <= _names_in(table):
                raise refuse(function.__name__, needs, given, column)
            return function(table, *args[1:], **options)

        run.__doc__ = _with_axes(function.__doc__)
        return cast(Callable[P, Any], takes(ax=AXES, **kinds)(run))

    return drawing


def _names_in(table: Any) -> set[Any]:
    """Return the variables of a dataset, the columns of a data frame, or the keys of a dict."""
    if hasattr(table, "dims") and not hasattr(table, "data_vars"):
        return {table.name}
    for kind in ("data_vars", "columns"):
        if hasattr(table, kind):
            return set(getattr(table, kind))
    return set(table) if isinstance(table, Mapping) else set()


def _with_axes(doc: str | None) -> str | None:
    """Return a docstring with what all plots share: `ax`, and what they return."""
    if doc is None:  # python -OO
        return None
    doc = inspect.cleandoc(doc)
    ends = [at for s in ("Raises", "Notes") if (at := doc.find(f"\n\n{s}\n---")) >= 0]
    at = min(ends, default=len(doc))
    ax = "" if "\nax : " in doc else "\nax : matplotlib Axes, optional"
    return f"{doc[:at]}{ax}\n\nReturns\n-------\nmatplotlib Axes{doc[at:]}"


def _fonts() -> list[str]:
    """Return the families of the writing, with those at hand for letters that the first lack."""
    from matplotlib import font_manager, rcParams

    known = {font.name for font in font_manager.fontManager.ttflist}
    return [*rcParams["font.family"], *(name for name in _SCRIPTS if name in known)]


def legend(axes: Axes, *, above: int = 0) -> Axes:
    """Say what the marks are, in the axes or in so many columns above; names are no formulas."""
    place: dict[str, Any] = {}
    if above:
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": above,
                 "handlelength": 1.2, "columnspacing": 1.2}  # fmt: skip
    for text in axes.legend(frameon=False, fontsize=8, **place).get_texts():
        text.set(parse_math=False, fontfamily=_fonts())
    return axes


def title(axes: Axes, text: str) -> None:
    """Write a title with names in it, as wide as the axes and the names beside them."""
    axes.set_title(text, fontsize=9, loc="right", parse_math=False, fontfamily=_fonts())


def names_on(axes: Axes, names: Sequence[str], *, side: str = "y", at: float = 0.0) -> None:
    """Write one name at each of at, at + 1, ..., the first on top, in fonts with its letters."""
    options: dict[str, Any] = {"fontsize": 8, "parse_math": False, "fontfamily": _fonts()}
    places = [at + i for i in range(len(names))]
    if side == "x":
        axes.set_xticks(places, names, rotation=90 if max(map(len, names)) > 3 else 0, **options)
        return
    axes.set_yticks(places, names, **options)
    if not at:
        axes.set_ylim(len(names) - 0.4, -0.6)


def grid(axes: Axes) -> Axes:
    """Draw faint lines behind, and leave out the frame's upper and right side."""
    axes.grid(color=FAINT, alpha=0.35, linewidth=0.6)
    for end in ("top", "right"):
        axes.spines[end].set_visible(False)
    return axes


def _legible(colour: Any) -> str:
    """Return black or white, whichever stands out more; not the black that a page may turn."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#000001" if luminance > 0.179 else "#ffffff"


def heat(
    axes: Axes,
    values: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    label: str,
    **limits: Any,
) -> Axes:
    """Draw a table as colours with a bar beside it; few cells carry their number."""
    import numpy as np
    from matplotlib import colormaps

    shown = np.ma.masked_invalid(np.asarray(values, dtype=float))
    image = axes.pcolormesh(shown, cmap=colormaps["Blues"].resampled(32), **limits)
    # of up to 50 colours the bar is made of shapes, and a page needs no pictures
    axes.set_ylim(len(rows), 0)
    names_on(axes, shortened(rows, NAME), at=0.5)
    names_on(axes, shortened(columns, NAME), side="x", at=0.5)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if shown.size <= _NUMBERED_CELLS:
        for (i, j), value in np.ndenumerate(shown):
            if np.isfinite(value):
                text = f"{value:.2f}".lstrip("0") if 0 < value < 1 else f"{value:.3g}"
                axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=7,
                          color=_legible(image.cmap(image.norm(value))))  # fmt: skip
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label(label)
    bar.outline.set_visible(False)
    return axes


def refuse(plot: str, needs: str, given: Any, column: str) -> OptionError:
    """Return the error of a plot that was given another kind of thing."""
    return OptionError(
        f"{plot} needs {needs}, got {type(given).__name__}.", kind="wrong_kind", column=column
    )


def audit_numbers(audit: Any, plot: str, *keys: str) -> dict[str, Any]:
    """Return the JSON values of an audit of one log, which has one of `keys`.

    Raises
    ------
    OptionError
        If it is something else, or an audit of several logs.
    """
    numbers = audit
    if not isinstance(audit, dict) and hasattr(audit, "verdict"):
        numbers = audit.to_dict()
    if not isinstance(numbers, dict) or not {"log", "criterion"} <= set(numbers):
        several = " of several logs; draw one of its groups" if _has_groups(numbers) else ""
        raise OptionError(
            f"{plot} needs an audit of one log or its to_dict(), got {type(audit).__name__}"
            f"{several}.",
            kind="wrong_kind",
            column="audit",
        )
    if not set(keys) & set(numbers):
        raise OptionError(
            f"{plot} needs an audit with {' or '.join(map(repr, keys))}; this one has none.",
            kind="wrong_kind",
            column="audit",
        )
    return numbers


def _has_groups(numbers: Any) -> bool:
    return isinstance(numbers, dict) and "groups" in numbers


def bare(axes: Axes) -> Axes:
    """Leave of the frame the lower side alone, and lines at its ticks."""
    axes.grid(axis="x", color=FAINT, alpha=0.35, linewidth=0.6)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return axes
