"""The page says what the numbers say, for every kind of log, and says what is missing."""

import copy
import json
import re

import numpy as np
import pytest
from page_tools import Page

import bayesfair as bf
from bayesfair import examples
from bayesfair.errors import OptionError
from bayesfair.report.words import unchecked
from bayesfair.value import policy_value


def log(k, n, selection="full", *, seed=0, **options):
    """Return n rounds of k Bernoulli arms chosen by varying, known probabilities."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 2.0), n)
    arm = np.array([rng.choice(k, p=row) for row in p])
    logged = {
        "full": {"selection_probability": p},
        "chosen": {"propensity": p[np.arange(n), arm]},
        "none": {},
    }[selection]
    arms = options.pop("arms", [f"arm {i}" for i in range(k)])
    reward = (rng.random(n) < 0.4).astype(float)
    return bf.History([arms[i] for i in arm], reward, arms=arms, **logged, **options)


@pytest.fixture(scope="module")
def ecmo():
    return bf.audit(bf.read_history(examples.path("ecmo")), eps1=1, eps2=0.05, seed=1)


def page_of(audit, tmp_path, **options):
    bf.write_report(audit, tmp_path / "page.html", **options)
    return Page.of(tmp_path / "page.html")


def test_the_verdict_comes_first_with_what_it_rests_on(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    start = page.text[:1500]
    assert "under the beliefs of each round UNFAIR in 8 of 12 rounds" in start
    assert (
        f"under the true rewards UNDETERMINED probability fair {ecmo.probability_fair:.4f}" in start
    )
    assert f"Fairness regret {ecmo.regret.value:.4f} per round." in start
    assert "UNFAIR The decisions did not keep to the criterion." in start
    # worked out by hand from the log: rounds whose excess at eps1 = 1 is above 0.05
    needed = ecmo.rounds()["smallest_eps2"].values
    assert f"{(needed > 0.05).sum()} of 12 rounds gave two arms" in start
    assert "The worst case is round 11 (row 13): ECMO was favoured over conventional ." in start
    assert f"with probability {ecmo.probability_fair:.4f}" in start


def test_every_number_of_the_tables_is_that_of_the_json(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    numbers = ecmo.to_dict()
    assert page.numbers == numbers
    believed = ecmo.to_dataframe()
    for row, arm in zip(page.table("arm", "n"), numbers["arms"], strict=True):
        mean, low, high = (
            f"{value:.3f}" if value >= 0.001 else f"{value:.2g}"
            for value in believed.loc[
                arm["arm"], ["reward_believed", "reward_lower", "reward_upper"]
            ]
        )
        assert row == [
            arm["arm"], str(arm["n"]), f"{arm['reward_mean']:.4f}", f"{mean} [{low}, {high}]", *(
                f"{arm[key]:.4f}" for key in
                ("p_best_subjective", "p_best_objective", "selection_mean")
            ),
        ]  # fmt: skip
    for row, point in zip(page.table("eps1", "beliefs"), numbers["frontier"], strict=True):
        o = point["objective"]
        assert float(row[0]) == point["eps1"]
        assert row[1:3] == [f"{point['subjective']:.4f}", f"{o['mean']:.4f}"]
        assert row[3] == f"[{o['lower']:.4f}, {o['upper']:.4f}]"
    beliefs, truth = page.table("judged", "per round")
    part = numbers["calibration"]["subjective"]
    assert beliefs[1] == f"{part['regret_per_round']:.4f}" == "0.0375"
    assert beliefs[2:] == ["none", f"{part['regret_total']:.4f}", "exact"]
    part = numbers["calibration"]["objective"]
    assert truth[2] == f"[{part['lower']:.4f}, {part['upper']:.4f}]"
    words = {row[0]: row[1] for row in page.table("Word", "Value")}
    assert words["eps1"] == "1"
    assert words["eps2"] == words["delta"] == "0.05"
    assert words["divergence"] == "total variation"
    assert words["prior"] == numbers["criterion"]["prior"]


def test_an_estimated_rule_stands_beside_what_choices_of_p_star_would_show(tmp_path):
    choices = log(3, 60, "none")
    one = bf.audit(choices, seed=1, draws=50, rule="estimated")
    several = bf.audit({"x": choices, "y": choices}, seed=1, draws=50, rule="estimated")
    for audit, n in ((one, 1), (several, 2)):
        page = page_of(audit, tmp_path)
        found = (audit if n == 1 else audit["x"]).to_dict()["modelled"]
        for part, words in (
            (found, "As estimated"),
            (found["if_calibrated"], "Choices drawn from P* would show"),
        ):
            needs = part["smallest_eps2"]
            mean, low, high = (f"{needs[name]:.4f}" for name in ("mean", "lower", "upper"))
            said = f"{words}: it needs eps2 = {mean} [{low}, {high}]"
            assert page.text.count(said) == n
    assert "estimated from the choices" not in page_of(bf.audit(choices, seed=1), tmp_path).text


def test_values_of_rules_stand_beside_the_audit(tmp_path):
    one, other = log(2, 40), log(2, 30, seed=1)
    rules = {"half": [0.5, 0.5], "<b>" * 40: [0.25, 0.75]}
    found = policy_value(one, rules)
    page = page_of(bf.audit(one, seed=1, draws=50), tmp_path, value=found)
    assert page.numbers["value"] == found.to_dict()
    rows = page.table("rule", "IPS, 95 %")
    pi, r = one.selection_probability, one.reward
    weight = 0.5 / pi[np.arange(40), one.arm]
    assert [row[0] for row in rows[:2]] == ["logged", "half"]
    assert rows[1][1].startswith(f"{(weight * r).mean():.3f} [")
    assert rows[1][4] == f"{weight.sum() ** 2 / (weight**2).sum():.1f}"
    logs = {"x": one, "y": other}
    several, values = bf.audit(logs, seed=1, draws=50), policy_value(logs, rules)
    page = page_of(several, tmp_path, value=values)
    assert page.numbers["value"]["groups"]["y"] == values["y"].to_dict()
    assert page.text.count("What other rules would have earned") == 2
    duels = bf.read_duels([{"left": "a", "right": "b", "winner": "left"}] * 4)
    fit = bf.audit_comparisons(duels, selection_probability=[0.5, 0.5], seed=1)
    for audit, value, kind in (
        (several, found, "not_the_same"),
        (several["x"], 3, "option_value"),
        (fit, found, "unused_option"),
    ):
        with pytest.raises(OptionError) as refused:
            bf.write_report(audit, tmp_path / "no.html", value=value)
        assert (refused.value.kind, refused.value.column) == (kind, "value")


def test_page_is_valid_accessible_and_has_its_figures(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    assert page.source.startswith("<!DOCTYPE html>")
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("title")) == len(page.all("h1")) == 1
    ids = [a["id"] for _, a, _ in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = [a["href"] for a in page.all("a") + page.all("use")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert all(a.get("scope") in {"row", "col"} for a in page.all("th"))
    assert len(page.all("table")) == len(page.all("caption"))
    figures = page.all("svg")
    assert [a["aria-labelledby"] for a in figures] == [
        "frontier-alt",
        "violations-alt",
        "pairs-alt",
        "regret-alt",
        "windows-alt",
        "reliability-alt",
        "selection-alt",
        "rewards-alt",
    ]
    assert {a["aria-labelledby"] for a in figures} <= set(ids)
    assert all(a["role"] == "img" for a in figures)
    assert len(page.all("figcaption")) == len(figures)
    headings = [int(tag[1]) for tag, _, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert all(b - a <= 1 for a, b in zip([0, *headings], headings, strict=False))


def test_page_needs_nothing_from_elsewhere(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    outside = re.findall(r"[a-z]+://[^\s\"'<]*", page.source)
    assert outside == ["https://arxiv.org/abs/1707.01875"]
    assert not re.search(r"@import|url\((?!#)", page.source)
    for _, attrs, _ in page.elements:
        assert not {"src", "srcset", "data", "poster", "xlink:href"} & set(attrs)
        assert not any(name.startswith("on") for name in attrs)
    assert [a for a in page.all("script")] == [{"type": "application/json", "id": "audit-json"}]
    assert not page.all("link")
    # a browser is told to run and to load nothing, whatever a label may hold
    policy = [a["content"] for a in page.all("meta") if "http-equiv" in a]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def luminance(colour):
    """Return the relative luminance of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_writing_stands_out_in_light_and_dark(ecmo, tmp_path):
    page = page_of(ecmo, tmp_path)
    style = re.search(r"<style>(.*?)</style>", page.source, flags=re.S).group(1)
    light, dark = re.findall(r":root \{(.*?)\}", style, flags=re.S)
    for block in (light, dark):
        colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
        pairs = [(t, b) for t in ("ink", "soft", "link") for b in ("paper", "panel")]
        pairs += [("on", v) for v in ("fair", "unfair", "undetermined", "not_auditable")]
        for text, ground in pairs:
            a, b = sorted(luminance(colour[name]) for name in (text, ground))
            assert (b + 0.05) / (a + 0.05) >= 4.5, (text, ground)  # level AA
        a, b = sorted(luminance(colour[name]) for name in ("accent", "paper"))
        assert (b + 0.05) / (a + 0.05) >= 3  # lines of figures
    pairs = re.search(r'<figure id="figure-pairs">.*?</figure>', page.source, flags=re.S).group()
    cells = set(re.findall(r"fill: (#[0-9a-f]{6})", pairs))  # the same in both modes
    on = {"#000001", "#ffffff"}
    for ground in cells - on:
        contrasts = [sorted(luminance(c) for c in (text, ground)) for text in on]
        assert max((b + 0.05) / (a + 0.05) for a, b in contrasts) >= 4.5, ground
    drawn = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", page.source.replace(pairs, "")))
    assert drawn <= {"none", "var(--ink)", "var(--faint)", "var(--accent)"}  # follow the mode


