"""What is saved of the sums for the checks of a log, field by field; see `schema`."""

from bayesfair.audit.log.guards import Edge, Guards
from bayesfair.audit.log.repeats import Blocks, Keys, Tie, Ties
from bayesfair.audit.log.users import Again, Users
from bayesfair.audit.saved.kinds import (
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Many,
    Maybe,
    Record,
    f8,
    i4,
    i8,
    u8,
)
from bayesfair.kernels.log.guards import RewardMoments, RuleSums

__all__ = ["GUARDS", "REWARD_MOMENTS"]

EDGE = Record(Edge, {
    "arm": WHOLE,
    "p": NUMBER,
    "pi": f8("pi"),
    "best": f8("best"),
})  # fmt: skip

BLOCKS = Record(Blocks, {
    "limit": WHOLE,
    "place": i8("window"),
    "prints": u8("window"),
    "surprise": f8("window"),
    "head": u8("head"),
    "tail": u8("tail"),
    "head_surprise": f8("head"),
    "tail_surprise": f8("tail"),
    "end": WHOLE,
})  # fmt: skip

TIES = Record(Ties, {
    "open": Many(Record(Tie, {
        "time": WHOLE,
        "n": WHOLE,
        "print_": WHOLE,
        "alike": TRUTH,
        "first": NUMBER,
        "chance": NUMBER,
    })),
    "n_stamps": WHOLE,
    "n_alike": WHOLE,
    "n_rows": WHOLE,
    "expected": NUMBER,
    "variance": NUMBER,
})  # fmt: skip

KEYS = Record(Keys, {
    "column": TEXT,
    "prints": u8("key"),
    "first_arm": i4("key"),
    "last_arm": i4("key"),
    "n_repeated": WHOLE,
    "n_same": WHOLE,
    "row": WHOLE,
    "first_row": i8("key"),
})  # fmt: skip

USERS = Record(Users, {
    "column": TEXT,
    "start": WHOLE,
    "prints": u8("user"),
    "last_arm": i4("user"),
    "first_arm": i4("first"),
    "first_p": f8("first"),
    "first_pi": f8("first", "pi"),
    "again": Record(Again, {
        "n_pairs": WHOLE,
        "n_same": WHOLE,
        "excess": NUMBER,
        "variance": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
    }),
})  # fmt: skip

REWARD_MOMENTS = Record(RewardMoments, dict.fromkeys(RewardMoments._fields, f8("arm")))

GUARDS = Record(Guards, {
    "moments": REWARD_MOMENTS,
    "rule": Record(RuleSums, {
        "slope": NUMBER,
        "slope_variance": NUMBER,
        "slope_step": NUMBER,
        "same": NUMBER,
        "same_variance": NUMBER,
        "n_pairs": WHOLE,
        "moved": NUMBER,
        "n_steps": WHOLE,
    }),
    "lowest": NUMBER,
    "best_moved": NUMBER,
    "n_zero": i8("arm"),
    "first": EDGE,
    "last": EDGE,
    "blocks": BLOCKS,
    "ties": TIES,
    "keys": Maybe(KEYS),
    "users": Maybe(USERS),
})  # fmt: skip
