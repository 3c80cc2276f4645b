"""Broken logs: what is broken, and what a message must name (row, column, value, remedy).

One table for Python and for the command line. Other test folders load it by path::

    spec = importlib.util.spec_from_file_location("broken_files", folder / "broken_files.py")

`Broken.write(folder)` writes the log and returns its path, `Broken.options` are the keyword options
of `read_history`, `Broken.flags` the same for the command line.
"""

from __future__ import annotations

from broken_tools import (
    Broken,
    damaged_parquet,
    duplicate_parquet,
    parquet,
    truncated_gzip,
    truncated_parquet,
    zip_archive,
)

__all__ = ["BROKEN", "Broken"]

FULL = "arm,reward,p_a,p_b\n"
GOOD = FULL + "a,1,0.5,0.5\nb,0,0.5,0.5\n"
CHANCE = "arm,reward,propensity\na,1,0.5\n"
STAMPED = "timestamp,arm,reward\n"

BROKEN = [
    # -- no usable file ----------------------------------------------------------------------
    Broken("no_file", None, ("no such file", "log.csv", "CSV or Parquet")),
    Broken("empty_file", "", ("log.csv", "empty", "header")),
    Broken("blank_file", "\n \n", ("log.csv", "empty", "header")),
    Broken("header_only", FULL, ("log.csv", "no rows", "header")),
    Broken(
        "one_column_wrong_delimiter",
        "arm:reward\na:1\n",
        ("row 1", "log.csv", "one column", "arm:reward", "delimiter="),
    ),
    Broken(
        "one_column_wrong_delimiter_given",
        GOOD,
        ("row 1", "one column", "arm,reward,p_a,p_b", "';'", "delimiter"),
        {"delimiter": ";"},
    ),
    Broken(
        "two_delimiters_possible",
        "arm;x|reward;y\na;1|1;0\n",
        ("row 1", "arm;x|reward;y", "';'", "'|'", "delimiter="),
        {"arm": "nowhere"},
    ),
    Broken("not_text", bytes(range(256)) * 4, ("log.csv", "not", "text", "row 1", "export")),
    Broken(
        "not_utf8",
        "arm,reward\ncaf\xe9,1\n".encode("latin-1"),
        ("row 2", "log.csv", "0xe9", "UTF-8"),
    ),
    Broken("utf16", "arm,reward\na,1\n".encode("utf-16") + b"x", ("log.csv", "UTF-16", "UTF-8")),
    Broken("spreadsheet", zip_archive, ("log.csv", "spreadsheet", "export")),
    Broken("truncated_gzip", truncated_gzip, ("log.csv.gz", "truncated"), file="log.csv.gz"),
    Broken(
        "truncated_parquet",
        truncated_parquet,
        ("log.parquet", "truncated", "Copy it again"),
        file="log.parquet",
    ),
    Broken(
        "damaged_parquet",
        damaged_parquet,
        ("log.parquet", "damaged", "again"),
        file="log.parquet",
    ),
    Broken(
        "text_called_parquet",
        GOOD,
        ("log.parquet", "does not start as one", "rename"),
        file="log.parquet",
    ),
    # -- header ------------------------------------------------------------------------------
    Broken(
        "missing_column",
        "arm,rewards,p_a\na,1,1\n",
        ("log.csv", "'reward'", "'arm', 'rewards', 'p_a'", "Did you mean 'rewards'", "reward=..."),
    ),
    Broken(
        "missing_propensity",
        CHANCE,
        ("'propensty'", "'arm', 'reward', 'propensity'", "Did you mean 'propensity'"),
        {"propensity": "propensty"},
    ),
    Broken(
        "missing_pattern",
        GOOD,
        ("no columns 'prob_{arm}'", "'p_a', 'p_b'", "probabilities"),
        {"probabilities": "prob_{arm}"},
    ),
    Broken(
        "duplicated_header",
        "arm,reward,reward\na,1,0\n",
        ("row 1", "log.csv", "'reward'", "columns 2 and 3", "Rename"),
    ),
    Broken(
        "duplicated_header_parquet",
        duplicate_parquet,
        ("log.parquet", "'reward'", "columns 2 and 3", "Rename"),
        file="log.parquet",
    ),
    Broken(
        "two_columns_for_one_arm",
        "arm,reward,p_Caf\u00e9,p_Cafe\u0301\nCaf\u00e9,1,0.5,0.5\n",
        ("log.csv", "p_Caf\\xe9", "p_Cafe\\u0301", "both arm 'Caf\u00e9'", "Rename"),
    ),
    Broken(
        "too_few_fields",
        GOOD + "a,1,1\n",
        ("row 4", "log.csv", "3 fields", "4 columns", "a,1,1", "quotes"),
    ),
    Broken(
        "too_many_fields",
        GOOD + "a,1,0.5,0.5,9\n",
        ("row 4", "5 fields", "4 columns", "a,1,0.5,0.5,9", "quotes"),
    ),
    Broken(
        "quote_never_closed",
        GOOD + '"a,1,0.5,0.5\nb,0,0.5,0.5\n',
        ("row 4", "log.csv", "double quote", "never closed", "Close or remove"),
    ),
    Broken(
        "quote_never_closed_in_the_last_row",
        GOOD + 'b,0,0.5,"0.5\n',
        ("row 4", "log.csv", "double quote", "never closed", "Close or remove"),
    ),
    Broken(
        "quote_never_closed_swallows_rows",
        'reward,arm\n1,a\n0,"b\n1,a\n0,b\n',
        ("row 3", "log.csv", "never closed", '0,"b', "Close or remove"),
    ),
    Broken(
        "text_behind_a_quote",
        'arm,reward\na,1\n"a"b,0\n',
        ("row 3", "log.csv", '"a"b,0', "behind a closing double quote", "written twice"),
    ),
    Broken(
        "blank_before_a_quote",
        'arm,reward\na,1\n"a", "1"\n',
        ("row 3", "log.csv", "blanks before", "Remove the blanks"),
    ),
    Broken("json", '{"arm":"a","reward":1}\n{"arm":\n', ("row 2", "log.csv", "JSON", "correct")),
    Broken("spreadsheet_note_alone", "sep=;\n", ("log.csv", "empty", "header")),
    Broken("empty_first_line", "\narm,reward\na,1\n", ("row 1", "empty", "Remove empty lines")),
    Broken(
        "not_utf8_far_into_the_file",
        (GOOD + "a,1,0.500000,0.500000\n" * 60_000 + "caf\xe9,1,0.5,0.5\n").encode("latin-1"),
        ("row 60004", "log.csv", "UTF-8"),
    ),
    # -- probabilities -----------------------------------------------------------------------
    Broken(
        "row_does_not_sum_to_1",
        GOOD + "a,1,0.50,0.5811\n",
        ("row 4", "log.csv", "1.0811", "a 0.5, b 0.5811", "normalise", "p_{arm}"),
    ),
    Broken(
        "negative_probability",
        GOOD + "a,1,1.000,-0.127\n",
        ("row 4", "log.csv", "'p_b'", "-0.127", "below 0", "correct the log"),
    ),
    Broken(
        "percent",
        FULL + "a,1,75,25\n",
        ("row 2", "'p_a'", "75", "above 1", "percent", "divide by 100"),
    ),
    Broken(
        "scores",
        FULL + "a,1,1.25,0.75\n",
        ("row 2", "'p_a'", "1.25", "above 1", "scores", "row's sum"),
    ),
    Broken(
        "logarithms",
        FULL + "a,1,-1.386,-0.288\n",
        ("row 2", "'p_a'", "-1.386", "logarithms", "0.2501", "exp()"),
    ),
    Broken(
        "chosen_arm_has_probability_0",
        GOOD + "a,1,0,1\n",
        ("row 4", "log.csv", "'a'", "'p_a'", "probability is 0", "check that the columns"),
    ),
    Broken(
        "chosen_arm_has_no_probability",
        GOOD + "a,1,,1\n",
        ("row 4", "'a'", "'p_a'", "missing (NaN)", "fill in"),
    ),
    Broken(
        "probability_is_a_word",
        GOOD + "a,1,half,0.5\n",
        ("row 4", "'p_a'", "'half'", "not a number", "empty"),
    ),
    Broken(
        "decimal_comma_not_announced",
        "arm;reward;p_a;p_b\na;1;0,5;0,5\n",
        ("row 2", "'p_a'", "'0,5'", "not a number", 'decimal=","'),
    ),
    Broken(
        "propensity_above_1_is_percent",
        CHANCE + "b,0,25\n",
        ("row 3", "'propensity'", "25", "above 1", "percent", "divide by 100"),
    ),
    Broken(
        "propensity_negative",
        CHANCE + "b,0,-0.127\n",
        ("row 3", "'propensity'", "-0.127", "below 0", "correct the log"),
    ),
    Broken(
        "propensity_logarithms",
        "arm,reward,propensity\na,1,-1.386\nb,0,-0.1\n",
        ("row 2", "'propensity'", "-1.386", "logarithms", "0.2501", "exp()"),
    ),
    Broken(
        "propensity_0",
        CHANCE + "b,0,0\n",
        ("row 3", "'propensity'", "is 0", "yet it was chosen", "Correct"),
    ),
    Broken(
        "propensity_missing",
        CHANCE + "b,0,\n",
        ("row 3", "'propensity'", "missing (NaN", "Fill it in"),
    ),
    Broken(
        "propensity_contradicts_probabilities",
        "arm,reward,q,p_a,p_b\na,1,0.5,0.5,0.5\nb,0,0.25,0.5,0.5\n",
        ("row 3", "'q'", "0.25", "'p_b'", "0.5", "propensity=False"),
        {"propensity": "q"},
    ),
    # -- rewards -----------------------------------------------------------------------------
    Broken(
        "reward_is_an_unknown_word",
        "arm,reward\na,1\nb,0\na,maybe\nb,maybe\n",
        ("row 4", "log.csv", "'reward'", "'maybe'", "2 such rows", "rewards="),
    ),
    Broken(
        "reward_missing",
        "arm,reward\na,1\nb,\na,\n",
        ("row 3", "'reward'", "missing", "2 such rows", "missing='unobserved'"),
    ),
    Broken(
        "reward_with_decimal_comma",
        "arm;reward\na;0,5\n",
        ("row 2", "'reward'", "'0,5'", 'decimal=","'),
    ),
    Broken(
        "reward_infinite",
        "arm,click\na,1\nb,inf\n",
        ("row 3", "log.csv", "'click'", "inf", "finite", "NaN"),
        {"reward": "click"},
    ),
    Broken(
        "reward_outside_0_1",
        "arm,click\na,1\nb,2\n",
        ("row 3", "log.csv", "'click'", "is 2", "0 or 1", "family='finite'", "family='poisson'"),
        {"reward": "click"},
        audit={"family": "bernoulli"},
    ),
    Broken(
        "a_stray_code_among_rewards",
        "arm,click\n" + "a,1\nb,0\n" * 30 + "a,-1\n",
        ("row 62", "log.csv", "'click'", "is -1", "missing=", "family='finite'"),
        {"reward": "click"},
        audit={},
    ),
    # -- arms --------------------------------------------------------------------------------
    Broken(
        "arm_without_its_column",
        GOOD + "c,1,0.5,0.5\n",
        ("row 4", "log.csv", "'arm'", "'c'", "'a', 'b'", "'p_c'", "probabilities=False"),
    ),
    Broken(
        "arm_not_among_arms",
        "arm,reward\na,1\nnroth,1\n",
        ("row 3", "'arm'", "'nroth'", "'a', 'north'", "Did you mean 'north'", "arms="),
        {"arms": ["a", "north"]},
    ),
    Broken(
        "arms_without_column",
        GOOD,
        ("'c'", "probability column", "'p_a', 'p_b'", "remove"),
        {"arms": ["a", "b", "c"]},
    ),
    Broken(
        "arm_missing",
        "arm,reward\na,1\n,1\n\u00a0,0\n",
        ("row 3", "'arm'", "empty", "2 such rows", "missing='drop'"),
    ),
    Broken(
        "chosen_arm_not_on_offer",
        "arm,reward,offer\na,1,a|b\nb,0,a\n",
        ("row 3", "'b'", "not on offer", "offered", "correct"),
        {"offered": "offer", "arms": ["a", "b"]},
    ),
    Broken(
        "arms_are_lists",
        lambda: parquet(arm=[["a"], ["b"]], reward=[1, 0]),
        ("row 1", "log.parquet", "'arm'", "one value", "list"),
        file="log.parquet",
    ),
    Broken(
        "unknown_arm_on_offer",
        "arm,reward,offer\na,1,a|b\nb,0,b|x\n",
        ("row 3", "'offer'", "'x'", "'a', 'b'", "arms="),
        {"offered": "offer", "arms": ["a", "b"]},
    ),
    # -- order -------------------------------------------------------------------------------
    Broken(
        "unsorted_scan",
        STAMPED + "2024-01-05,a,1\n2024-01-07,b,0\n2024-01-06,a,1\n",
        ("row 4", "'timestamp'", "2024-01-06", "2024-01-07", "sort the source", "order=False"),
        reader="scan",
    ),
    Broken(
        "naive_and_aware_times",
        STAMPED + "2024-01-05 10:00,a,1\n2024-01-05 11:00+01:00,b,0\n",
        ("row 3", "row 2", "'timestamp'", "11:00+01:00", "with zone", "without zone", "all"),
    ),
    Broken(
        "times_and_numbers",
        STAMPED + "1704448800,a,1\n2024-01-05 11:00,b,0\n",
        ("row 3", "'timestamp'", "2024-01-05 11:00", "number", "Write all rows in one way"),
    ),
    Broken(
        "time_unreadable",
        STAMPED + "2024-01-05,a,1\n05/01/2024,b,0\n",
        ("row 3", "'timestamp'", "'05/01/2024'", "Write times as"),
    ),
    Broken(
        "day_that_does_not_exist",
        STAMPED + "2024-01-05,a,1\n2024-02-29,b,0\n2023-02-29,b,0\n2024-03-01,a,1\n",
        ("row 4", "'timestamp'", "'2023-02-29'", "no time that exists", "Write times as"),
    ),
    Broken(
        "hour_that_does_not_exist",
        STAMPED + "2024-01-05 10:00Z,a,1\n2024-01-05 25:00Z,b,0\n",
        ("row 3", "'timestamp'", "'2024-01-05 25:00Z'", "no time that exists", "Write times as"),
    ),
    Broken(
        "time_missing",
        STAMPED + "2024-01-05,a,1\n,b,0\n",
        ("row 3", "'timestamp'", "missing", "order=False"),
    ),
    Broken(
        "clock_readings_with_too_many_digits",
        STAMPED + "1704448800000000001.0,a,1\n1704448800000000000,b,0\n",
        ("row 3", "'timestamp'", "'1704448800000000000'", "'1704448800000000001.0'", "whole"),
    ),
    Broken(
        "order_not_a_number",
        "n,arm,reward\n1,a,1\nnan,b,0\n",
        ("row 3", "'n'", "missing", "order=False"),
        {"order": "n"},
    ),
    # -- delays, groups ----------------------------------------------------------------------
    Broken(
        "known_before_its_round",
        "arm,reward,seen\na,1,1\nb,0,1\n",
        ("row 3", "'seen'", "1 is not after its own round", "next round"),
        {"known_at": "seen"},
    ),
    Broken(
        "known_before_its_time",
        "timestamp,arm,reward,seen\n2024-01-05,a,1,2024-01-06\n2024-01-07,b,0,2024-01-06\n",
        ("row 3", "'seen'", "2024-01-06", "before the round itself", "check"),
        {"known_at": "seen"},
        reader="read",
    ),
    Broken(
        "known_at_in_seconds",
        "timestamp,arm,reward,known_at\n1704448800,a,1,1704448860\n1704448900,b,0,1704448960\n",
        ("row 2", "'known_at'", "1704448860", "'timestamp'", "Convert it", "known_at=False"),
    ),
    Broken(
        "group_missing",
        "arm,reward,slot\na,1,1\nb,0,\n",
        ("row 3", "'slot'", "group is empty", "Fill it in"),
        {"by": "slot"},
        reader="read",
    ),
]