def test_same_audit_same_bytes(tmp_path):
    import matplotlib as mpl

    pages = []
    for i in range(2):
        audit = bf.audit(log(3, 80), seed=3)
        with mpl.rc_context({"lines.linewidth": 1 + 9 * i, "font.size": 9 + 9 * i}):
            bf.write_report(audit, tmp_path / f"{i}.html")
        pages.append((tmp_path / f"{i}.html").read_bytes())
    assert pages[0] == pages[1]
    assert b"202" not in re.sub(rb"<svg.*?</svg>|<script.*?</script>", b"", pages[0], flags=re.S)


def test_loaded_audit_gives_the_page_without_its_rounds(ecmo, tmp_path):
    ecmo.save(tmp_path / "a.nc")
    loaded = page_of(bf.load_audit(tmp_path / "a.nc"), tmp_path)
    whole = page_of(ecmo, tmp_path)
    assert loaded.numbers == whole.numbers
    rounds = {"violations-alt", "pairs-alt", "windows-alt", "reliability-alt"}
    drawn = [{a["aria-labelledby"] for a in page.all("svg")} for page in (loaded, whole)]
    assert drawn[1] - drawn[0] == rounds
    assert "does not hold its log any more" in loaded.text


def test_scan_gives_the_page_of_the_whole(tmp_path):
    whole = bf.audit(bf.read_history(examples.path("ecmo")), seed=1)
    scanned = bf.audit(bf.scan_history(examples.path("ecmo")), seed=1)
    one, other = page_of(whole, tmp_path), page_of(scanned, tmp_path)
    assert one.table("arm", "n") == other.table("arm", "n")
    assert one.table("eps1", "beliefs") == other.table("eps1", "beliefs")
    assert len(other.all("svg")) == len(one.all("svg"))


