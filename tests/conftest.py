"""What every test can rely on."""

import gc
from collections import Counter
from pathlib import Path

import pytest

_TOLD = 60.0  # seconds of a run from which on it says what they went into
_FIRST = "readers", "fuzz", "history", "writing"


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    """Break no line of a report, whatever terminal or process the tests run in."""
    monkeypatch.setenv("COLUMNS", "10000")


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the drawings of pages empty where a test is about something else."""
    from bayesfair.report import svg

    def empty(name, draw, height):
        return f'<svg viewBox="0 0 1 1" role="img" aria-labelledby="{name}-alt"></svg>'

    monkeypatch.setattr(svg, "_svg", empty)


@pytest.fixture(autouse=True, scope="session")
def _machine_code_is_kept():
    """Compile no graph of a model twice in a process, however many there are."""
    from bayesfair.inference import compiled

    compiled._KEPT = 1000


def pytest_collection_finish():
    """Spare the collector of garbage what the whole run keeps: modules, tests, their parameters.

    Compiling a graph makes millions of objects, and each pass would look at all of these again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items):
    """Let one process take all files that sample models, and first; the others go file by file.

    A process compiles a model once, whatever its data. Files stay whole, so that what they share
    is made once. Where `bayesfair warm-up` runs beside the tests, it compiles what most of them
    run: after the samplers come the folders that need least of it, and audits last.
    """
    slow = {item.path for item in items if item.get_closest_marker("statistical")}
    slow |= {item.path for item in items if item.path.parent.name == "inference"}  # doctests too
    tests = Path(__file__).parent
    order = {tests / name: i for i, name in enumerate((*_FIRST, None, "audit")) if name}

    def place(path):
        return next((order[folder] for folder in path.parents if folder in order), len(_FIRST))

    items.sort(key=lambda item: (item.path not in slow, place(item.path)))
    for item in items:
        group = "samplers" if item.path in slow else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_terminal_summary(terminalreporter):
    """Say what the seconds of a long run went into, folder by folder."""
    spent = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                parts = report.nodeid.split("::")[0].split("/")
                spent["/".join(parts[:2]) if parts[0] == "tests" else parts[0]] += report.duration
    if (total := sum(spent.values())) < _TOLD:
        return
    terminalreporter.section("seconds by folder, all processes")
    for folder, seconds in spent.most_common():
        terminalreporter.write_line(f"{seconds:8.0f} {seconds / total:5.0%} {folder}")
