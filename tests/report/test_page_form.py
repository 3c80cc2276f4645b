"""The page as a document: valid, accessible, without anything from elsewhere, and repeatable."""

import json
import re

import numpy as np
from page_tools import Page, log, page_of

import bayesfair as bf
from bayesfair import examples


def test_page_is_valid_accessible_and_has_its_figures(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    assert page.source.startswith("<!DOCTYPE html>")
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("title")) == len(page.all("h1")) == 1
    ids = [a["id"] for _, a, _ in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = [a["href"] for a in page.all("a") + page.all("use")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert all(a.get("scope") in {"row", "col"} for a in page.all("th"))
    assert len(page.all("table")) == len(page.all("caption"))
    figures = page.all("svg")
    assert [a["aria-labelledby"] for a in figures] == [
        "frontier-alt",
        "violations-alt",
        "pairs-alt",
        "regret-alt",
        "windows-alt",
        "reliability-alt",
        "selection-alt",
        "rewards-alt",
    ]
    assert {a["aria-labelledby"] for a in figures} <= set(ids)
    assert all(a["role"] == "img" for a in figures)
    assert len(page.all("figcaption")) == len(figures)
    headings = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert all(b - a <= 1 for a, b in zip([0, *headings], headings, strict=False))


def test_page_needs_nothing_from_elsewhere(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    outside = re.findall(r"[a-z]+://[^\s\"'<]*", page.source)
    assert outside == ["https://arxiv.org/abs/1707.01875"]
    assert not re.search(r"@import|url\((?!#)", page.source)
    for _, attrs, _ in page.elements:
        assert not {"src", "srcset", "data", "poster", "xlink:href"} & set(attrs)
        assert not any(name.startswith("on") for name in attrs)
    assert [a for a in page.all("script")] == [{"type": "application/json", "id": "audit-json"}]
    assert not page.all("link")
    # a browser is told to run and to load nothing, whatever a label may hold
    policy = [a["content"] for a in page.all("meta") if "http-equiv" in a]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def luminance(colour):
    """Return the relative luminance of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_writing_stands_out_in_light_and_dark(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    style = re.search(r"<style>(.*?)</style>", page.source, flags=re.S).group(1)
    light, dark = re.findall(r":root \{(.*?)\}", style, flags=re.S)
    for block in (light, dark):
        colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
        pairs = [(t, b) for t in ("ink", "soft", "link") for b in ("paper", "panel")]
        pairs += [("on", v) for v in ("fair", "unfair", "undetermined", "not_auditable")]
        for text, ground in pairs:
            a, b = sorted(luminance(colour[name]) for name in (text, ground))
            assert (b + 0.05) / (a + 0.05) >= 4.5, (text, ground)  # level AA
        a, b = sorted(luminance(colour[name]) for name in ("accent", "paper"))
        assert (b + 0.05) / (a + 0.05) >= 3  # lines of figures
    pairs = re.search(r'<figure id="figure-pairs">.*?</figure>', page.source, flags=re.S).group()
    cells = set(re.findall(r"fill: (#[0-9a-f]{6})", pairs))  # the same in both modes
    on = {"#000001", "#ffffff"}
    for ground in cells - on:
        contrasts = [sorted(luminance(c) for c in (text, ground)) for text in on]
        assert max((b + 0.05) / (a + 0.05) for a, b in contrasts) >= 4.5, ground
    drawn = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", page.source.replace(pairs, "")))
    assert drawn <= {"none", "var(--ink)", "var(--faint)", "var(--accent)"}  # follow the mode


def test_same_audit_same_bytes(tmp_path):
    import matplotlib as mpl

    pages = []
    for i in range(2):
        audit = bf.audit(log(3, 80), seed=3)
        with mpl.rc_context({"lines.linewidth": 1 + 9 * i, "font.size": 9 + 9 * i}):
            bf.write_report(audit, tmp_path / f"{i}.html")
        pages.append((tmp_path / f"{i}.html").read_bytes())
    assert pages[0] == pages[1]
    assert b"202" not in re.sub(rb"<svg.*?</svg>|<script.*?</script>", b"", pages[0], flags=re.S)


def test_python_call_on_the_page_repeats_the_numbers(ecmo, tmp_path, monkeypatch):
    page_of(ecmo, tmp_path)
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    code = re.search(r"<pre[^>]*><code>(.*?)</code>", source, flags=re.S).group(1)
    code = code.replace("&#39;", "'")
    (tmp_path / "ecmo.csv").write_bytes(examples.path("ecmo").read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "page", "exec"), {})
    assert json.dumps(Page.of(tmp_path / "audit.html").numbers) == json.dumps(ecmo.to_dict())
