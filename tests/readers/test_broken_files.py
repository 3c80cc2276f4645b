"""Every broken log is refused with a message that names row, column, value and remedy."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from broken_files import BROKEN, GOOD, Broken

import bayesfair as bf
from bayesfair.errors import BayesfairError
from bayesfair.readers import read_history, scan_history


def _consume(path, **options):
    for _ in scan_history(path, **options).chunks():
        pass


def _use(broken: Broken, log) -> None:
    if broken.audit is not None:
        bf.audit(log, objective=False, **broken.audit)
    elif not isinstance(log, (bf.History, Mapping)):
        for _ in log.chunks():
            pass


READ = [b for b in BROKEN if b.reader in ("both", "read")]
SCAN = [b for b in BROKEN if b.reader in ("both", "scan")]


@pytest.mark.parametrize("broken", READ, ids=lambda b: b.name)
def test_read_history_names_what_is_broken(broken: Broken, tmp_path) -> None:
    with pytest.raises(BayesfairError) as caught:
        _use(broken, read_history(broken.write(tmp_path), **broken.options))
    message = str(caught.value)
    assert [f for f in broken.fragments if f not in message] == [], message


@pytest.mark.parametrize("broken", SCAN, ids=lambda b: b.name)
def test_scan_history_names_what_is_broken(broken: Broken, tmp_path) -> None:
    with pytest.raises(BayesfairError) as caught:
        _use(broken, scan_history(broken.write(tmp_path), **broken.options))
    message = str(caught.value)
    assert [f for f in broken.fragments if f not in message] == [], message


def test_what_the_table_breaks_is_whole_before(tmp_path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(GOOD)
    assert read_history(path).n_rounds == 2


def test_names_in_the_table_are_unique() -> None:
    assert len({b.name for b in BROKEN}) == len(BROKEN)


def test_rows_are_named_beyond_the_first_block(tmp_path) -> None:
    """Threads and blocks must not lose the row of a mistake late in a long file."""
    path = tmp_path / "long.csv"
    n = 600_000
    row = "north,1,0.12345678901,0.87654321099\n"
    for bad, fragment in [("north,1,0.5\n", "3 fields"), ("north,x,0.5,0.5\n", "'x'")]:
        path.write_text("arm,reward,p_north,p_south\n" + row * n + bad + row * 5)
        for reader in (read_history, _consume):
            with pytest.raises(BayesfairError, match=f"row {n + 2} of long.csv") as caught:
                reader(path)
            assert fragment in str(caught.value)
