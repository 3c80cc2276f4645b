"""``bayesfair fit`` as a user runs it: tables, JSON, plots, exit status."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import command_line
import pytest

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")

KEYS = ["bayesfair", "model", "method", "prior", "ties", "n_ties_left_out", "n_comparisons",
        "log_likelihood", "interval", "tier_probability", "power", "parameters", "items", "graph",
        "diagnostics", "notices", "findings"]  # fmt: skip


def run(capsys, *args):
    """Run ``bayesfair fit`` in this process; return exit status, stdout, stderr."""
    return command_line.run(capsys, "fit", *args)


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def png_size(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def test_example_prints_worths_ranks_and_the_prior(capsys):
    status, out, err = run(capsys, "--example", "baseball")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "bradley_terry fit of baseball.csv"
    assert "273 duels of 7 items" in out
    assert "prior: log_worth ~ Normal(0, 1) each, centred; order_effect ~ Normal(0, 1)" in out
    assert "Rank 1 = best" in out
    order = [line.split()[0] for line in lines[7:14]]
    assert order[0] == "Milwaukee"
    assert order[-1] == "Baltimore"
    # Agresti: .302 (.131); the prior shrinks little
    effect = next(line for line in lines if line.startswith("order effect"))
    assert float(effect.split(":")[1].split()[0]) == pytest.approx(0.30, abs=0.02)


def test_json_has_the_fixed_keys(capsys, tmp_path):
    path = write(tmp_path / "d.csv", "left,right,winner", *["a,b,left"] * 7, *["a,b,right"] * 3,
                 "b,c,tie", "c,d,left")  # fmt: skip
    status, out, _ = run(capsys, path, "--json", "-", "--items", "a,b,c,d,e")
    assert status == 0
    found = json.loads(out)
    assert list(found) == KEYS
    assert found["model"] == "davidson"
    assert found["ties"] == "model"
    assert found["method"] == "laplace"
    assert found["n_comparisons"] == 12
    assert list(found["graph"]) == ["weak_components", "strong_components", "never_lose",
                                    "never_win"]  # fmt: skip
    assert found["graph"]["never_win"] == ["d"]
    assert found["graph"]["weak_components"] == [["a", "b", "c", "d"]]
    assert found["graph"]["strong_components"] == [["a", "b", "c"], ["d"]]
    assert list(found["diagnostics"]) == ["certified", "khat", "efficiency", "ess", "rhat_max",
                                          "ess_min", "divergences"]  # fmt: skip
    assert found["diagnostics"]["khat"] < 0.7
    assert found["diagnostics"]["rhat_max"] is None
    for item in found["items"]:
        assert list(item) == ["item", "n", "n_wins", "log_worth", "worth", "p_rank1", "rank",
                              "tier", "letters", "island"]  # fmt: skip
        assert list(item["log_worth"]) == ["mean", "sd", "lower", "upper"]
        assert list(item["worth"]) == ["mean", "lower", "upper"]
        assert list(item["rank"]) == ["mean", "lower", "upper", "shared"]
    last = found["items"][-1]
    assert last["item"] == "e"
    assert last["n"] == 0
    assert last["p_rank1"] is None
    assert set(last["rank"].values()) == {None} and last["tier"] is last["letters"] is None
    assert any("No data: 'e'" in text for text in found["notices"])
    assert sum(item["p_rank1"] for item in found["items"][:-1]) == pytest.approx(1)
    assert sum(item["worth"]["mean"] for item in found["items"]) == pytest.approx(1)


def test_report_says_no_data_and_islands(capsys, tmp_path):
    path = write(tmp_path / "d.csv", "left,right,winner", "a,b,left", "b,a,left", "x,y,left")
    status, out, _ = run(capsys, path, "--items", "a,b,x,y,z")
    assert status == 0
    row = next(line for line in out.splitlines() if line.split()[:1] == ["z"])
    assert "no data" in row
    assert "island" in out
    assert "2 islands without a comparison between them" in out
    assert "Never lost: 'x'" in out


def test_json_file_and_table_together(capsys, tmp_path):
    target = tmp_path / "fit.json"
    status, out, _ = run(capsys, "--example", "baseball", "--json", target)
    assert status == 0
    assert "Milwaukee" in out
    assert json.loads(target.read_text(encoding="utf-8"))["items"][0]["item"] == "Milwaukee"


def test_same_seed_same_numbers(capsys):
    first = run(capsys, "--example", "baseball", "--json", "-", "--seed", "3")
    again = run(capsys, "--example", "baseball", "--json", "-", "--seed", "3")
    other = run(capsys, "--example", "baseball", "--json", "-", "--seed", "4")
    assert first == again != other


def test_case_4_wins_follow_the_item_not_the_side(capsys, tmp_path):
    rows = ["left,right,winner", "m1,base,left", "base,m1,right"]
    sides = run(capsys, write(tmp_path / "a.csv", *rows), "--json", "-", "--prior-sd", "1")[1]
    rows = ["left,right,winner", "m1,base,m1", "base,m1,m1"]
    names = run(capsys, write(tmp_path / "b.csv", *rows), "--json", "-")[1]
    for out in (sides, names):
        found = json.loads(out)
        assert [item["item"] for item in found["items"]] == ["m1", "base"]
        assert found["graph"]["never_lose"] == ["m1"]
    assert json.loads(sides)["items"] == json.loads(names)["items"]


def test_maximum_likelihood_says_what_it_lacks(capsys):
    status, out, _ = run(capsys, "--example", "baseball", "--prior-sd", "inf", "--json", "-")
    assert status == 0
    found = json.loads(out)
    assert found["method"] == "mle"
    assert found["prior"] == "none (maximum likelihood)"
    assert {item["p_rank1"] for item in found["items"]} == {None}
    assert any("no posterior" in text for text in found["notices"])
    status, out, _ = run(capsys, "--example", "baseball", "--prior-sd", "inf")
    assert "P(rank 1)" not in out
    assert "order effect (log-odds): 0.302 (standard error 0.131)" in out


def test_anchor_moves_log_worths_only(capsys):
    plain = json.loads(run(capsys, "--example", "baseball", "--json", "-")[1])
    moved = json.loads(run(capsys, "--example", "baseball", "--anchor", "Boston", "--json", "-")[1])
    shift = {p["item"]: m["log_worth"]["mean"] - p["log_worth"]["mean"]
             for p, m in zip(plain["items"], moved["items"], strict=True)}  # fmt: skip
    assert max(shift.values()) == pytest.approx(min(shift.values()))
    for p, m in zip(plain["items"], moved["items"], strict=True):
        assert p["worth"] == m["worth"]
        assert p["log_worth"]["sd"] == m["log_worth"]["sd"]
    assert any("relative to 'Boston'" in text for text in moved["notices"])


def test_nuts_and_laplace_agree(capsys, tmp_path):
    path = write(tmp_path / "d.csv", "i,j,wi,wj", "a,b,9,6", "a,c,14,2", "b,c,8,5")
    columns = (path, "--left", "i", "--right", "j", "--wins", "wi,wj", "--json", "-")
    laplace = json.loads(run(capsys, *columns)[1])
    nuts = json.loads(run(capsys, *columns, "--method", "nuts")[1])
    assert nuts["method"] == "nuts"
    assert nuts["diagnostics"]["rhat_max"] <= 1.01
    assert nuts["diagnostics"]["divergences"] == 0
    assert nuts["diagnostics"]["khat"] is None
    for a, b in zip(laplace["items"], nuts["items"], strict=True):
        assert a["item"] == b["item"]
        # sd .35; at least 400 effective draws: five standard errors
        assert a["log_worth"]["mean"] == pytest.approx(b["log_worth"]["mean"], abs=5 * 0.35 / 20)
        assert a["p_rank1"] == pytest.approx(b["p_rank1"], abs=0.1)


def test_check_says_what_the_top_hangs_on(capsys, tmp_path, monkeypatch):
    told = set()
    monkeypatch.setattr("bayesfair.cli.fit.show_progress", lambda: lambda *n: told.add(n[1:]))
    status, out, _ = run(capsys, "--example", "baseball", "--check", "--json", "-")
    assert status == 0
    assert {(500, "replicates"), (80, "comparisons")} <= told
    fit, flip = json.loads(out)["notices"][-2:]
    assert "is not refuted" in fit
    assert "without 3 of 273 comparisons (1.1 %) 'Detroit' would have the highest" in flip
    assert "3 x Milwaukee > Detroit" in flip
    cycle = write(tmp_path / "c.csv", "i,j,wi,wj", "a,b,90,10", "b,c,90,10", "c,a,80,20")
    status, out, _ = run(capsys, cycle, "--left", "i", "--right", "j", "--wins", "wi,wj", "--check")
    assert status == 0
    assert "fits badly" in out
    assert "1 triples in a circle" in out


def test_outcome_words_are_mapped(capsys, tmp_path):
    path = write(tmp_path / "d.csv", "x,y,result", "a,b,1", "a,b,0", "a,b,.5", "b,a,0")
    columns = (path, "--left", "x", "--right", "y", "--winner", "result")
    status, out, err = run(capsys, *columns)
    assert (status, out) == (2, "")
    assert "'1' (1), '0' (2), '.5' (1)" in err or "unknown outcome" in err
    status, out, _ = run(capsys, *columns, "--outcomes", "1=left,0=right,.5=tie", "--json", "-")
    assert status == 0
    assert json.loads(out)["n_comparisons"] == 4


def test_rankings_in_wide_and_long_form(capsys, tmp_path):
    wide = write(tmp_path / "w.csv", "first,second,third", "a,b,c", "b,a,c", "a,c,b")
    long = write(tmp_path / "l.csv", "ranking,item,rank", *[
        f"{r},{item},{place + 1}"
        for r, order in enumerate(["abc", "bac", "acb"]) for place, item in enumerate(order)
    ])  # fmt: skip
    one = run(capsys, wide, "--orderings", "first,second,third", "--json", "-")
    two = run(capsys, long, "--json", "-")
    assert one[0] == two[0] == 0
    assert json.loads(one[1])["items"] == json.loads(two[1])["items"]
    assert json.loads(one[1])["model"] == "plackett_luce"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "give a FILE"),
        (("x.csv", "--example", "baseball"), "give a FILE"),
        (("--example", "chess"), "baseball"),
        (("nowhere.csv",), "no such file"),
        (("--example", "baseball", "--model", "elo"), "plackett_luce"),
        (("--example", "baseball", "--ties", "ignore"), "half"),
        (("--example", "baseball", "--anchor", "Bostn"), "Did you mean 'Boston'"),
        (("--example", "baseball", "--plot", "ranks.jpg"), ".png"),
        (("--example", "baseball", "--prior-sd", "-1"), "--prior-sd -1"),
        (("--example", "baseball", "--draws", "0"), "draws"),
        (("--example", "baseball", "--plot", "no/where/x.png"), "Make it first"),
        (("--example", "baseball", "--json", "no/where/x.json"), "Make it first"),
        (("d.csv", "--wins", "a"), "two columns"),
        (("d.csv", "--outcomes", "1"), "does not."),
    ],
)
def test_bad_usage_ends_with_status_2_and_one_message(capsys, args, words):
    status, out, err = run(capsys, *args)
    assert (status, out) == (2, "")
    assert words in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


@needs_shared
def test_partial_rankings_must_be_told(capsys):
    status, _, err = run(capsys, SHARED / "cities.soi")
    assert status == 2
    assert "--partial subset" in err
    assert "--partial top" in err
    published = {
        "subset": {"Zurich": 2.631, "Lausanne": 1.830, "New York": 1.781},
        "top": {"London": 0.128, "Zurich": 0.109, "New York": 0.107},
    }
    for reading, best in published.items():
        status, out, _ = run(capsys, SHARED / "cities.soi", "--partial", reading, "--prior-sd",
                             "inf", "--json", "-")  # fmt: skip
        found = json.loads(out)["items"]
        assert [item["item"] for item in found[:3]] == list(best)
        for item in found[:3]:
            assert item["log_worth"]["mean"] == pytest.approx(best[item["item"]], abs=6e-4)


@needs_shared
def test_nascar_names_the_four_drivers_and_fits_with_a_prior(capsys, tmp_path):
    columns = (SHARED / "nascar_long.csv", "--partial", "subset")
    status, _, err = run(capsys, *columns, "--prior-sd", "inf")
    assert status == 2
    for name in ("Andy Hillenburg", "Gary Bradberry", "Jason Hedlesky", "Randy Renfrow"):
        assert name in err
    target = tmp_path / "ranks.png"
    status, out, _ = run(capsys, *columns, "--plot", target)
    assert status == 0
    assert out.count("\n") > 87
    assert png_size(target)[1] > 87 * 20


@pytest.mark.filterwarnings("always::bayesfair.BayesfairWarning")
def test_letters_that_no_font_has_are_told_once(capsys, tmp_path):
    duels, target = tmp_path / "duels.csv", tmp_path / "ranks.png"
    # Old Persian: three letters that no common font draws
    duels.write_text("winner,loser\n\U000103a0\U000103a1,b\nb,\U000103a2\n\U000103a2,b\n")
    done = run(capsys, duels, "--plot", target)
    assert done.status == 0 and png_size(target)[0] > 100
    (told,) = [line for line in done.err.splitlines() if "font" in line or "Glyph" in line]
    assert " 3 of the letters" in told and "ranks.png" in told


@needs_shared
def test_case_86_height_grows_with_the_items(capsys, tmp_path):
    sizes = []
    for name in ("food.csv", "llmfao.csv"):
        target = tmp_path / f"{name}.png"
        assert run(capsys, SHARED / name, "--plot", target)[0] == 0
        sizes.append(png_size(target))
    assert sizes[0][0] == sizes[1][0]
    assert sizes[1][1] - sizes[0][1] == pytest.approx(54 * 24, abs=60)


@needs_shared
@pytest.mark.parametrize(
    ("args", "shares"),
    [
        (("food.csv",), {"Tacos": 0.434290, "Sushi": 0.190600, "Burger": 0.147977,
                         "Pasta": 0.128153, "Pizza": 0.098980}),
        (("llmfao.csv",), {"GPT 4": 0.041218, "Platypus-2 Instruct (70B)": 0.029233,
                           "command": 0.028852, "ReMM SLERP L2 13B": 0.027150}),
    ],
)  # fmt: skip
def test_half_tie_bradley_terry_of_published_golden_values(capsys, args, shares):
    status, out, _ = run(
        capsys, SHARED / args[0], "--model", "bradley_terry", "--ties", "half", "--prior-sd", "inf",
        "--json", "-",
    )  # fmt: skip
    found = json.loads(out)
    assert (status, found["ties"]) == (0, "half")
    items = {item["item"]: item["worth"]["mean"] for item in found["items"]}
    assert list(items)[: len(shares)] == list(shares)
    for name, share in shares.items():
        assert items[name] == pytest.approx(share, abs=1e-6)


def test_help_and_import_stay_light():
    done = subprocess.run(
        [sys.executable, "-c", "import bayesfair.cli.fit, sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "scipy", "xarray", "pymc", "arviz", "matplotlib", "pandas"}


def test_fit_saves_a_tree_that_opens_again(capsys, tmp_path):
    import xarray as xr

    import bayesfair as bf

    target = tmp_path / "fit.nc"
    assert run(capsys, "--example", "baseball", "--save", target)[0] == 0
    tree = xr.open_datatree(target, engine="h5netcdf")
    assert str(bf.rank_table(tree)["item"].values[0]) == "Milwaukee"
    tree.close()


def test_a_fit_without_nuts_never_loads_pymc_or_matplotlib():
    code = (
        "import sys; sys.argv = ['bayesfair', 'fit', '--example', 'baseball']\n"
        "from bayesfair.__main__ import run\n"
        "try: run()\nexcept SystemExit: pass\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.splitlines()[-1].split()) & {"pymc", "pytensor", "matplotlib"}


@needs_shared
def test_a_narrow_terminal_gets_whole_lines(capsys, monkeypatch):
    from bayesfair.cli import fit as cli_fit

    baseball = SHARED / "baseball.csv"
    options = [baseball, "--left", "home.team", "--right", "away.team", "--wins",
               "home.wins,away.wins", "--first", "left"]  # fmt: skip
    status, wide, _ = run(capsys, *options)
    assert status == 0
    header = next(line for line in wide.splitlines() if "P(rank 1)" in line)
    assert "log-worth" in header and "Left out" not in wide
    monkeypatch.setattr(cli_fit, "_terminal_width", lambda: 80)
    narrow = run(capsys, *options)[1]
    table = [line for line in narrow.splitlines() if line.startswith("  ")]
    assert max(map(len, table[4:])) <= 80
    header = next(line for line in narrow.splitlines() if "P(rank 1)" in line)
    assert header.split("  ")[1] == "item" and "ranks 95 %" in header
    assert "Left out for want of width: sd, log-worth" in narrow
    # the same items in the same order
    teams = [
        line.split("  ")[1].strip()
        for line in wide.splitlines()
        if line.count("[") == 1 and line[:2] == "  "
    ]
    assert teams == [
        line.split("  ")[1].strip()
        for line in narrow.splitlines()
        if line.count("[") == 1 and line[:2] == "  "
    ]


def test_ranks_in_wide_form_and_scores(capsys, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("x,y,z\n9,5,1\n8,7,2\n3,6,1\n")
    _, text, _ = run(capsys, path, "--ranks", "x,y,z", "--no-lowest-is-best", "--json", "-")
    best_last = [item["item"] for item in json.loads(text)["items"]]
    _, text, _ = run(capsys, path, "--ranks", "x,y,z", "--json", "-")
    assert best_last[::-1] == [item["item"] for item in json.loads(text)["items"]]
    assert best_last == ["x", "y", "z"]


def test_an_item_called_left(capsys, tmp_path):
    path = tmp_path / "named.csv"
    path.write_text("left,right,winner\nleft,b,left\nb,left,left\nb,left,right\n")
    status, _, message = run(capsys, path)
    assert status == 2 and "two ways" in message
    _, text, _ = run(capsys, path, "--winner-is", "item", "--unknown", "skip", "--json", "-")
    assert json.loads(text)["items"][0]["item"] == "left"
    _, text, _ = run(capsys, path, "--winner-is", "side", "--json", "-")
    won = {item["item"]: item["log_worth"]["mean"] for item in json.loads(text)["items"]}
    assert won["left"] > won["b"]


def test_a_picture_of_thousands_of_items_is_drawn_smaller(capsys, tmp_path, monkeypatch):
    from bayesfair import plots

    # as high as the figure of some 4000 items, without fitting them
    monkeypatch.setattr(plots, "rank_figure_size", lambda n: (2.0, 1000.0))
    path = tmp_path / "high.png"
    duels = tmp_path / "two.csv"
    duels.write_text("left,right,winner\na,b,left\nb,a,left\n")
    assert run(capsys, duels, "--plot", path)[0] == 0
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    assert height <= 60_000 and width >= 100


def test_ranks_that_stand_for_not_ranked_and_last_ties_are_named_on_the_command_line(
    capsys, tmp_path
):
    wide = tmp_path / "wide.csv"
    wide.write_text("x,y,z\n1,2,3\n2,1,0\n3,1,2\n")
    ranks = (wide, "--ranks", "x,y,z", "--prior-sd", "inf", "--partial", "subset", "--json", "-")
    status, _, message = run(capsys, *ranks)
    assert status == 2 and "row 3 of wide.csv" in message and "unranked" in message
    status, text, _ = run(capsys, *ranks, "--unranked", "0")
    assert status == 0 and {i["item"]: i["n"] for i in json.loads(text)["items"]}["z"] == 2
    names = "".join(f"# ALTERNATIVE NAME {i}: c{i}\n" for i in (1, 2, 3))
    toc = tmp_path / "filled.toc"
    toc.write_text(f"# MODIFICATION TYPE: imbued\n{names}4: 1,{{2,3}}\n3: 2,1,3\n2: 3,1,2\n")
    soi = tmp_path / "short.soi"
    soi.write_text(f"{names}4: 1\n3: 2,1,3\n2: 3,1,2\n")
    fits = {}
    for key, args in {
        "toc": (toc,),
        "soi": (soi, "--partial", "top"),
        "tied": (toc, "--last-tie", "tie"),
    }.items():
        status, text, _ = run(capsys, *args, "--json", "-")
        assert status == 0
        fits[key] = {i["item"]: i["log_worth"]["mean"] for i in json.loads(text)["items"]}
    assert fits["toc"] == pytest.approx(fits["soi"], abs=1e-8)
    assert abs(fits["tied"]["c1"] - fits["soi"]["c1"]) > 0.003


def test_the_report_says_how_many_ties_were_left_out_and_what_is_no_likelihood(capsys, tmp_path):
    path = tmp_path / "d.csv"
    rows = ["a,b,left,.7"] * 20 + ["b,a,left,.9"] * 18 + ["a,b,tie,.4"] * 3
    path.write_text("left,right,winner,w\n" + "\n".join(rows) + "\n")
    model = (path, "--model", "bradley_terry")
    _, text, _ = run(capsys, *model, "--ties", "drop")
    assert "38 duels of 2 items, 3 ties left out" in text
    _, text, _ = run(capsys, *model, "--ties", "half")
    assert "tempered to the power 1." in text and "no likelihood" in text
    status, text, _ = run(capsys, *model, "--ties", "drop", "--weight", "w", "--check")
    assert status == 0 and "could not be judged: weights that are no whole numbers" in " ".join(
        text.split()
    )
