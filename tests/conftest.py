"""What every test can rely on."""

import pytest


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    """Break no line of a report, whatever terminal or process the tests run in."""
    monkeypatch.setenv("COLUMNS", "10000")
