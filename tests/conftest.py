"""What every test can rely on."""

import pytest


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    """Break no line of a report, whatever terminal or process the tests run in."""
    monkeypatch.setenv("COLUMNS", "10000")


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items):
    """Let one process take all files that sample models, and first; the others go file by file.

    A process compiles a model once, whatever its data. Files stay whole and in their order, so
    that what they share is made once.
    """
    slow = {item.path for item in items if item.get_closest_marker("statistical")}
    items.sort(key=lambda item: item.path not in slow)
    for item in items:
        group = "samplers" if item.path in slow else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
