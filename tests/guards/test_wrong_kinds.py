"""Whatever a public function is given ends in a result or in a BayesfairError, never in another.

The functions and their options are found in the public names, so that a new one without an example
fails here.
"""

import functools
import inspect
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from wrong_kinds import ARMS, LOG, SMALL, WRONG, examples

import bayesfair as bf
from bayesfair import families, inference, ranking
from bayesfair.value import policy_value

mpl.use("Agg")

FUNCTIONS = {
    name: value
    for place in (bf, bf.plots)
    for name in place.__all__
    if inspect.isfunction(value := getattr(place, name)) and name != "rank_figure_size"
} | {
    "fit_summary": ranking.fit_summary,
    "guarantee_note": bf.theory.guarantee_note,
    "policy_value": policy_value,
    "rewards_from_posterior": inference.rewards_from_posterior,
}
#: Options whose example values would ask for long work: (function, option, value).
LONG = {("prior_sensitivity", "model", "text"), ("fit", "cores", "number")}
LAWS = {
    "Bernoulli": [[0.5, 0.5]], "Poisson": [[1, 2]], "Normal": [[1, 2], [1, 1]],
    "StudentT": [[1, 2], [1, 1], [3, 3]], "NegativeBinomial": [[1, 2], [0.5, 0.5]],
    "Empirical": [[[1, 0], [2, 1]]],
}  # fmt: skip


def refused(call):
    """Whether a call is refused as it should be; False where it has a result."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except bf.BayesfairError as error:
        assert len(str(error)) > 10, "a message says what is needed"
        return True
    return False


@pytest.fixture(scope="module")
def works(tmp_path_factory):
    return examples(tmp_path_factory.mktemp("kinds"))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Let files with the names that are tried land in no folder of ours."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_refuses_what_it_does_not_take_by_a_bayesfair_error(name, works):
    assert name in works, f"{name}: give an example with which it works"
    function = FUNCTIONS[name]
    assert refused(function), "what is lacking is said"
    if works[name] is None:
        return
    given, options = works[name]
    assert not refused(lambda: function(*given, **options))
    for place in range(len(given)):
        for value in WRONG.values():
            changed = [*given[:place], value, *given[place + 1 :]]
            refused(lambda changed=changed: function(*changed, **options))
    try_options(name, function, given, options)
    assert refused(lambda: function(*given, **options, no_such_option=1))
    pyplot.close("all")


def try_options(name, function, given, options):
    """Give every option values of other kinds."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        for kind in ("text", "nan", "history", "duel audit", "empty frame", "empty list", "object",
                     "array", "series", "true", "no time"):  # fmt: skip
            if (name, parameter.name, kind) not in LONG:
                asked = options | {parameter.name: WRONG[kind]}
                refused(lambda asked=asked: function(*given, **asked))


@pytest.mark.parametrize("model", ["cells", "pooled"])
def test_audits_given_a_context_refuse_what_they_do_not_take(model, tmp_path):
    history = bf.History(
        ["a", "b"] * 6, [1, 0] * 6, selection_probability=[[0.5, 0.5]] * 12,
        context={"site": ["x", "y", "y"] * 4},
    )  # fmt: skip
    options = {"context_model": model, "seed": 1, "draws": 20}
    try_options("audit", bf.audit, [history], options)
    (tmp_path / "log.csv").write_text(LOG.replace("\n", ",x\n").replace("p_b,x", "p_b,site"))
    scan = bf.scan_history(tmp_path / "log.csv", context="site")
    found = bf.audit(history, **options)
    for kind, value in WRONG.items():
        refused(lambda value=value: bf.History(["a", "b"], [1, 0], context=value))
        refused(lambda value=value: bf.scan_history(tmp_path / "log.csv", context=value))
        refused(lambda value=value: bf.read_history(tmp_path / "log.csv", context=value))
        assert value is None or refused(lambda v=value: bf.audit(scan, **options, client=v))
        refused(lambda value=value: found.resume(value, seed=1))
        refused(lambda value=value: bf.merge(found, value))
        refused(lambda value=value: bf.merge(value, found))
        assert kind in ("audit", "group") or refused(lambda v=value: bf.load_audit(v))


