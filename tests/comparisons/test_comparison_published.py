"""Published estimates: each number below is printed in the source named beside it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from comparison_tools import with_ghost

from bayesfair import examples
from bayesfair.comparisons import Comparisons
from bayesfair.errors import BayesfairWarning, DataError, OptionError
from bayesfair.inference.comparisons import fit_comparisons
from bayesfair.readers.duels.comparisons import read_comparisons

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def shared(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not there")
    return path


def mle(data, **options):
    """Maximum-likelihood mode group as a pandas-free mapping."""
    return fit_comparisons(data, prior_sd=np.inf, seed=0, **options)["mode"].to_dataset()


def close(mode, name, expected, atol):
    found = {item: float(mode[name].sel(item=item)) for item in expected}
    assert found == pytest.approx(expected, abs=atol)


def baseball(**options):
    return read_comparisons(
        examples.path("baseball"),
        left="home",
        right="away",
        wins=("home_wins", "away_wins"),
        first="left",
        **options,
    )


# Agresti (2002), Categorical Data Analysis, section 10.6; digits by R's BradleyTerry2
NEUTRAL = {
    "Boston": (1.107698, 0.333878),
    "Cleveland": (0.683853, 0.331876),
    "Detroit": (1.436408, 0.339568),
    "Milwaukee": (1.581356, 0.343256),
    "New York": (1.247618, 0.335861),
    "Toronto": (1.294485, 0.336669),
}
AT_HOME = {
    "Boston": (1.143803, 0.337842),
    "Cleveland": (0.704694, 0.335001),
    "Detroit": (1.475357, 0.344552),
    "Milwaukee": (1.619555, 0.347365),
    "New York": (1.281340, 0.340403),
    "Toronto": (1.327110, 0.340322),
}


@pytest.mark.parametrize(("order_effect", "printed"), [(False, NEUTRAL), (True, AT_HOME)])
def test_baseball(order_effect, printed):
    mode = mle(baseball(), order_effect=order_effect, reference="Baltimore")
    close(mode, "log_worth_relative", {t: v for t, (v, _) in printed.items()}, 1e-6)
    # R stops its iterations earlier: standard errors agree to 2e-6
    close(mode, "standard_error_relative", {t: e for t, (_, e) in printed.items()}, 2e-6)
    if order_effect:
        assert float(mode["order_effect"]) == pytest.approx(0.302, abs=5e-4)
        assert float(mode["order_effect_standard_error"]) == pytest.approx(0.131, abs=5e-4)
    else:
        assert float(mode["log_likelihood"]) == pytest.approx(-172.2482, abs=5e-5)


def test_baseball_deviances():
    # residual deviance = 2 (saturated - model); R prints 44.053 and 38.643
    data = baseball()
    cells = data.duel_counts()
    counts = np.stack([cells.wins_left, cells.wins_right])
    shares = counts / counts.sum(axis=0)
    saturated = float((counts * np.log(np.where(counts > 0, shares, 1.0))).sum())
    for order_effect, printed in ((False, 44.053), (True, 38.643)):
        value = float(mle(data, order_effect=order_effect)["log_likelihood"])
        assert 2 * (saturated - value) == pytest.approx(printed, abs=5e-4)


def test_worth_is_the_probability_of_being_best():
    # case 76
    mode = mle(baseball(), order_effect=False)
    printed = {
        "Milwaukee": 0.2189, "Detroit": 0.1894, "Toronto": 0.1643, "New York": 0.1568,
        "Boston": 0.1363, "Cleveland": 0.0892, "Baltimore": 0.0450,
    }  # fmt: skip
    close(mode, "worth", printed, 5e-5)


JOURNALS = ("Biometrika", "Comm Statist", "JASA", "JRSS-B")
# Stigler (1994), Agresti (2002): [cited, citing]; the diagonal is self-citation
CITATIONS = np.array(
    [[714, 730, 498, 221], [33, 425, 68, 17], [320, 813, 1072, 142], [284, 276, 325, 188]], float
)


def citations(matrix=CITATIONS):
    with pytest.warns(BayesfairWarning, match="2399 comparisons of an item with itself"):
        return Comparisons.from_win_matrix(matrix, JOURNALS)


def test_citations():
    mode = mle(citations(), reference="Biometrika")
    printed = {"Comm Statist": -2.949072, "JASA": -0.479570, "JRSS-B": 0.268954}
    close(mode, "log_worth_relative", printed, 1e-6)
    errors = {"Comm Statist": 0.102545, "JASA": 0.060589, "JRSS-B": 0.070830}
    close(mode, "standard_error_relative", errors, 1e-6)
    centred = dict(zip(JOURNALS, (0.0433, 0.0726, 0.0416, 0.0530), strict=True))
    close(mode, "standard_error", centred, 5e-5)
    assert float(mode["log_likelihood"]) == pytest.approx(-1622.8898, abs=5e-5)


def test_citations_anchoring_changes_no_gap():
    # case 89
    data = citations()
    one, other = (mle(data, reference=name)["log_worth_relative"] for name in ("JASA", "JRSS-B"))
    np.testing.assert_allclose(np.diff(one), np.diff(other), atol=1e-12)
    assert float(one.sel(item="Comm Statist")) == pytest.approx(-2.469503, abs=1e-6)


def test_citations_transposed_flips_all_signs():
    # case 7
    mode, flipped = mle(citations()), mle(citations(CITATIONS.T))
    np.testing.assert_allclose(mode["log_worth"], -flipped["log_worth"], atol=1e-9)


def test_citations_as_read():
    # a citation is a win of the cited: (winner, loser, weight)
    with pytest.warns(BayesfairWarning, match="with itself"):
        data = read_comparisons(
            shared("citations.csv"), winner="cited", loser="citing", weight="count"
        )
    np.testing.assert_allclose(data.win_matrix(), CITATIONS * (1 - np.eye(4)))


# Davidson (1970), JASA 65: brands i, j; i preferred, j preferred, no preference
PUDDING = """
1 2 19 22 16|1 3 16 19 12|2 3 19 19 10|1 4 18 23 13|2 4 23 19 9|3 4 19 20 15|1 5 13 19 18|
2 5 16 20 12|3 5 16 15 17|4 5 17 14 16|1 6 18 21 12|2 6 22 20 12|3 6 13 18 10|4 6 14 19 18|
5 6 11 21 12"""


def pudding():
    rows = np.array([row.split() for row in PUDDING.replace("\n", "").split("|")], dtype=int)
    return Comparisons.from_counts(*rows.T)


def test_pudding():
    data = pudding()
    assert data.n_comparisons == 745
    mode = mle(data, reference="1")
    worth = [0.1388005, 0.1729985, 0.1617420, 0.1653930, 0.1586805, 0.2023855]
    # printed after 7 rounds of Davidson's algorithm, which is not quite the maximum
    np.testing.assert_allclose(mode["worth"], worth, atol=3e-5)
    np.testing.assert_allclose(
        mode["log_worth_relative"][1:], [0.22024, 0.15298, 0.17515, 0.13387, 0.37714], atol=1e-5
    )
    np.testing.assert_allclose(
        mode["standard_error_relative"][1:], [0.1872, 0.1935, 0.1882, 0.1927, 0.1924], atol=5e-5
    )
    assert float(mode["tie"]) == pytest.approx(0.746823, abs=1e-6)
    assert float(mode["log_tie"]) == pytest.approx(-0.2919, abs=5e-5)
    assert float(mode["log_tie_standard_error"]) == pytest.approx(0.0825, abs=5e-5)
    assert float(mode["log_likelihood"]) == pytest.approx(-809.7095, abs=5e-5)


def test_pudding_file_says_the_same():
    data = read_comparisons(
        shared("pudding.csv"), left="i", right="j", wins=("w_ij", "w_ji", "t_ij")
    )
    np.testing.assert_array_equal(data.win_matrix(), pudding().win_matrix())
    np.testing.assert_array_equal(data.tie_matrix(), pudding().tie_matrix())


LAST = ["Andy Hillenburg", "Gary Bradberry", "Jason Hedlesky", "Randy Renfrow"]


def nascar():
    return read_comparisons(shared("nascar_long.csv"), partial="subset")


def test_nascar_refuses_and_names_the_four():
    data = nascar()
    links = data.connectivity()
    assert len(links.strong_components) == 5 and len(links.weak_components) == 1
    assert len(links.strong_components[0]) == 83
    with pytest.raises(DataError, match="only ever lost") as error:
        mle(data)
    assert all(name in str(error.value) for name in LAST)


def test_nascar_83_drivers():
    # Hunter (2004), Annals of Statistics 32, Table 2
    mode = mle(nascar().without(*LAST), reference="Austin Cameron")
    log_worth = {
        "PJ Jones": 4.1477, "Scott Pruett": 3.6162, "Mike Bliss": 2.2310, "Mark Martin": 2.0763,
        "Rusty Wallace": 2.0572, "Jimmie Johnson": 1.9398, "Tony Stewart": 1.8322,
        "Jeff Gordon": 1.7408, "Sterling Marlin": 1.7348, "Kurt Busch": 1.6483,
        "Carl Long": -0.3196, "Christian Fittipaldi": -0.4416, "Stuart Kirby": -0.6774,
        "Hideo Fukuyama": -0.7615, "Dave Marcis": 0.03, "Dick Trickle": -0.31, "Joe Varde": -0.15,
    }  # fmt: skip
    close(mode, "log_worth_relative", {d: v for d, v in log_worth.items() if abs(v) > 0.315}, 5e-5)
    close(mode, "log_worth_relative", log_worth, 5e-3)
    worth = {"PJ Jones": 0.1864, "Scott Pruett": 0.1096, "Mark Martin": 0.0235, "Carl Long": 0.0021}
    close(mode, "worth", worth, 5e-5)
    assert float(mode["log_likelihood"]) == pytest.approx(-4191.0973, abs=5e-5)


def test_nascar_all_87_with_a_ghost():
    data = nascar()
    rankings = [[place[0] for place in order] for order in data.orderings()]
    mode = mle(with_ghost(rankings, data.items), reference="Austin Cameron")
    printed = {
        "PJ Jones": 3.20, "Scott Pruett": 2.77, "Mark Martin": 1.91, "Dave Marcis": 0.02,
        "Dick Trickle": -0.38, "Joe Varde": -0.12,
    }  # fmt: skip
    close(mode, "log_worth_relative", printed, 5e-3)
    exact = dict(zip(LAST, (-2.1711, -1.7448, -1.5908, -1.7686), strict=True))
    close(mode, "log_worth_relative", exact, 5e-5)
    close(mode, "standard_error_relative", {"Andy Hillenburg": 1.694}, 5e-4)


def test_netflix():
    data = read_comparisons(shared("netflix.soc"))
    assert data.n_comparisons == 588 and "Mission: Impossible II" in data.items
    mode = mle(data)
    printed = {
        "Beverly Hills Cop": (0.6899, 0.0472, 0.4512),
        "Mean Girls": (0.0187, 0.0456, 0.2306),
        "The Mummy Returns": (-0.2956, 0.0468, 0.1684),
        "Mission: Impossible II": (-0.4130, 0.0461, 0.1498),
    }
    for column, name in enumerate(("log_worth", "standard_error", "worth")):
        close(mode, name, {item: v[column] for item, v in printed.items()}, 5e-5)
    assert float(mode["log_likelihood"]) == pytest.approx(-1746.7579, abs=5e-5)


def test_netflix_broken_into_pairs_looks_too_sure():
    # case 13
    data = read_comparisons(shared("netflix.soc"))
    ranked = mle(data, reference="Mean Girls")
    close(ranked, "log_worth_relative", {"Beverly Hills Cop": 0.6713}, 5e-5)
    close(ranked, "standard_error_relative", {"Beverly Hills Cop": 0.0747}, 5e-5)
    with pytest.warns(BayesfairWarning, match="too small"):
        pairs = data.to_duels()
    paired = mle(pairs, reference="Mean Girls")
    printed = {
        "Beverly Hills Cop": (0.6521, 0.0623),
        "The Mummy Returns": (-0.2860, 0.0601),
        "Mission: Impossible II": (-0.5278, 0.0610),
    }
    close(paired, "log_worth_relative", {i: v for i, (v, _) in printed.items()}, 5e-5)
    close(paired, "standard_error_relative", {i: e for i, (_, e) in printed.items()}, 5e-5)


def test_shirt():
    mode = mle(read_comparisons(shared("shirt.soc"), labels="ids"))
    printed = {
        "10": 1.2842, "6": 1.1481, "1": 0.7459, "11": 0.4501, "8": 0.2821, "3": 0.2280,
        "2": -0.4912, "5": -0.5847, "7": -0.6050, "4": -1.2107, "9": -1.2469,
    }  # fmt: skip
    close(mode, "log_worth", printed, 5e-5)
    assert float(mode["log_likelihood"]) == pytest.approx(-462.0567, abs=5e-5)


def test_sushi():
    data = read_comparisons(shared("sushi.soc"), labels="ids")
    assert data.n_comparisons == 5000 and len(data.count) == 4926
    mode = mle(data)
    printed = {
        "7": 1.0299, "2": 0.4859, "10": 0.2377, "5": 0.0714, "1": 0.0446, "8": -0.0182,
        "3": -0.1260, "4": -0.2451, "6": -0.5408, "9": -0.9393,
    }  # fmt: skip
    close(mode, "log_worth", printed, 5e-5)
    assert float(mode["log_likelihood"]) == pytest.approx(-71211.5992, abs=5e-5)


def test_cities_must_say_what_unranked_means():
    # case 34
    path = shared("cities.soi")
    with pytest.raises(OptionError, match=r'partial="subset".*partial="top"'):
        read_comparisons(path)
    subset = mle(read_comparisons(path, partial="subset"))
    printed = {"Zurich": 2.631, "Lausanne": 1.830, "New York": 1.781, "London": 1.739}
    close(subset, "log_worth", printed | {"Lagos": -3.089}, 5e-4)
    assert float(subset["log_likelihood"]) == pytest.approx(-1886.009, abs=5e-4)
    top = mle(read_comparisons(path, partial="top"))
    printed = {"London": 0.128, "Zurich": 0.109, "New York": 0.107, "Melbourne": -0.122}
    close(top, "log_worth", printed, 5e-4)
    assert float(top["log_likelihood"]) == pytest.approx(-8250.698, abs=5e-4)
    correlation = np.corrcoef(subset["log_worth"], top["log_worth"])[0, 1]
    assert correlation == pytest.approx(0.59, abs=5e-3)


def test_springall():
    data = read_comparisons(
        shared("springall.csv"), left="row", right="col", wins=("win", "loss", "tie")
    )
    assert (data.n_comparisons, data.n_ties) == (885, 198)
    mode = mle(data)
    printed = {
        "3": 2.1774, "6": 1.7295, "2": 1.1599, "5": 0.7814, "9": -0.5059, "4": -0.7158,
        "1": -1.1134, "8": -1.1183, "7": -2.3948,
    }  # fmt: skip
    close(mode, "log_worth", printed, 5e-5)
    assert float(mode["tie"]) == pytest.approx(0.8655, abs=5e-5)
    assert float(mode["log_likelihood"]) == pytest.approx(-732.0673, abs=5e-5)
    close(mle(data, ties="half"), "log_worth", {"3": 1.4694, "7": -1.6166}, 5e-5)


def test_sound_fields_keep_leading_zeros():
    data = read_comparisons(
        shared("sound_fields.csv"), left="field1", right="field2", wins=("win1", "win2", "tie")
    )
    assert (data.n_comparisons, data.n_ties) == (560, 127)
    mode = mle(data)
    printed = {
        "110": 0.8607, "111": 0.6868, "101": 0.4428, "100": 0.2770, "010": 0.2770,
        "011": 0.0575, "000": -1.1877, "001": -1.4142,
    }  # fmt: skip
    close(mode, "log_worth", printed, 5e-5)
    assert float(mode["tie"]) == pytest.approx(0.6816, abs=5e-5)


def test_ice_hockey_half_ties():
    outcomes = {"1": "left", "0": "right", "0.5": "tie"}
    data = read_comparisons(
        shared("icehockey.csv"), left="visitor", right="opponent", winner="result",
        outcomes=outcomes,
    )  # fmt: skip
    assert (data.n_items, data.n_comparisons) == (58, 1083)
    mode = mle(data, ties="half")
    printed = {
        "Denver": 1.61824, "Miami": 1.51172, "Wisconsin": 1.49761, "North Dakota": 1.39471,
        "Boston College": 1.16805, "Bentley": -2.03453, "Connecticut": -2.70024,
        "American Int'l": -2.93161,
    }  # fmt: skip
    # R fixes its own team at 0; only gaps are comparable
    shift = float(mode["log_worth"].sel(item="Denver")) - printed["Denver"]
    close(mode, "log_worth", {team: v + shift for team, v in printed.items()}, 2e-5)


def test_food_and_llmfao_against_evalica():
    mode = mle(read_comparisons(shared("food.csv")), ties="half")
    food = {
        "Tacos": 0.434290, "Sushi": 0.190600, "Burger": 0.147977, "Pasta": 0.128153,
        "Pizza": 0.098980,
    }  # fmt: skip
    close(mode, "worth", food, 5e-7)
    data = read_comparisons(shared("llmfao.csv"))
    assert (data.n_comparisons, data.n_ties, data.n_items) == (8931, 3471, 59)
    llmfao = {
        "GPT 4": 0.041218, "Platypus-2 Instruct (70B)": 0.029233, "command": 0.028852,
        "ReMM SLERP L2 13B": 0.027150, "LLaMA-2-Chat (70B)": 0.026384,
        "Vicuna-FastChat-T5 (3B)": 0.006304, "Dolly v2 (3B)": 0.006294,
    }  # fmt: skip
    close(mle(data, ties="half"), "worth", llmfao, 5e-7)


def test_flat_lizards_are_refused():
    # case 17
    data = read_comparisons(shared("flatlizards_contests.csv"))
    links = data.connectivity()
    assert [len(part) for part in links.weak_components] == [70, 3, 2, 2]
    assert (len(links.strong_components), len(links.never_lose), len(links.never_win)) == (
        77, 22, 36,
    )  # fmt: skip
    with pytest.raises(DataError, match="no maximum-likelihood estimate exists"):
        mle(data)
    tree = fit_comparisons(data, method="laplace", seed=0)
    assert "4 islands" in tree.attrs["notices"] and "only the prior" in tree.attrs["notices"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(tree["posterior"]["log_worth"]).all()


def test_old_and_new_preflib_layout(tmp_path):
    # case 55: the same ballots in both
    new = read_comparisons(shared("netflix.soc"))
    lines = [str(new.n_items)]
    lines += [f"{i + 1},{name}" for i, name in enumerate(new.items)]
    lines.append(f"{new.n_comparisons:g},{new.n_comparisons:g},{len(new.count)}")
    for order, count in zip(new.orderings(), new.count, strict=True):
        ids = [str(new.items.index(place[0]) + 1) for place in order]
        lines.append(f"{count:g},{','.join(ids)}")
    path = tmp_path / "old.soc"
    path.write_text("\n".join(lines) + "\n")
    old = read_comparisons(path)
    assert old.items == new.items and old.orderings() == new.orderings()
    np.testing.assert_array_equal(old.count, new.count)