def nulls(value, path=""):
    """Yield the dotted path of every null, list positions left out."""
    if value is None:
        yield path.lstrip(".")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from nulls(inner, path)


def never_chosen():
    return bf.History(["a"] * 9, [1, 0, 1] * 3, arms=["a", "b"],
                      selection_probability=[[0.7, 0.3]] * 9)  # fmt: skip


@pytest.mark.parametrize(
    "audit",
    [
        pytest.param(lambda: bf.audit(log(3, 60), seed=1), id="full"),
        pytest.param(lambda: bf.audit(log(3, 60, "chosen"), seed=1), id="chosen"),
        pytest.param(lambda: bf.audit(log(3, 60, "none"), seed=1), id="none"),
        pytest.param(lambda: bf.audit(log(3, 60), objective=False), id="no objective"),
        pytest.param(lambda: bf.audit(log(3, 60, "none"), objective=False), id="bare"),
        pytest.param(lambda: bf.audit(log(3, 60, "chosen"), objective=False), id="chosen, bare"),
        pytest.param(lambda: bf.audit(log(1, 20), seed=1), id="one arm"),
        pytest.param(lambda: bf.audit(never_chosen(), seed=1), id="never chosen"),
        pytest.param(
            lambda: bf.audit(log(2, 60), seed=np.random.default_rng(1)), id="generator"
        ),
        pytest.param(
            lambda: bf.audit(log(2, 60), truth=bf.rewards.Bernoulli([0.5, 0.4])), id="truth"
        ),
        pytest.param(
            lambda: bf.audit(
                bf.History(["a", "b", "a"] * 5, [1, np.nan, 0] * 5, missing="unobserved"), seed=1
            ),
            id="unobserved",
        ),
    ],
)  # fmt: skip
def test_every_null_has_its_reason_on_the_page(audit, tmp_path):
    result = audit()
    numbers = result.to_dict()
    claimed = tuple(key for one in unchecked(numbers) for key in one.keys)
    nothing_drawn = numbers["criterion"]["model"] in {None, "truth"}
    for path in set(nulls(numbers)):
        if path == "criterion.seed" and nothing_drawn:
            continue
        if path in ("criterion.prior_learned", "criterion.propensity_draws"):
            continue  # nothing was to be learned; the probabilities are exact
        if path == "subjective.worst.row" and numbers["subjective"]["verdict"] == "fair":
            continue  # no round is named, so none is missing its row
        part, _, key = path.rpartition(".")
        if key in {"first_violating_round", "last_violating_round"}:
            n = numbers[part]["n_violating_rounds"]
            if n == 0 or (isinstance(n, dict) and n["upper"] == 0 == n["mean"]):
                continue  # none violates: there is no first one
        assert any(path == key or path.startswith(key + ".") for key in claimed), path
    page = page_of(result, tmp_path)
    for one in unchecked(numbers):
        assert one.why in page.text
    for notice in numbers["notices"]:
        assert " ".join(notice.split()) in page.text
    # nothing that Python or Jinja would print for a missing value
    assert not re.search(r"\b(None|nan|NaN|Undefined)\b", page.text)
    assert page.numbers == numbers