@pytest.mark.parametrize("kind", WRONG)
def test_results_and_data_refuse_what_they_do_not_take(kind, tmp_path):
    value = WRONG[kind]
    for name in ("audit", "group"):
        refused(lambda name=name: SMALL[name].resume(value, seed=1))
        refused(lambda name=name: bf.merge(SMALL[name], value))
    if kind not in ("text", "bytes"):
        refused(lambda: SMALL["audit"].save(value))
    refused(lambda: bf.History(value, [1, 0]))
    refused(lambda: bf.History(["a", "b"], value))
    refused(lambda: bf.History(["a", "b"], [1, 0], arms=value))
    for name, given in LAWS.items():
        refused(lambda name=name, given=given: getattr(bf.rewards, name)(*given, arms=value))
    refused(lambda: bf.loo(SMALL["fit of arms"], value))
    refused(lambda: SMALL["comparisons"].with_covariates(value))
    refused(lambda: SMALL["comparisons"].without(value))
    for name in ("from_duels", "from_counts", "from_win_matrix", "from_choices", "from_rankings",
                 "from_ranked_rows"):  # fmt: skip
        make = getattr(bf.Comparisons, name)
        needed = [p for p in inspect.signature(make).parameters.values() if p.default is p.empty]
        given = [value] * max(1, len(needed))
        refused(lambda make=make, given=given: make(*given))


@pytest.mark.parametrize(
    "name", [n for n, f in FUNCTIONS.items() if "progress" in inspect.signature(f).parameters]
)
def test_progress_means_the_same_in_every_function_that_takes_it(name, works, capsys):
    given, options = works[name]
    told = []
    run = functools.partial(FUNCTIONS[name], *given, **options)
    for progress in (None, False, True, print, lambda *told_now: told.append(told_now)):
        run(progress=progress)
    assert capsys.readouterr().err == ""  # what is done at once needs no line
    for done, total, what in told:
        assert 0 < done <= total and what in (
            "rounds",
            "comparisons",
            "replicates",
            "beliefs",
            "distinct observations",
            "distinct comparisons",
        )
    if name not in ("fit", "beliefs"):  # closed forms have no parts
        assert told[-1][:2] == (told[-1][1], told[-1][1]), "it ends with all that was to be done"
    for wrong in ("x", 1, 0, [], lambda done: None):
        with pytest.raises(
            bf.OptionError, match=r"progress must be True, False or a func"
        ) as error:
            run(progress=wrong)
        assert (error.value.kind, error.value.column) == ("wrong_kind", "progress")


@pytest.mark.parametrize(
    "name", [n for n, f in FUNCTIONS.items() if "seed" in inspect.signature(f).parameters]
)
def test_a_seed_is_asked_for_in_the_same_words_everywhere(name, works):
    given, options = works[name]
    drawn = options | ({"model": "bernoulli_independent"} if name == "beliefs" else {})
    without = {n: v for n, v in drawn.items() if n != "seed"}
    for wrong in (*(() if name == "merge" else (without,)), drawn | {"seed": "x"}):
        with pytest.raises(bf.OptionError) as error:
            FUNCTIONS[name](*given, **wrong)
        assert error.value.column == "seed"
        assert "a whole number from 0 on, or a numpy Generator" in str(error.value)


