"""What public functions are given: what they take, and what they do not."""

import numpy as np
import pandas as pd

import bayesfair as bf
from bayesfair.value import policy_value

LOG = "arm,reward,p_a,p_b\na,1,.5,.5\nb,0,.5,.5\n"
DUELS = "left,right,winner\na,b,left\nb,c,left\nc,a,left\n"


def small():
    """Small results of every kind."""
    history = bf.History(
        ["a", "b"] * 6, [1, 0] * 5 + [1, 1], selection_probability=[[0.5, 0.5]] * 12
    )
    games = bf.Comparisons.from_duels(
        list("abcabc"), list("bcacab"), ["left"] * 5 + ["right"], keep_rows=True
    )
    first = bf.audit(history.before(6), seed=1, draws=20)
    return {
        "history": history,
        "comparisons": games,
        "audit": bf.audit(history, seed=1, draws=20),
        "group": bf.audit({"x": history, "y": history}, seed=1, draws=20),
        "duel audit": bf.audit_comparisons(games, selection_probability=[1 / 3] * 3, seed=1),
        "fit of duels": bf.fit(games, seed=1, draws=20),
        "fit of arms": bf.fit(history, seed=1, draws=20),
        "first": first,
        "second": bf.audit(history.rounds(6, 12), prior=first, seed=1, draws=20),
    }


SMALL = small()
WRONG = {
    "None": None, "text": "x", "number": 3, "nan": float("nan"), "bytes": b"x",
    "empty list": [], "mapping": {}, "object": object(), "array": np.zeros((2, 2)),
    "empty frame": pd.DataFrame(), "one row": pd.DataFrame({"arm": ["a"], "reward": [1]}),
    "list of audits": [SMALL["duel audit"]], "time": pd.Timestamp("2026-01-01"), "no time": pd.NaT,
    "times and none": [pd.NaT, "a"], "series": pd.Series(["a", "b"]), "function": lambda x: x,
    "class": int, "true": True,
    **{name: SMALL[name] for name in SMALL if name not in ("first", "second")},
}  # fmt: skip
ARMS = bf.rewards.Bernoulli([0.6, 0.5])


def examples(folder):
    """Public function -> arguments and options with which it works."""
    for name, text in (("log.csv", LOG), ("duels.csv", DUELS)):
        (folder / name).write_text(text)
    SMALL["audit"].save(folder / "audit.nc")
    history, games, tree = SMALL["history"], SMALL["comparisons"], SMALL["fit of duels"]
    arms, audit = SMALL["fit of arms"], SMALL["audit"]
    seeded = {"seed": 1, "replicates": 20}
    rule = bf.policies.FairSDDTS(C=1)
    uneven = bf.History(["a", "b"], [1, 0], selection_probability=[[0.7, 0.3]] * 2)
    return {
        "audit": ([history], {"seed": 1, "draws": 20}),
        "audit_comparisons": ([games], {"seed": 1, "draws": 20}),
        "beliefs": ([history], {}),
        "best_arm_probability": ([ARMS], {}),
        "best_mean_probability": ([ARMS], {}),
        "compare": ([{"a": arms, "b": arms}], {}),
        "divergence": ([ARMS], {}),
        "drifting_rewards": ([ARMS, 20], {"seed": 1, "drift": 0.1}),
        "fairness_regret": ([[0.5, 0.5], [0.6, 0.4]], {}),
        "fit": ([history], {"seed": 1, "draws": 20}),
        "fit_summary": ([tree, games], {}),
        "guarantee_note": (["kl", "kl"], {}),
        "influence": ([tree, games], {}),
        "load_audit": ([folder / "audit.nc"], {}),
        "loo": ([arms], {}),
        "merge": ([SMALL["first"], SMALL["second"]], {}),
        "pl_consistency": ([tree, games], seeded),
        "policy_value": ([history, {"even": [0.5, 0.5]}], {}),
        "plot_cumulative_regret": ([audit], {}),
        "plot_frontier": ([audit], {}),
        "plot_gaps": ([tree], {}),
        "plot_groups": ([SMALL["group"]], {}),
        "plot_influence": ([bf.influence(tree, games)], {}),
        "plot_pairs": ([bf.audit(uneven, eps1=0, eps2=0, objective=False)], {}),
        "plot_predicted_wins": ([bf.predicted_wins(tree, games, **seeded)], {}),
        "plot_prior_sensitivity": ([bf.audit(history, seed=1).prior_sensitivity()], {}),
        "plot_rank_probability": ([tree], {}),
        "plot_ranks": ([tree], {}),
        "plot_regret": ([audit], {}),
        "plot_reliability": ([audit], {}),
        "plot_rewards": ([audit], {}),
        "plot_rules": ([{"a": audit, "b": audit}], {}),
        "plot_selection": ([audit], {}),
        "plot_shares": ([SMALL["duel audit"]], {}),
        "plot_value": ([policy_value(history, {"even": [0.5, 0.5]})], {}),
        "plot_tradeoff": ([bf.tradeoff(ARMS)], {}),
        "plot_violations": ([audit], {}),
        "plot_win_matrix": ([tree], {}),
        "predicted_wins": ([tree, games], seeded),
        "prior_sensitivity": ([arms, history], {}),
        "quasi_standard_errors": ([tree], {}),
        "rank_probability": ([tree], {}),
        "rank_table": ([tree], {}),
        "read_comparisons": ([folder / "duels.csv"], {}),
        "read_duels": ([folder / "duels.csv"], {}),
        "read_history": ([folder / "log.csv"], {}),
        "rewards_from_posterior": ([arms], {}),
        "scan_history": ([folder / "log.csv"], {}),
        "simulate": ([bf.policies.SDTS(), ARMS, 20], {"seed": 1}),
        "simulate_duels": ([rule, {"a": 2, "b": 1}, 20], {"seed": 1}),
        "smallest_eps2": ([[0.5, 0.5], ARMS], {"eps1": 1}),
        "tradeoff": ([ARMS], {}),
        "utility": ([history, ARMS], {}),
        "win_probability": ([tree], {}),
        "write_report": ([audit, folder / "page.html"], {}),
    }
