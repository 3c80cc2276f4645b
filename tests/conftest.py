"""What every test can rely on."""

import pytest


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    """Break no line of a report, whatever terminal or process the tests run in."""
    monkeypatch.setenv("COLUMNS", "10000")


def pytest_collection_modifyitems(items):
    """Let files that wait for samplers come first: two processes then end together.

    The files themselves stay whole and in their order, so that what they share is made once.
    """
    slow = {item.path for item in items if item.get_closest_marker("statistical")}
    items.sort(key=lambda item: item.path not in slow)