def test_methods_refuse_what_they_do_not_take(tmp_path):
    history, audit, laws = SMALL["history"], SMALL["audit"], ARMS
    games, group = SMALL["comparisons"], SMALL["group"]
    (tmp_path / "log.csv").write_text(LOG)
    scan = bf.scan_history(tmp_path / "log.csv")
    rule, duels = bf.policies.SDTS(), bf.policies.FairSDDTS(C=1)
    state, match = rule.start(2), duels.start(2)
    arena = bf.simulate_duels(duels, {"a": 2, "b": 1}, 20, seed=1)
    calls = [
        history.before, history.rounds, history.where, audit.resume, audit.save,
        group.resume, group.save, laws.sample, laws.for_arms, games.with_covariates,
        history.cells, history.where_reward, history.with_prints, games.where, games.with_counts,
        group.start_for, scan.at, laws.taken, rule.update, rule.selection_probability, rule.start,
        rule.for_run, bf.policies.FairSDTS().for_run, duels.update, duels.start, duels.for_run,
        duels.exploring, duels.worth, duels.pair_probability, duels.selection_probability,
        duels.slot_probability, duels.exploration_constant, audit.state.after,
        audit.state.same_as, audit.state.require_same, audit.state.taught_by,
        audit.state.followed_by, audit.state.with_beliefs, arena.taken, arena.fairness_regret,
        arena.from_comparisons,
        *(getattr(bf.rewards, name)(*given).log_prob for name, given in LAWS.items()),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(bf.OptionError, match="required") as error:
            call()
        assert error.value.column in inspect.signature(call).parameters
    for value in WRONG.values():
        refused(lambda value=value: history.before(value))
        refused(lambda value=value: history.rounds(0, value))
        refused(lambda value=value: laws.sample(value, seed=1))
        refused(lambda value=value: laws.sample(seed=value))
        refused(lambda value=value: laws.for_arms(value))
        refused(lambda value=value: laws.taken(value, ["a"]))
        refused(lambda value=value: laws.taken([0], value))
        refused(lambda value=value: history.where_reward(value))
        refused(lambda value=value: history.with_prints("user", value, "user"))
        refused(lambda value=value: games.where(value))
        refused(lambda value=value: games.with_counts(value))
        refused(lambda value=value: games.duel_counts(by_first=value))
        refused(lambda value=value: games.duel_counts(squared=value))
        refused(lambda value=value: games.chains(ties=value))
        refused(lambda value=value: group.start_for(value, ["a", "b"]))
        refused(lambda value=value: group.start_for("z", value))
        refused(lambda value=value: scan.at(0, value, scan))
        refused(lambda value=value: scan.at(0, 1, value))
        refused(lambda value=value: rule.update(value, 0, 1.0))
        refused(lambda value=value: rule.update(state, value, 1.0))
        refused(lambda value=value: rule.update(state, 0, value))
        refused(lambda value=value: rule.start(value))
        refused(lambda value=value: rule.selection_probability(value))
        refused(lambda value=value: rule.selection_probability(state, value))
        refused(lambda value=value: duels.for_run(value, value))
        refused(lambda value=value: duels.start(value))
        refused(lambda value=value: duels.update(match, value, value, value))
        refused(lambda value=value: duels.slot_probability(value))
        refused(lambda value=value: arena.taken(value))
        refused(lambda value=value: arena.fairness_regret(value))
        refused(lambda value=value: arena.from_comparisons(value))
        for method in ("after", "same_as", "require_same", "taught_by", "followed_by"):
            refused(lambda value=value, m=method: getattr(audit.state, m)(value))
        for name, given in LAWS.items():
            law = getattr(bf.rewards, name)(*given)
            refused(lambda law=law, value=value: law.log_prob(value))
    assert refused(games.orderings), "duels have none"
    assert refused(lambda: laws.taken([2], ["a"])) and refused(lambda: laws.taken([0.5], ["a"]))
    assert refused(lambda: laws.log_prob([1, 0, 1])) and refused(lambda: laws.log_prob("x"))
    assert refused(lambda: games.with_counts(-games.count)) and refused(lambda: games.where(99))
    assert refused(lambda: scan.at(0, 2, scan)), "it is no partition"
    assert refused(lambda: rule.update(state, 2, 1.0)), "there is no third arm"
    assert refused(lambda: duels.update(match, 0, 2, 1.0)), "there is no third item"
    assert refused(lambda: history.with_prints("arm", np.zeros(12, np.uint64), "arm"))
    with pytest.raises(bf.OptionError, match="takes 't' in this order"):
        history.before(1, 2)


def test_what_lacks_and_what_is_too_much_is_named():
    history = SMALL["history"]
    for call, said in (
        (lambda: bf.fit(history), "seed= is required"),
        (bf.rank_table, "tree= is required"),
        (lambda: bf.rank_table(SMALL["fit of duels"], anchr="a"), "Did you mean 'anchor'"),
        (lambda: bf.rank_table(SMALL["fit of duels"], "a"), "everything else by name"),
        (
            lambda: bf.plots.plot_ranks(SMALL["fit of duels"], ax=3),
            "ax must be the axes of matplotlib",
        ),
    ):
        with pytest.raises(bf.OptionError) as error:
            call()
        assert said in str(error.value)


def public_calls():
    """Every public class and function, and the classmethods that make one: name -> callable."""
    found, rooms = {}, [bf, bf.rewards, bf.policies, bf.theory, bf.plots]
    for room in rooms:
        for name in room.__all__:
            thing = getattr(room, name)
            if not callable(thing) or inspect.isabstract(thing):
                continue
            if inspect.isclass(thing) and issubclass(thing, BaseException):
                continue
            found[f"{room.__name__}.{name}"] = thing
            for method, made in inspect.getmembers_static(thing) if inspect.isclass(thing) else ():
                if isinstance(made, classmethod) and not method.startswith("_"):
                    found[f"{room.__name__}.{name}.{method}"] = getattr(thing, method)
    return found


@pytest.mark.parametrize("name", public_calls())
def test_a_call_that_lacks_or_has_too_much_is_refused_by_its_name(name):
    call = public_calls()[name]
    with pytest.raises(bf.BayesfairError):
        call(no_such_option=1)
    required = [
        p.name for p in inspect.signature(call).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]  # fmt: skip
    if not required:
        return
    with pytest.raises(bf.BayesfairError) as error:
        call()
    assert error.value.kind == "missing_argument"
    assert error.value.column == required[0] and f"{required[0]}=" in str(error.value)


@pytest.mark.parametrize("base", [bf.rewards.Rewards, bf.policies.Policy, families.Family])
def test_a_class_that_others_derive_from_is_refused_and_so_is_one_that_lacks_a_method(base):
    with pytest.raises(bf.OptionError, match=f"{base.__name__} is .*Use one of") as error:
        base()
    assert (error.value.kind, error.value.column) == ("abstract", base.__name__)
    lacking = type("Lacking", (base,), {})
    with pytest.raises(bf.OptionError, match=r"Lacking is .*Derive a class"):
        lacking(1, of="x")


@pytest.mark.parametrize("wide", [1e9, 1e100, 1e200])
def test_a_prior_too_wide_for_double_precision_is_refused(wide):
    games = bf.Comparisons.from_counts(["a"], ["b"], [20], [0])
    with pytest.raises(bf.OptionError) as error:
        bf.fit(games, prior_sd=wide, seed=1)
    assert (error.value.kind, error.value.column) == ("singular", "prior_sd")


def test_draws_that_a_wide_prior_lets_astray_are_refused_with_its_remedy():
    games = bf.Comparisons.from_counts(["a"], ["b"], [20], [0])
    with pytest.raises(bf.ConvergenceError, match=r"prior_sd=1e\+07 the prior says"):
        bf.fit(games, prior_sd=1e7, seed=1)


def test_a_fit_of_duels_refuses_options_of_other_kinds_and_says_which():
    games = SMALL["comparisons"]
    for option, value, said in (
        ("prior_sd", 10**30, "prior_sd=inf"),
        ("prior_sd", 10**400, "prior_sd="),
        ("model", lambda x: x, "returned Comparisons"),
        ("model", int, "pymc.Model"),
        ("order_effect", np.zeros((2, 2)), "order_effect="),
        ("order_effect", "no", "order_effect='no' must be True, False or None"),
        ("family", np.zeros((2, 2)), "family must be text"),
    ):
        with pytest.raises(bf.OptionError) as error:
            own = (
                {"model_options": {option: value}} if option == "order_effect" else {option: value}
            )
            bf.fit(games, seed=1, draws=20, **own)
        assert said in str(error.value)
    with pytest.raises(bf.OptionError, match="prior_sd=inf"):
        bf.audit_comparisons(
            games, selection_probability=[1 / 3] * 3, seed=1, draws=20, prior_sd=10**30
        )


def test_what_fails_within_a_model_of_ones_own_is_shown_as_it_is():
    def build(comparisons):
        return comparisons + 1

    with pytest.raises(TypeError, match="unsupported operand"):
        bf.fit(SMALL["comparisons"], model=build, seed=1)


def test_a_log_that_is_no_history_is_named_by_loo():
    for value in ("x", pd.DataFrame(), SMALL["audit"], SMALL["fit of arms"]):
        with pytest.raises(bf.OptionError, match=f"got {type(value).__name__}"):
            bf.loo(SMALL["fit of arms"], value)


def test_columns_of_a_file_are_named_by_text_or_by_any_list_of_names(works):
    (log,), (duels,) = works["read_history"][0], works["read_comparisons"][0]
    for read in (bf.read_history, bf.scan_history):
        with pytest.raises(bf.OptionError, match="offered must be text, got bool True"):
            read(log, offered=True)
    wide = pd.DataFrame({"a": ["x", "y"], "b": ["y", "x"], "n": [3, 1], "m": [1, 2]})
    named = {"left": "a", "right": "b"}
    wanted = bf.read_comparisons(wide, wins=["n", "m"], **named)
    for names in (np.array(["n", "m"]), pd.Series(["n", "m"])):
        made = bf.read_comparisons(wide, wins=names, **named)
        assert np.array_equal(made.win_matrix(), wanted.win_matrix())
    for option in ("wins", "orderings", "ranks"):
        with pytest.raises(bf.BayesfairError):
            bf.read_comparisons(duels, **{option: pd.Series(["n", "m"])})


def test_a_label_that_is_no_time_is_missing_and_named():
    for call in (
        lambda: bf.Comparisons.from_duels([pd.NaT, "a"], ["b", "b"]),
        lambda: bf.Comparisons.from_choices([pd.NaT, "a"], [["a", "b"], ["a", "b"]]),
        lambda: bf.Comparisons.from_counts([pd.NaT, "a"], ["b", "b"], [1, 2], [2, 1]),
    ):
        with pytest.raises(bf.DataError, match="missing") as error:
            call()
        assert "comparison 0 of memory" in str(error.value)
    with pytest.raises(bf.DataError, match="sequence, got Timestamp"):
        bf.Comparisons.from_duels(pd.Timestamp("2026-01-01"), ["b"])