def test_lower_bound_and_estimate_are_named_as_such(tmp_path):
    page = page_of(bf.audit(log(3, 60, "none"), seed=1), tmp_path)
    assert "With 95 % confidence at least" in page.text
    assert page.table("judged")[0][-1] == "lower bound only"
    assert "NOT AUDITABLE" in page.text
    # P* against the shares of the choices, and what is believed of the rewards
    assert len(page.all("svg")) == 2
    result = bf.audit(log(3, 60, "chosen"), seed=1)
    page = page_of(result, tmp_path)
    assert page.table("judged")[0][-1] == "estimated"
    size = result.to_dict()["calibration"]["effective_sample_size"]
    assert f"effective sample size {size:.1f} of 60 rounds" in page.text
    plays = [arm["n"] for arm in result.to_dict()["arms"]]
    shares = {row[0]: row[-1] for row in page.table("arm", "n")}  # first who is furthest from P*
    assert [shares[arm] for arm in result.data.arms] == [f"{n / 60:.4f}" for n in plays]


def test_infinite_values_are_shown_and_not_drawn(tmp_path):
    history = bf.History(["a", "b"] * 9, [1, 0] * 9, selection_probability=[[1, 0], [0, 1]] * 9)
    result = bf.audit(history, divergence="kl", seed=1)
    page = page_of(result, tmp_path)
    assert {row[1] for row in page.table("eps1", "beliefs")} == {"inf"}
    assert [a["aria-labelledby"] for a in page.all("svg")] == [
        "violations-alt", "pairs-alt", "regret-alt", "windows-alt", "reliability-alt",
        "selection-alt", "rewards-alt",
    ]  # fmt: skip
    assert "Kullback-Leibler" in page.text


def test_known_truth_groups_of_arms_and_utility(tmp_path):
    truth = bf.rewards.Bernoulli([0.6, 0.5, 0.3])
    run = bf.simulate(bf.policies.FairSDTS(eps2=0.2, delta=0.1), truth, n_rounds=300, seed=1)
    groups = dict(zip(run.arms, ["low", "low", "high"], strict=True))
    result = bf.audit(run, truth=truth, arm_groups=groups)
    page = page_of(result, tmp_path)
    numbers = result.to_dict()
    assert [row[:2] for row in page.table("group", "and group")] == [
        [g["group"], g["group_other"]] for g in numbers["arm_groups"]
    ]
    assert f"standard regret {numbers['utility']['standard_regret']:.1f} in total" in page.text
    exact = next(table[0] for table in page.tables if table[0][0] == "eps1" and len(table) > 3)
    assert exact == ["eps1", "beliefs", "true rewards"]  # no interval
    assert "truth=..." in page.text


