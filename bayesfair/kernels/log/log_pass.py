r"""One pass over a part of a log for all that is kept of its rows.

Per block of rounds, shared by cores, while its rows lie in the cache: how the choices follow the
rule and how far the rule moves, the probability of each choice, which rounds could violate under
some truth, the moments of rewards and probabilities by arm, fingerprints of windows of rows.
Blocks are the same whatever the number of threads, and added up in their order: so are the numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.kernels.log.guards import (
    ALL_PRINTS,
    PRINT_BASE,
    WINDOW,
    Prints,
    RewardMoments,
    RuleSums,
    anchors,
    mixed,
)
from bayesfair.kernels.log.rows import fixed
from bayesfair.kernels.team import Team
from bayesfair.typing import Floats, Ints

__all__ = ["LogPass", "log_pass"]


_BLOCK = 8192
_CHUNK = 128
_AT_ONCE = 4  # blocks that both kernels see before the next ones
_SUMS = {"reassoc", "contract", "nsz"}  # never nnan: NaN means "not on offer"


class LogPass(NamedTuple):
    """What one pass finds in a part of T rounds.

    Attributes
    ----------
    p : (T,) array
        Logged probability of each choice; empty where none was.
    may : (T,) array of bool
        Rounds whose probabilities are further apart than was asked; empty without a whole rule.
    rule : RuleSums
        How the choices follow the rule.
    moments : RewardMoments
        Of rewards and probabilities, by arm.
    lowest : float
        Smallest probability of a choice; inf where none was logged.
    n_zero, n_unobserved : (k,) array
        Rewards of 0, and unknown ones.
    reward_total : (k,) array
        Sum of the known rewards.
    concentration : float
        Sum of the probabilities of the choices.
    place, prints : (m,) array
        Windows that are kept, by their last round, and their fingerprints.
    limit : int
        Fingerprints up to this are kept.
    """

    p: Floats
    may: NDArray[np.bool_]
    rule: RuleSums
    moments: RewardMoments
    lowest: float
    n_zero: Ints
    n_unobserved: Ints
    reward_total: Floats
    concentration: float
    place: Ints
    prints: Prints
    limit: int


@compiled(error_model="numpy", fastmath=_SUMS)
def _add_rounds(second, third, x, high, low, n):  # type: ignore[no-untyped-def]
    """Return the sums over a chunk of -second, of its variance, and of ``x``; the largest step."""
    slope, variance, moved, step = 0.0, 0.0, 0.0, 0.0
    for c in range(n):
        slope -= second[c]
        variance += third[c] - second[c] * second[c]
        moved += x[c]
    for c in range(n):
        up, down = high[c] - second[c], second[c] - low[c]
        up = up if up > down else down
        step = up if up > step else step
    return slope, variance, moved, step


@compiled(error_model="numpy", fastmath={"contract", "nsz"})
def _spread(lines, n, second, third, shift, high, low):  # type: ignore[no-untyped-def]
    """Write sums of pi^2, pi^3 and of steps, and extremes, of a chunk; return whether any is NaN.

    Few lines to a loop: of more at once the compiler does not see that they lie apart.
    """
    for c in range(n):
        second[c], third[c] = 0.0, 0.0
    for c in range(n):
        shift[c] = 0.0
        high[c] = low[c] = lines[0, c + 1]
    for i in range(lines.shape[0]):
        line = lines[i]
        for c in range(n):
            x = line[c + 1]
            squared = x * x
            second[c] += squared
            third[c] += squared * x
        for c in range(n):
            x = line[c + 1]
            shift[c] += abs(x - line[c])
        for c in range(n):
            x = line[c + 1]
            high[c] = x if x > high[c] else high[c]
            low[c] = x if x < low[c] else low[c]
    gaps = 0
    for c in range(n):
        gaps += np.isnan(shift[c])
    return gaps > 0


@compiled(error_model="numpy", fastmath={"contract", "nsz"})
def _rule_blocks(blocks, size, n_rounds, arm, pi, stride, k, reach, limit, out, p, may):  # type: ignore[no-untyped-def]
    """Write the rule's sums of each block to ``out``; see `RuleSums` for their order."""
    lines = np.empty((k, _CHUNK + 1))
    second, third, shift = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    high, low = np.empty(_CHUNK), np.empty(_CHUNK)
    for b in blocks:
        slope, variance, step, same, same_variance, moved = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        n_pairs, n_steps = 0, 0
        # windows of rows reach back into the block before, which another thread may not have seen
        for t in range(max(b * size - reach, 0), b * size):
            p[t] = pi[t * stride[0] + arm[t] * stride[1]]
        for start in range(b * size, min(b * size + size, n_rounds), _CHUNK):
            n = min(_CHUNK, min(b * size + size, n_rounds) - start)
            # the round before stands in front; the first round of all has none
            before = start - 1 if start > 0 else 0
            if stride[1] == 1 and k > 8:
                for i in range(k):
                    lines[i, 0] = pi[before * stride[0] + i]
                for c in range(n):
                    base = (start + c) * stride[0]
                    for i in range(k):
                        lines[i, c + 1] = pi[base + i]
            else:
                for i in range(k):
                    lines[i, 0] = pi[before * stride[0] + i * stride[1]]
                    base = start * stride[0] + i * stride[1]
                    for c in range(n):
                        lines[i, c + 1] = pi[base + c * stride[0]]
            if _spread(lines, n, second, third, shift, high, low):  # arms come and go
                for c in range(n):
                    second[c], third[c], shift[c], high[c], low[c] = 0.0, 0.0, 0.0, 0.0, 1.0
                    steps = start + c > 0
                    for i in range(k):
                        x, last = lines[i, c + 1], lines[i, c]
                        if np.isnan(x) != np.isnan(last):
                            steps = False
                        elif not np.isnan(x):
                            shift[c] += abs(x - last)
                        if not np.isnan(x):
                            second[c] += x * x
                            third[c] += x * x * x
                            high[c], low[c] = max(high[c], x), min(low[c], x)
                    if steps:
                        n_steps += 1
                    else:
                        shift[c] = 0.0
            else:
                n_steps += n - (start == 0)
            for c in range(n):
                may[start + c] = high[c] - low[c] > limit
            last = np.uint32(arm[start - 1] if start > 0 else 0)
            for c in range(n):
                a = np.uint32(arm[start + c])  # unsigned: no index counts from the end
                x, again = lines[a, c + 1], lines[last, c + 1]
                p[start + c] = x
                slope += x
                if start + c > 0 and not np.isnan(again):
                    n_pairs += 1
                    same += (a == last) - again
                    same_variance += again * (1.0 - again)
                last = a
            found = _add_rounds(second, third, shift, high, low, n)
            slope, variance, moved = slope + found[0], variance + found[1], moved + found[2]
            step = max(step, found[3])
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = slope, variance, step, same
        out[b, 4], out[b, 5], out[b, 6], out[b, 7] = same_variance, n_pairs, 0.5 * moved, n_steps


