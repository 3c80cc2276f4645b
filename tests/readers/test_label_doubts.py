"""Labels of one number in two spellings, and labels that spell a missing value, are named."""

from __future__ import annotations

import pytest

import bayesfair as bf
from bayesfair.base.notices import Notice

ALIKE = {"1", "1.0", "01"}
MISSING = {"nan", "None", "NULL", "NaT", "<NA>"}


def _kinds(notices):
    kinds = ("labels_alike", "label_like_missing")
    return {(n.kind, n.column): set(n.value) for n in map(Notice.of, notices) if n.kind in kinds}


def test_labels_of_one_number_and_labels_that_spell_missing_are_named_and_kept(tmp_path):
    """Each log holds both: one notice of each kind, whoever reads it; nothing is merged."""
    words = sorted(ALIKE | MISSING | {"2", "a"})
    log = tmp_path / "log.csv"
    log.write_text("arm,reward\n" + "".join(f"{word},1\n" for word in words))
    grouped = tmp_path / "grouped.csv"
    grouped.write_text("city,arm,reward\n" + "".join(f"{w},a,1\n{w},b,0\n" for w in words))
    duels = tmp_path / "duels.csv"
    duels.write_text("winner,loser\n" + "".join(f"{word},a\n" for word in words if word != "a"))
    read = bf.read_history(log)
    compared = bf.read_comparisons(duels)
    assert set(read.arms) == set(compared.items) == set(words)
    for notices, what in ((read.notices, "arm"), (compared.notices, "item")):
        assert _kinds(notices) == {
            ("labels_alike", what): ALIKE, ("label_like_missing", what): MISSING
        }  # fmt: skip
    groups = bf.read_history(grouped, by="city")
    assert set(groups) == set(words)
    for group in groups.values():
        assert _kinds(group.notices) == {
            ("labels_alike", "group"): ALIKE, ("label_like_missing", "group"): MISSING
        }  # fmt: skip
    scanned = bf.audit(bf.scan_history(log, arms=words), objective=False)
    assert _kinds(scanned.findings)["labels_alike", "arm"] == ALIKE


@pytest.mark.parametrize(
    "labels", [["1", "2", "10"], ["9007199254740993", "9007199254740992"], ["none here", "NA"]]
)
def test_numbers_that_differ_and_other_words_raise_no_doubt(labels):
    assert _kinds(bf.History(labels, [1] * len(labels)).notices) == {}
