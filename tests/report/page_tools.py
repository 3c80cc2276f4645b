"""Logs to write pages of, and reading a page back: balanced tags, ids, links, JSON, tables."""

import json
from html.parser import HTMLParser

import numpy as np

import bayesfair as bf

VOID = {"meta", "link", "br", "img", "hr", "input"}
# https://html.spec.whatwg.org: what may not stand inside a paragraph
BLOCKS = {"p", "ul", "table", "div", "section", "figure", "h1", "h2", "h3", "h4", "dl", "pre"}


class Page(HTMLParser):
    """Parse strictly: every element is closed by its own end tag, in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.source = text
        self.stack, self.elements, self.texts, self.tables = [], [], [], []
        self.json_text = ""
        self.feed(text)
        self.close()
        assert not self.stack, f"left open: {self.stack}"
        self.numbers = json.loads(self.json_text)

    @classmethod
    def of(cls, path):
        return cls(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"attribute twice in {tag}: {names}"
        if tag in BLOCKS:
            assert "p" not in self.stack, f"{tag} inside a paragraph"
        self.elements.append((tag, dict(attrs), tuple(self.stack)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"th", "td"}:
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, f"</{tag}> closes {self.stack[-3:]}"
        self.stack.pop()

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "script":
            self.json_text += data
        elif "style" not in self.stack:
            self.texts.append(data)
            if {"th", "td"} & set(self.stack):
                self.tables[-1][-1][-1] += data.strip()

    def all(self, tag):
        return [attrs for name, attrs, _ in self.elements if name == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def table(self, *heading):
        """Return the rows of the first table whose head starts with these columns."""
        for table in self.tables:
            if tuple(table[0][: len(heading)]) == heading:
                return table[1:]
        raise AssertionError(f"no table {heading}")


def log(k, n, selection="full", *, seed=0, **options):
    """Return n rounds of k Bernoulli arms chosen by varying, known probabilities."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 2.0), n)
    arm = np.array([rng.choice(k, p=row) for row in p])
    logged = {
        "full": {"selection_probability": p},
        "chosen": {"propensity": p[np.arange(n), arm]},
        "none": {},
    }[selection]
    arms = options.pop("arms", [f"arm {i}" for i in range(k)])
    reward = (rng.random(n) < 0.4).astype(float)
    return bf.History([arms[i] for i in arm], reward, arms=arms, **logged, **options)


def page_of(audit, tmp_path, **options):
    bf.write_report(audit, tmp_path / "page.html", **options)
    return Page.of(tmp_path / "page.html")