class _Windows(NamedTuple):
    """Where the blocks keep the windows with a fingerprint of at most ``limit``.

    ``filled`` (block, 2) counts those, and those up to twice as large.
    """

    width: int
    root: np.uint64
    limit: np.uint64
    place: Ints
    prints: Prints
    filled: Ints

    @classmethod
    def room(cls, n: int, n_blocks: int, halved: int) -> _Windows:
        """Return room for ``n`` windows, all fingerprints ``halved`` so many times."""
        return cls(
            WINDOW, PRINT_BASE, np.uint64(ALL_PRINTS >> halved), np.empty(n, np.int64),
            np.empty(n, np.uint64), np.zeros((n_blocks, 2), np.int64),
        )  # fmt: skip


@compiled(error_model="numpy", fastmath=_SUMS)
def _chances(p, start, stop):  # type: ignore[no-untyped-def]
    """Return the smallest of some probabilities, and their sum."""
    lowest, total = np.inf, 0.0
    for t in range(start, stop):
        total += p[t]
        lowest = p[t] if p[t] < lowest else lowest
    return lowest, total


@compiled()
def _row_blocks(blocks, size, n_rounds, arm, reward, p, moments, tallies, totals, windows):  # type: ignore[no-untyped-def]
    """Write moments, counts and the kept windows of each block."""
    has_p = p.shape[0] > 0
    width, root, limit = windows.width, windows.root, windows.limit
    place, prints = windows.place, windows.prints
    nearly = limit + limit + np.uint64(1) if limit < ALL_PRINTS else limit
    known, chance = np.empty(_CHUNK), np.zeros(_CHUNK)
    known_bits, chance_bits = known.view(np.uint64), chance.view(np.uint64)
    rows, ends = np.empty(width + _CHUNK, np.uint64), np.empty(_CHUNK, np.uint64)
    lead = np.uint64(1)
    for _ in range(width):
        lead *= root
    of_arm = np.empty(moments.shape[2], np.uint64)
    for i in range(len(of_arm)):
        of_arm[i] = mixed(np.uint64(i) + root)
    for b in blocks:
        block_start, block_stop = b * size, min(b * size + size, n_rounds)
        out = moments[b]
        lowest, concentration = _chances(p, block_start, block_stop if has_p else block_start)
        # sums and extremes from each arm's first reward, then products about the means
        for t in range(block_start, block_stop):
            a, r = np.uint32(arm[t]), reward[t]
            if np.isnan(r):
                tallies[b, 1, a] += 1
                continue
            x = p[t] if has_p else 0.0
            totals[b, a] += r
            tallies[b, 0, a] += r == 0.0
            if out[0, a] == 0.0:
                out[1, a] = r
            out[0, a] += 1.0
            out[2, a] += r - out[1, a]
            out[3, a] += x
            out[7, a] = min(out[7, a], r)
            out[8, a] = max(out[8, a], r)
            out[9, a] = min(out[9, a], x)
            out[10, a] = max(out[10, a], x)
        for i in range(out.shape[1]):
            if out[0, i] > 0.0:
                out[2, i] /= out[0, i]
                out[3, i] /= out[0, i]
                if out[9, i] == out[10, i]:
                    out[3, i] = out[9, i]  # no rounding where nothing varies
        for t in range(block_start, block_stop):
            a, r = np.uint32(arm[t]), reward[t]
            if np.isnan(r):
                continue
            dr = r - out[1, a] - out[2, a]
            dx = (p[t] if has_p else 0.0) - out[3, a]
            out[4, a] += dr * dr
            out[5, a] += dx * dx
            out[6, a] += dr * dx
        totals[b, out.shape[1]] = concentration
        totals[b, out.shape[1] + 1] = lowest
        # windows that end in this block reach back into the one before
        first, fill, running, n_near = max(block_start - width + 1, 0), block_start, np.uint64(0), 0
        rows[:width] = 0
        for start in range(first, block_stop, _CHUNK):
            n = min(_CHUNK, block_stop - start)
            for c in range(n):  # one zero, one NaN
                r = reward[start + c]
                known[c] = np.nan if np.isnan(r) else r + 0.0
            if has_p:
                for c in range(n):
                    x = p[start + c]
                    chance[c] = np.nan if np.isnan(x) else x + 0.0
            # the rows before stand in front; before the first they are 0, which changes nothing
            for c in range(n):
                row = mixed(of_arm[np.uint32(arm[start + c])] + known_bits[c])
                rows[width + c] = mixed(row + chance_bits[c] * root)
            for c in range(n):
                running = running * root + (rows[width + c] - lead * rows[c])
                ends[c] = running
            for c in range(width):
                rows[c] = rows[n + c]
            for c in range(max(max(width - 1, block_start) - start, 0), n):
                window = mixed(ends[c])
                place[fill], prints[fill] = start + c, window  # stays if the next is behind it
                fill += window <= limit
                n_near += window <= nearly
        windows.filled[b, 0], windows.filled[b, 1] = fill - block_start, n_near