def test_sensitivity_to_the_prior_is_shown(ecmo, tmp_path):
    from bayesfair.audit.truth.sensitivity import with_prior_sensitivity

    result = with_prior_sensitivity(ecmo)
    page = page_of(result, tmp_path)
    found = result.to_dict()["prior_sensitivity"]
    assert [row[2] for row in page.table("power", "verdict")] == [
        f"{row['probability_fair']:.4f}" for row in found["powers"]
    ]
    assert [row[0] for row in page.table("quantity")] == [
        q["quantity"] for q in found["quantities"]
    ]


def test_three_thousand_arms_say_which_are_shown(tmp_path):
    k, n = 3000, 500
    weight = np.random.default_rng(2).dirichlet(np.full(k, 0.3))
    arm = np.random.default_rng(3).choice(k, n, p=weight)
    arms = [f"arm {i}" for i in range(k)]
    history = bf.History([arms[i] for i in arm], np.zeros(n), arms=arms,
                         selection_probability=np.tile(weight, (n, 1)))  # fmt: skip
    result = bf.audit(history, objective=False)
    page = page_of(result, tmp_path)
    assert "100 of 3000 arms are shown, those whose mean selection probability lies furthest" in (
        page.text
    )
    assert "2900 arms not shown" in page.text
    gap = [abs(a["selection_mean"] - a["p_best_subjective"]) for a in result.to_dict()["arms"]]
    expected = np.argsort(-np.array(gap), kind="stable")[:100]
    assert [row[0] for row in page.table("arm", "n")] == [arms[i] for i in expected]
    assert len(page.numbers["arms"]) == k
    assert "all 3000 arms" in page.text


def test_groups_all_listed_and_the_worst_in_full(tmp_path):
    rng = np.random.default_rng(5)
    logs = {}
    for g in range(200):
        p = rng.dirichlet(np.full(2, [1, 2000][g % 2]), 20)
        arm = [rng.choice(2, p=row) for row in p]
        logs[f"region {g}"] = bf.History(
            ["ab"[i] for i in arm], rng.integers(0, 2, 20), arms=["a", "b"],
            selection_probability=p,
        )  # fmt: skip
    result = bf.audit(logs, seed=1, eps2=0.1, draws=200)
    page = page_of(result, tmp_path)
    numbers = result.to_dict()
    assert page.numbers == numbers
    rows = page.table("group", "verdict")
    assert [row[0] for row in rows] == list(logs)
    for row, audit in zip(rows, numbers["groups"].values(), strict=True):
        assert row[2:4] == [audit[name]["verdict"] for name in ("subjective", "objective")]
        assert row[5] == f"{audit['subjective']['smallest_eps2']:.4f}"
    runs = numbers["runs"]
    assert f"{runs['n_violating']} of {runs['n']} that could be audited are unfair" in page.text
    assert "The 12 worst groups in full" in page.text
    assert "The other 188 stand in the table above" in page.text
    shown = [a["id"] for tag, a, _ in page.elements if tag == "section" and "id" in a]
    assert len(shown) == 12
    in_full = re.findall(r"UNFAIR (region \d+) memory", page.text)
    needed = {g: a["subjective"]["smallest_eps2"] for g, a in numbers["groups"].items()
              if a["verdict"] == "unfair"}  # fmt: skip
    assert in_full == sorted(needed, key=lambda g: -needed[g])[:12]


def test_mixed_groups_keep_every_notice(tmp_path):
    logs = {"x": log(2, 40), "y": log(2, 40, "chosen"), "z": log(2, 40, "none")}
    result = bf.audit(logs, seed=1)
    page = page_of(result, tmp_path)
    numbers = result.to_dict()
    for audit in numbers["groups"].values():
        for notice in audit["notices"]:
            assert notice in page.text
    assert numbers["notices"][0] in page.text
    assert "Of 3 groups:" in page.text
    assert "The groups hold 120 rounds that are judged." in page.text
    regret = [numbers["groups"][g]["calibration"]["subjective"]["regret_per_round"] for g in "xy"]
    assert f"On average {min(regret):.4f} to {max(regret):.4f} of a round" in page.text
    assert "1 group without a value" in page.text  # the figure of regrets lacks z


