"""The page itself: its templates, what they can say, and the JSON it carries."""

from __future__ import annotations

import functools
import json
import platform
from importlib.metadata import version
from typing import Any

from bayesfair.audit.context_text import across_lines
from bayesfair.audit.log.verdict_words import regret_words
from bayesfair.audit.text import VERDICT_WORDS, hangs_words, log_words, modelled_words
from bayesfair.base.checks import counted
from bayesfair.base.shown import number
from bayesfair.base.value_text import MEANINGS, value_table
from bayesfair.report import words
from bayesfair.report.audits import MOST_QUANTITIES, most_sensitive
from bayesfair.report.labels import LONGEST, Labels, clean

__all__ = ["render_page"]

_PACKAGES = ("bayesfair", "numpy", "scipy", "numba", "pymc", "arviz")


def render_page(
    template: str, context: dict[str, Any], numbers: dict[str, Any], labels: Labels, **repeat: Any
) -> str:
    """Return a page.

    Parameters
    ----------
    template : str
    context : dict
        What the template shows.
    numbers : dict
        What the page carries as JSON.
    labels : Labels
    **repeat
        ``command``, ``call`` and ``files``: how to repeat it, and from what.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bayesfair.report", "templates"),
        bytecode_cache=_compiled(),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters |= {"number": number, "label": labels.shown, "short": labels.text}
    environment.globals |= {
        "verdict_word": VERDICT_WORDS,
        "regret_words": regret_words,
        "log_words": log_words,
        "criterion_rows": words.criterion_rows,
        "exactness": words.exactness,
        "counted": counted,
        "cut": labels.cut,
        "longest": LONGEST,
        "most_quantities": MOST_QUANTITIES,
        "most_sensitive": most_sensitive,
        "prior_sentence": hangs_words,
        "modelled_words": modelled_words,
        "across_lines": across_lines,
        "value_table": value_table,
        "value_meanings": MEANINGS,
    }
    return environment.get_template(template).render(
        **context, **repeat, versions=_versions(), json_text=_script_safe(numbers)
    )


@functools.cache
def _compiled() -> Any:
    """Return what keeps compiled templates: a process compiles each once."""
    import jinja2

    held: dict[str, bytes] = {}

    class Kept(jinja2.BytecodeCache):
        def load_bytecode(self, bucket: Any) -> None:
            if bucket.key in held:
                bucket.bytecode_from_string(held[bucket.key])

        def dump_bytecode(self, bucket: Any) -> None:
            held[bucket.key] = bucket.bytecode_to_string()

    return Kept()


def _versions() -> str:
    """Return what made the page, with versions."""
    found = [f"Python {platform.python_version()}"]
    return ", ".join(found + [f"{name} {version(name)}" for name in _PACKAGES[1:]])


def _script_safe(numbers: dict[str, Any]) -> str:
    """Return JSON that cannot end or change the script element it stands in."""
    text = json.dumps(numbers, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
