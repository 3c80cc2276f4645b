"""What the tests of reading share."""

from __future__ import annotations

import pytest

from bayesfair.readers import read_history


@pytest.fixture
def read(tmp_path):
    """Read the text of a log."""

    def run(text, **options):
        path = tmp_path / "log.csv"
        path.write_text(text, encoding="utf-8")
        return read_history(path, **options)

    return run
