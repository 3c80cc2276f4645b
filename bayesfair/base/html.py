"""What a notebook shows of a result: its text, safe and in the notebook's own colours."""

from __future__ import annotations

import html

from bayesfair.base.shown import visible

__all__ = ["Shown", "html_of"]


def html_of(text: str) -> str:
    r"""Return a report as HTML that no label can change; the line of the verdict is bold.

    Examples
    --------
    >>> html_of("Verdict: FAIR\n<b>")
    '<pre style="white-space: pre; line-height: 1.4"><b>Verdict: FAIR</b>\n&lt;b&gt;</pre>'
    """
    lines = [html.escape(line) for line in visible(text, "\n").split("\n")]
    lines = [f"<b>{line}</b>" if line.startswith("Verdict:") else line for line in lines]
    return '<pre style="white-space: pre; line-height: 1.4">' + "\n".join(lines) + "</pre>"


class Shown:
    """A result that a notebook shows as its report."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_of(str(self))
