"""How far work is: what is told, and the line on stderr."""

import io
import re
import sys

import pytest

from bayesfair.base import progress
from bayesfair.base.progress import following, steps


class Terminal(io.StringIO):
    def isatty(self):
        return True


def seen(monkeypatch, stream, times, tell):
    """What a stream shows of work that is told at these times."""
    clock = iter(times)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", stream)
    with following(True):
        tell()
    return stream.getvalue()


def test_a_line_on_a_terminal_says_rate_and_time_left_and_goes_again(monkeypatch):
    def tell():
        rounds = steps("rounds", 10_000)
        for n in (1000, 1000, 2000, 1000):
            rounds.add(n)

    # 1000 at 0 s (the start), 2000 at .5 s (too early), 4000 at 2 s, 5000 at 2.05 s (too often)
    text = seen(monkeypatch, Terminal(), [0, 0.5, 2, 2.05], tell)
    first, last = re.match(r"\r([^\r]*)\r( *)\r$", text).groups()
    assert first == "4000 of 10000 rounds, 1500 a second, 0:00:04 left"  # (4000 - 1000) / 2 s
    assert len(first) == len(last)


def test_elsewhere_a_line_stands_every_ten_seconds_and_no_time_without_total(monkeypatch):
    def tell():
        rounds = steps("rounds")
        for _ in range(4):
            rounds.add(30)

    text = seen(monkeypatch, io.StringIO(), [0, 9, 20, 21], tell)
    assert text == "90 rounds, 3.0 a second\n"  # (90 - 30) / 20 s


def test_work_within_work_is_told_to_whoever_follows_the_nearest():
    outer, inner = [], []
    with following(lambda *told: outer.append(told)):
        with following(None):
            steps("rounds", 2).add()
        with following(lambda *told: inner.append(told)):
            steps("draws", 5).add(5)
        steps("rounds", 2).add(2)
    steps("rounds", 2).add()  # nobody follows any more
    assert outer == [(1, 2, "rounds"), (2, 2, "rounds")] and inner == [(5, 5, "draws")]


def test_what_a_followers_function_raises_ends_the_work():
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), following(stop):
        steps("rounds", 2).add()