@pytest.mark.parametrize(
    ("missing", "meaning"),
    [
        ("unobserved", "beliefs do not learn from them"),
        ("drop", "Rounds without a reward are left out."),
        (0.0, "This number stands where no reward was logged."),
    ],
)
def test_what_was_missing_is_counted_and_explained(tmp_path, missing, meaning):
    rows = ["a,1,0.5,0.5", "b,,0.5,0.5", "a,0,0.5,0.5", "b,1,0.5,0.5", "a,,0.5,0.5"]
    (tmp_path / "log.csv").write_text("\n".join(["arm,reward,p_a,p_b", *rows]))
    result = bf.audit(bf.read_history(tmp_path / "log.csv", missing=missing), seed=1, draws=100)
    page = page_of(result, tmp_path)
    assert meaning in {row[0]: row[2] for row in page.table("Word")}["missing rewards"]
    counted = {"unobserved": (5, 2, 0), "drop": (3, 0, 2), 0.0: (5, 0, 0)}[missing]
    rounds, unobserved, left_out = counted
    assert f"Rounds {rounds} Arms 2" in page.text
    assert f"Rewards not observed {unobserved} Rows left out {left_out}" in page.text


class Stub:
    """An audit with other numbers."""

    def __init__(self, numbers):
        self.numbers = numbers

    def to_dict(self):
        return self.numbers


def test_the_file_of_the_worst_row_is_named_where_there_are_several(ecmo, tmp_path):
    numbers = copy.deepcopy(ecmo.to_dict())
    numbers["subjective"]["worst"]["source"] = "part-2.csv"
    page = page_of(Stub(numbers), tmp_path)
    assert "The worst case is round 11 (row 13 of part-2.csv )" in page.text
    assert [a["aria-labelledby"] for a in page.all("svg")] == ["frontier-alt", "selection-alt"]


def test_audits_of_duels_and_fits_have_their_pages(tmp_path):
    duels = bf.Comparisons.from_duels(["a", "b"] * 40, ["b", "a"] * 40, ["left"] * 80,
                                      keep_rows=True)  # fmt: skip
    audit = bf.audit_comparisons(duels, selection_probability=[0.5, 0.5], seed=1)
    page = page_of(audit, tmp_path)
    assert page.numbers == json.loads(json.dumps(audit.to_dict()))
    rows = {row[0]: row[1] for row in page.table("item", "duels")}
    assert rows == {"a": "80", "b": "80"}
    tree = bf.fit(duels, seed=1, draws=400)
    with pytest.raises(OptionError) as refused:
        bf.write_report(tree, tmp_path / "b.html")
    assert (refused.value.kind, refused.value.column) == ("missing_option", "comparisons")
    source = tmp_path / "duels.csv"
    source.write_bytes(b"abc")
    bf.write_report(tree, tmp_path / "b.html", comparisons=duels, log=source)
    fit = Page.of(tmp_path / "b.html")
    shown = {row[0]: [row[3], row[10]] for row in fit.table("item", "rank")}
    first = {item["item"]: item for item in fit.numbers["items"]}
    assert {name: float(row[0]) for name, row in shown.items()} == pytest.approx(
        {name: item["p_rank1"] for name, item in first.items()}, abs=1e-4
    )
    assert {name: row[1] for name, row in shown.items()} == {"a": "40", "b": "40"}
    # SHA-256 of "abc": FIPS 180-2, appendix B.1
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in fit.text
    with pytest.raises(OptionError) as refused:
        bf.write_report([1], tmp_path / "c.html")
    assert refused.value.kind == "wrong_kind"


def test_python_call_on_the_page_repeats_the_numbers(ecmo, tmp_path, monkeypatch):
    page_of(ecmo, tmp_path)
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    code = re.search(r"<pre[^>]*><code>(.*?)</code>", source, flags=re.S).group(1)
    code = code.replace("&#39;", "'")
    (tmp_path / "ecmo.csv").write_bytes(examples.path("ecmo").read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "page", "exec"), {})
    assert json.dumps(Page.of(tmp_path / "audit.html").numbers) == json.dumps(ecmo.to_dict())


def test_a_log_that_contradicts_itself_is_said_first_and_every_test_is_listed(tmp_path):
    odd = log(2, 400, seed=3)
    p = np.full((400, 2), 0.5)
    audit = bf.audit(
        bf.History(np.repeat([0, 1], [300, 100]).astype(np.int32), odd.reward,
                   selection_probability=p, arms=("a", "b")), seed=1)  # fmt: skip
    page = page_of(audit, tmp_path)
    assert "The log contradicts itself (choices, sticky)" in page.text[:600]
    rows = {row[0]: row[1:] for row in page.table("check", "outcome")}
    assert rows["arms chosen as often as logged"][0] == "FAILED"
    assert rows["no rows stand there twice"][0] == "passed"
    made = [c for c in audit.checks.values() if c.passed is not None]
    assert len(rows) == len(made)
    assert "whether a column of the log holds it or not" in page.text
