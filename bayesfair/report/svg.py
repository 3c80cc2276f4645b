"""A drawing as inline SVG: the same bytes for the same numbers, in the page's own colours."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesfair.plots.base import ACCENT, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Figure", "figure"]

_WIDTH = 4.7  # inches; narrow, so that the writing stays legible on a phone
_COLOURS = {INK: "var(--ink)", FAINT: "var(--faint)", ACCENT: "var(--accent)",
            "#000000": "var(--ink)"}  # fmt: skip


class Figure(NamedTuple):
    """One figure: its SVG, what it shows in a sentence, and how to read it."""

    name: str
    svg: str
    alt: str
    caption: str


def figure(
    name: str, draw: Callable[[Axes], Any], alt: str, caption: str, height: float = 3.3
) -> Figure:
    """Return a figure of this height in inches."""
    return Figure(name, _svg(name, draw, height), alt, caption)


def _svg(name: str, draw: Callable[[Axes], Any], height: float) -> str:
    """Return the drawing as SVG to stand inside HTML, with ids of its own and the page's colours.

    Writing stays writing, in the reader's fonts: it can be searched and read aloud, and labels
    in any script are shown.
    """
    import matplotlib as mpl
    from matplotlib import style
    from matplotlib.figure import Figure as Canvas

    out = io.StringIO()
    with warnings.catch_warnings(), style.context("default", after_reset=True):
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        options = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9,
                   "text.parse_math": False, "legend.fontsize": 8.5}  # fmt: skip
        with mpl.rc_context(options):
            canvas = Canvas(figsize=(_WIDTH, height), layout="constrained")
            canvas.patch.set_visible(False)
            axes = canvas.subplots()
            axes.patch.set_visible(False)
            draw(axes)
            axes.yaxis.label.set_rotation_mode("anchor")
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(out.getvalue(), name)


def _inline(svg: str, name: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.S)
    head, body = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    body = re.sub(r'<style type="text/css">.*?</style>', "", body, flags=re.S)
    body = re.sub(r"<[^>]+>", lambda tag: _own(tag.group(), name), body)  # writing is left alone
    return f'<svg {box.group()} role="img" aria-labelledby="{name}-alt">{body}'


def _own(tag: str, name: str) -> str:
    """Return a tag whose ids, colours and fonts are those of the page."""
    tag = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', tag)
    tag = re.sub(r'xlink:href="#([^"]*)"', rf'href="#{name}-\1"', tag)
    tag = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", tag)
    # matplotlib names its own font family; without it the page's is inherited
    tag = re.sub(r"font: (\d+(?:\.\d+)?px) [^;\"]*", r"font-size: \1", tag)
    for colour, variable in _COLOURS.items():
        tag = tag.replace(colour, variable)
    return tag
