"""Labels that attack the page, files that cannot be written, and the command line."""

import os
import subprocess
import sys

import numpy as np
import pytest
from command_line import run
from page_tools import Page

import bayesfair as bf
from bayesfair import examples
from bayesfair.errors import OptionError

ATTACKS = [
    "<script>alert(1)</script>",
    "</script><!--",
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "{{ 7 * 7 }}{% raw %}",
    "$x_1$ ${}$",
    "x" * 3000,
    "many words " * 50,
    "\N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}",
    "\N{RIGHT-TO-LEFT OVERRIDE}evil",
    "&lt;b&gt;",
    "NUL\x00 BEL\x07 ESC\x1b",
    'id="frontier-alt" #22313f',
    "\N{CJK UNIFIED IDEOGRAPH-65E5}\u2028",
]


@pytest.fixture(scope="module")
def attacked():
    rng = np.random.default_rng(1)
    k, n = len(ATTACKS), 200
    p = rng.dirichlet(np.full(k, 2.0), n)
    arm = [rng.choice(k, p=row) for row in p]
    history = bf.History(
        [ATTACKS[i] for i in arm], rng.integers(0, 2, n), arms=ATTACKS, selection_probability=p,
        source="<img src=x onerror=alert(1)>" + "y" * 400,
    )  # fmt: skip
    return bf.audit(history, seed=1, draws=200)


def check_harmless(page):
    assert [a for a in page.all("script")] == [{"type": "application/json", "id": "audit-json"}]
    assert not page.all("img")
    assert len(page.all("style")) == 1
    for _, attrs, _ in page.elements:
        assert not any(name.startswith("on") for name in attrs)
    ids = [a["id"] for _, a, _ in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert "\x00" not in page.source
    assert "\x1b" not in page.source


def test_labels_are_text_wherever_they_stand(attacked, tmp_path):
    bf.write_report(attacked, tmp_path / "a.html")
    page = Page.of(tmp_path / "a.html")
    check_harmless(page)
    assert page.numbers == attacked.to_dict()
    shown = [row[0] for row in page.table("arm", "n")]
    for label in ("<script>alert(1)</script>", "</script><!--", "{{ 7 * 7 }}{% raw %}",
                  "&lt;b&gt;", "$x_1$ ${}$", 'id="frontier-alt" #22313f'):  # fmt: skip
        assert label in shown
    # in the figure too, where ids and colours of tags are rewritten
    drawn = [t.strip() for t in page.texts]
    assert "$x_1$ ${}$" in drawn
    assert "</script><!--" in drawn
    assert max(len(label) for label in shown) <= 80
    assert "Labels of more than 80 characters are cut" in page.text
    # labels of either direction stand in elements of their own
    assert page.source.count("<bdi>") >= len(ATTACKS)


def test_groups_with_such_labels(attacked, tmp_path):
    logs = {label: log for label, log in zip(ATTACKS, [attacked.data] * 3, strict=False)}
    bf.write_report(bf.audit(logs, seed=1, draws=50), tmp_path / "g.html")
    page = Page.of(tmp_path / "g.html")
    check_harmless(page)
    assert [row[0] for row in page.table("group", "verdict")] == ATTACKS[:3]


def test_reading_labels_never_warns_and_leaves_matplotlib_alone(attacked, tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    bf.write_report(attacked, tmp_path / "a.html")
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="module")
def ecmo():
    return bf.audit(bf.read_history(examples.path("ecmo")), seed=1, draws=200)


def test_paths_that_cannot_be_written(ecmo, tmp_path):
    (tmp_path / "file").write_text("kept")
    for path, message in (
        (tmp_path, "must be the name of a file"),
        ("", "must be the name of a file"),
        (3, "must be the name of a file"),
        (tmp_path / "no" / "a.html", "there is no folder"),
        (tmp_path / "file" / "a.html", "there is no folder"),
        (tmp_path / ("n" * 300), "cannot write the report"),
        (str(tmp_path / "a\x00b"), "must be the name of a file"),
    ):
        with pytest.raises(OptionError, match=message):
            bf.write_report(ecmo, path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    for thing in (3, None, {"arms": []}, bf.read_history(examples.path("ecmo"))):
        with pytest.raises(OptionError, match="cannot report on a"):
            bf.write_report(thing, tmp_path / "a.html")


def test_a_failed_write_keeps_the_old_page(ecmo, tmp_path, monkeypatch):
    target = tmp_path / "audit"
    target.write_text("old")

    def full(self, other):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OptionError, match="No space left on device"):
        bf.write_report(ecmo, target)
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["audit"]


def test_links_devices_and_any_extension(ecmo, tmp_path):
    real = tmp_path / "real.txt"
    real.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(real)
    bf.write_report(ecmo, link)
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    if os.path.exists(os.devnull) and os.name == "posix":
        bf.write_report(ecmo, os.devnull)
        assert not os.path.isfile(os.devnull)


def test_command_line_writes_the_page_and_the_command_that_made_it(capsys, tmp_path):
    target = tmp_path / "my audit.html"
    status, out, err = run(capsys, "audit", "--example", "ecmo", "--seed", "4", "--report", target)
    assert status == 0
    assert not err
    assert "Verdict:" in out
    page = Page.of(target)
    assert page.numbers == bf.audit(bf.read_history(examples.path("ecmo")), seed=4).to_dict()
    assert f"bayesfair audit --example ecmo --seed 4 --report '{target}'" in page.text


def test_command_line_reports_on_groups(capsys, tmp_path):
    rows = [f"{'ab'[i % 2]},{i % 3 % 2},0.5,0.5,{'uv'[i % 4 // 2]}" for i in range(24)]
    (tmp_path / "log.csv").write_text("\n".join(["arm,reward,p_a,p_b,site", *rows]))
    status, _, _ = run(
        capsys, "audit", tmp_path / "log.csv", "--by", "site", "--report", tmp_path / "g"
    )
    assert status == 0
    assert [row[0] for row in Page.of(tmp_path / "g").table("group")] == ["u", "v"]


@pytest.mark.parametrize("bad", ["folder", "missing/a.html", "n" * 300])
def test_command_line_refuses_before_the_work(capsys, tmp_path, monkeypatch, bad):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, "audit", "--example", "ecmo", "--report", bad)
    assert status == 2
    assert not out
    assert len(err.splitlines()) == 1


def test_drawing_is_loaded_only_when_a_report_is_written():
    code = (
        "import sys, bayesfair as bf; bf.write_report; "
        "print({'matplotlib', 'jinja2'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