@compiled()
def _joined_blocks(moments, out):  # type: ignore[no-untyped-def]
    """Join the moments of blocks in their order, as `joined_moments` does for two parts."""
    for b in range(moments.shape[0]):
        for a in range(out.shape[1]):
            more, n = moments[b, 0, a], out[0, a]
            if more == 0.0:
                continue
            if n == 0.0:
                for c in range(out.shape[0]):
                    out[c, a] = moments[b, c, a]
                continue
            share = more / (n + more)
            between = n * share
            dr = moments[b, 2, a] + (moments[b, 1, a] - out[1, a]) - out[2, a]
            dp = moments[b, 3, a] - out[3, a]
            out[0, a] = n + more
            out[2, a] += dr * share
            out[3, a] += dp * share
            out[4, a] += moments[b, 4, a] + dr * dr * between
            out[5, a] += moments[b, 5, a] + dp * dp * between
            out[6, a] += moments[b, 6, a] + dr * dp * between
            out[7, a] = min(out[7, a], moments[b, 7, a])
            out[8, a] = max(out[8, a], moments[b, 8, a])
            out[9, a] = min(out[9, a], moments[b, 9, a])
            out[10, a] = max(out[10, a], moments[b, 10, a])


def log_pass(
    arm: NDArray[np.int32],
    reward: Floats,
    pi: Floats | None,
    p: Floats | None,
    k: int,
    *,
    apart: float = 0.0,
    most: int,
    threads: int = 1,
) -> LogPass:
    """Look once at every row of a part of a log.

    Parameters
    ----------
    arm : (T,) array of int32
    reward : (T,) array
        NaN = not observed.
    pi : (T, k) array or None
        The whole rule; NaN = not on offer.
    p : (T,) array or None
        Probability of the chosen arm, where nothing else was logged; else it follows from `pi`.
    k : int
        Number of arms.
    apart : float
        Rounds whose probabilities are further apart may violate.
    most : int
        Windows that are remembered at most.
    threads : int
        Blocks of rounds are shared among so many; the numbers do not depend on it.
    """
    n_rounds = len(arm)
    size = max(_BLOCK, -(-8 * k // _BLOCK) * _BLOCK)  # what a block keeps is less than its rows
    n = -(-n_rounds // size)
    line, stride = _line(pi)
    if pi is not None:
        p = np.empty(n_rounds)
    chances = np.empty(0) if p is None else np.ascontiguousarray(p, dtype=np.float64)
    may = np.empty(0 if pi is None else n_rounds, np.bool_)
    rule, moments, tallies = np.zeros((n, 8)), np.zeros((n, 11, k)), np.zeros((n, 2, k), np.int64)
    moments[:, [7, 9]], moments[:, [8, 10]] = np.inf, -np.inf
    totals = np.zeros((n, k + 2))
    # windows are thinned by halves: begin where about as many as may stay are left
    halved = int(n_rounds / (1.05 * most)).bit_length()
    windows = _Windows.room(n_rounds, n, halved)
    rows = fixed(arm), fixed(np.ascontiguousarray(reward, dtype=np.float64))

    def run(which: Ints) -> None:
        for s in range(0, len(which), _AT_ONCE):
            some = which[s : s + _AT_ONCE]
            if pi is not None:
                _rule_blocks(
                    some, size, n_rounds, rows[0], line, stride, k, WINDOW, apart, rule, chances,
                    may,
                )  # fmt: skip
            _row_blocks(
                some, size, n_rounds, *rows, fixed(chances), moments, tallies, totals, windows
            )

    with Team(max(1, min(threads, n))) as team:
        team.share(run, n)
    starts = np.arange(n) * size
    stay, near = windows.filled.sum(axis=0).tolist()
    if halved and near <= most:  # many rows are alike
        windows = _Windows.room(n_rounds, 1, 0)
        _row_blocks(
            np.zeros(1, np.int64), n_rounds, n_rounds, *rows, fixed(chances),
            np.zeros((1, 11, k)), np.zeros((1, 2, k), np.int64), np.zeros((1, k + 2)), windows,
        )  # fmt: skip
        starts, halved, stay = starts[:1], 0, int(windows.filled[0, 0])
    ends = starts + windows.filled[:, 0]
    inside = [slice(a, z) for a, z in zip(starts.tolist(), ends.tolist(), strict=True)]
    kept_place = np.concatenate([windows.place[s] for s in inside]) if n else windows.place
    kept_prints = np.concatenate([windows.prints[s] for s in inside]) if n else windows.prints
    limit = ALL_PRINTS >> halved
    if stay > most:
        kept, limit = anchors(kept_prints, most, limit)
        kept_place, kept_prints = kept_place[kept], kept_prints[kept]
    joined = np.zeros((11, k))
    joined[[7, 9]], joined[[8, 10]] = np.inf, -np.inf
    _joined_blocks(moments, joined)
    sums = rule.sum(axis=0).tolist()
    return LogPass(
        chances,
        may,
        RuleSums(
            sums[0], sums[1], float(rule[:, 2].max(initial=0.0)), sums[3], sums[4], int(sums[5]),
            sums[6], int(sums[7]),
        ),
        RewardMoments(*joined),
        float(totals[:, k + 1].min(initial=np.inf)),
        tallies[:, 0].sum(axis=0),
        tallies[:, 1].sum(axis=0),
        totals[:, :k].sum(axis=0),
        float(totals[:, k].sum()),
        kept_place,
        kept_prints,
        limit,
    )  # fmt: skip


def _line(pi: Floats | None) -> tuple[Floats, tuple[int, int]]:
    """Return pi as one line of memory and its strides by round and arm, copied only if it must."""
    if pi is None:
        return fixed(np.empty(0)), (0, 0)
    if pi.flags.f_contiguous and not pi.flags.c_contiguous:
        return fixed(pi.T.reshape(-1)), (1, len(pi))
    return fixed(np.ascontiguousarray(pi, dtype=np.float64).reshape(-1)), (pi.shape[1], 1)
