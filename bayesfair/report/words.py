"""Plain sentences for readers who must act on an audit; numbers come from its `to_dict` alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from bayesfair.audit.context_text import across_lines
from bayesfair.audit.criterion import VERDICTS
from bayesfair.audit.log.check_words import CHECK_NAMES, contradiction_lines
from bayesfair.audit.log.verdict_words import question_words
from bayesfair.audit.text import divergence_words, modelled_lines, show_worst
from bayesfair.base.checks import counted
from bayesfair.base.shown import number

__all__ = [
    "HEADLINE",
    "Unchecked",
    "criterion_rows",
    "exactness",
    "group_sentences",
    "limits",
    "unchecked",
    "verdict_sentences",
]

HEADLINE = {
    "fair": "The decisions kept to the criterion.",
    "unfair": "The decisions did not keep to the criterion.",
    "undetermined": "The log does not settle whether the decisions kept to the criterion.",
    "not_auditable": "The log does not hold what is needed to judge the decisions.",
}

GROUP_HEADLINE = {
    "fair": "Every group kept to the criterion.",
    "unfair": "At least one group did not keep to the criterion.",
    "undetermined": "No group was found unfair, but not every group could be settled.",
    "not_auditable": "At least one group's log does not hold what is needed to judge it.",
}

MEANING = {
    "total_variation": "total variation, the largest difference in the probability of any event: "
    "between two arms' decisions the difference of their selection probabilities, between rewards "
    "of 0 and 1 the difference of their success rates",
    "kl": "Kullback-Leibler divergence, in nats; the order of the two arms matters",
    "hellinger": "Hellinger distance, between 0 and 1",
    "chi2": "chi-squared divergence; the order of the two arms matters",
    "jensen_shannon": "Jensen-Shannon divergence",
    "wasserstein": "Wasserstein distance: how far, on average, one law's outcomes have to be moved "
    "to give the other's, in units of the outcomes",
}

MISSING = {
    "error": "A file that lacks a reward is refused.",
    "unobserved": "Rounds without a reward count in every fairness number; beliefs do not learn "
    "from them.",
    "drop": "Rounds without a reward are left out.",
}

_LIMITS = (
    "The question under the beliefs supposes that the rule knew this log and nothing else. A rule "
    "that knew more, or that had to start somehow, may look unfair in its first rounds without "
    "being so: see when the violations ended, and what the true rewards say.",
    "The verdict under the beliefs is {exact} for the logged probabilities and the stated prior: "
    "it asks what could be expected before each round. Delta plays no part in it.",
    "The verdict under the true rewards depends on rewards that nobody knows exactly. The "
    "probability is that all rounds and all pairs satisfy the inequality at once, so a rule that "
    "is exactly at its bound for many pairs looks unfair. With few plays per arm, undetermined is "
    "a common and an honest answer.",
    "One log cannot tell how often the same rule would be unfair in other runs; several runs, "
    "audited as groups, can.",
    "Context (who the user is, the time of day) that the audit was not given is no part of it, "
    "whether a column of the log holds it or not: a rule that used it is compared with beliefs "
    "that did not. A rule that looks unfair may be fair given what it knew, and the reverse; the "
    "numbers bound the fairness given the context neither from above nor from below. Splitting the "
    "log by a column audits each of its values apart.",
    "The audit takes rewards and probabilities as logged. Whether the reward measures what it "
    "should, and whether the options on offer were the right ones, it cannot say. It is no legal "
    "opinion.",
)


def limits(criterion: dict[str, Any]) -> list[str]:
    """Return what a verdict can and cannot carry."""
    return [sentence.format(exact=exactness(criterion)) for sentence in _LIMITS]


def exactness(criterion: dict[str, Any]) -> str:
    """Say how exact the numbers under the beliefs are."""
    if criterion.get("propensity_draws"):
        return "exact up to the Monte Carlo error of the logged probabilities"
    if criterion["beliefs_model"] == "conjugate":
        return "exact"
    return "exact up to the Monte-Carlo error of the beliefs"


_ENDS = ("first_violating_round", "last_violating_round")


class Unchecked(NamedTuple):
    """Something the log does not tell: what, why, and the empty keys of `to_dict` it explains."""

    what: str
    why: str
    keys: tuple[str, ...]


def verdict_sentences(numbers: dict[str, Any]) -> list[str]:
    """Return what the verdict of one log rests on, a sentence for each part."""
    log = numbers["log"]
    subjective, objective = numbers["subjective"], numbers["objective"]
    found, covered = contradiction_lines(numbers), numbers.get("covered")
    n = log["n_judged"]
    if not n:
        found.append("No round is judged so far: the log ends before the first one that is.")
    elif covered:
        words = question_words(numbers, "subjective")
        pairs = covered["pairs"]
        found.append(
            f"Judged by what could be believed before each round, {words}; both probabilities are "
            f"known of {pairs['known']} of {pairs['all']} pairs of arms, counted in every round."
        )
    elif subjective["verdict"] == "not_auditable":
        found.append(
            "Whether similar arms had similar chances cannot be judged: the log does not hold the "
            "probabilities of all arms in each round."
        )
    elif subjective["verdict"] == "fair":
        found.append(
            "Judged by what could be believed before each round, no two arms had selection "
            f"probabilities further apart than allowed, in any of {counted(n, 'round')}."
        )
    else:
        found.append(
            "Judged by what could be believed before each round, "
            f"{subjective['n_violating_rounds']} of {counted(n, 'round')} gave two arms selection "
            f"probabilities further apart than allowed{_beyond(numbers)}."
        )
    if objective is None:
        found.append("The true rewards were left out of this audit.")
    elif objective["probability_fair"] is not None:
        found.append(_objective_sentence(numbers))
    elif covered and covered["objective"]:
        found.append(f"Judged by the true rewards, {question_words(numbers, 'objective')}.")
    found.append(_regret_sentence(numbers))
    if modelled := [line.strip() for line in modelled_lines(numbers)[1:]]:
        found.append(f"{modelled[0]}: {'; '.join(modelled[1:])}.")
    if across := [line.strip() for line in across_lines(numbers)[1:]]:
        found.append(f"{across[0]}. {'. '.join(across[1:])}.")
    return found


def _beyond(numbers: dict[str, Any]) -> str:
    """Say beyond what rounds are counted, and what that leaves open."""
    if "monte_carlo" not in numbers:
        return ""
    rest = ", and whether others were is not settled"
    undetermined = numbers["subjective"]["verdict"] == "undetermined"
    return f" by more than Monte Carlo error explains{rest if undetermined else ''}"


def _objective_sentence(numbers: dict[str, Any]) -> str:
    objective, criterion = numbers["objective"], numbers["criterion"]
    p, delta = number(objective["probability_fair"]), criterion["delta"]
    if criterion["model"] == "truth":
        held = "all rounds keep" if objective["verdict"] == "fair" else "not all rounds keep"
        return f"Judged by the true rewards, which are known here, {held} within what is allowed."
    start = (
        "Judged by the true rewards, as far as the whole log reveals them, all rounds keep within "
        f"what is allowed with probability {p}: "
    )
    if not objective["converged"]:
        return f"{start}among draws that did not converge, so this stays open."
    if objective["verdict"] == "undetermined" and "monte_carlo" in numbers:
        low, high = (number(x) for x in numbers["monte_carlo"]["probability_fair"])
        return (
            f"{start}Monte Carlo error of the logged probabilities leaves {low} to {high}, which "
            f"is neither at least {1 - delta:g} nor at most {delta:g}, so this stays open."
        )
    return (
        start
        + {
            "fair": f"enough, since at least {1 - delta:g} is required.",
            "unfair": f"at most {delta:g}, so this is ruled out.",
            "undetermined": f"more than {delta:g} and less than {1 - delta:g}, so this stays open.",
        }[objective["verdict"]]
    )


def _regret_sentence(numbers: dict[str, Any]) -> str:
    part = numbers["calibration"]["subjective"]
    if part["regret_per_round"] is None:
        if part["lower"] is None:
            return "How well chances match each arm's probability of being best is not known."
        return (
            f"With 95 % confidence at least {number(part['lower'])} of a round's probability, on "
            "average, would have to move between arms to match each arm's probability of being "
            "best."
        )
    interval = (
        ""
        if part["exact"]
        else f" (95 % interval {number(part['lower'])} to {number(part['upper'])})"
    )
    return (
        f"On average {number(part['regret_per_round'])}{interval} of a round's probability would "
        "have to move between arms to match each arm's probability of being best; 0 is a perfect "
        "match, 1 the worst."
    )


def group_sentences(numbers: dict[str, Any]) -> list[str]:
    """Return what the verdict of several logs rests on."""
    counts = {v: 0 for v in VERDICTS}
    for audit in numbers["groups"].values():
        counts[audit["verdict"]] += 1
    parts = [f"{n} {v.replace('_', ' ')}" for v, n in counts.items() if n]
    found = contradiction_lines(numbers)
    found.append(f"Of {counted(len(numbers['groups']), 'group')}: {', '.join(parts)}.")
    runs = numbers["runs"]
    if runs["n"]:
        found.append(
            f"{runs['n_violating']} of {runs['n']} that could be audited are unfair: a share of "
            f"{number(runs['share'])}, with a 95 % interval of {number(runs['lower'])} to "
            f"{number(runs['upper'])} where the groups are runs of the same rule."
        )
    regret = [
        value
        for audit in numbers["groups"].values()
        if (value := audit["calibration"]["subjective"]["regret_per_round"]) is not None
    ]
    if regret:
        found.append(
            f"On average {number(min(regret))} to {number(max(regret))} of a round's probability, "
            "by group, would have to move between arms to match each arm's probability of being "
            "best; 0 is a perfect match, 1 the worst."
        )
    logs = [audit["log"] for audit in numbers["groups"].values()]
    total = {
        key: sum(log[key] for log in logs) for key in ("n_judged", "n_unobserved", "n_skipped")
    }
    found.append(
        f"The groups hold {counted(total['n_judged'], 'round')} that are judged"
        + (f", {total['n_unobserved']} of them without a reward" if total["n_unobserved"] else "")
        + (f"; {counted(total['n_skipped'], 'row')} left out." if total["n_skipped"] else ".")
    )
    return found


def criterion_rows(criterion: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, value and meaning of everything that was asked."""
    decisions, rewards = criterion["divergence"], criterion["reward_divergence"]
    meaning = MEANING[decisions]
    if rewards != decisions:
        meaning = f"of decisions: {meaning}; of rewards: {MEANING[rewards]}"
    delta = criterion["delta"]
    rows = [
        (
            "eps1", f"{criterion['eps1']:g}",
            "How much a difference of rewards counts: arms whose rewards differ by D may differ in "
            "probability by eps1 times D. At 0 all arms need equal chances, up to eps2; larger is "
            "laxer.",
        ),
        (
            "eps2", f"{criterion['eps2']:g}",
            "What is allowed on top, even to arms with the same rewards"
            + (f": {reason}." if (reason := criterion["eps2_reason"]) != "asked for" else "."),
        ),
        (
            "delta", f"{delta:g}",
            "How sure the verdict under the true rewards has to be: fair from probability "
            f"{1 - delta:g} on, unfair up to {delta:g}, else undetermined.",
        ),
        ("divergence", divergence_words(criterion), f"How differences are measured: {meaning}."),
        (
            "tolerance", f"{criterion['tolerance']:.2g}",
            "Excesses up to this are not counted: rounding, and the resolution of the log.",
        ),
        ("rewards", criterion["family"], "Family of the reward distributions."),
        ("prior", criterion["prior"], "What was believed of an arm before its rewards count."),
    ]  # fmt: skip
    if criterion["model"] is not None:
        true = criterion["model"] == "truth"
        rows.append((
            "true rewards",
            "known" if true else f"{criterion['model']}, {counted(criterion['draws'], 'draw')}",
            "Given as known." if true else "Their posterior given the whole log, and how many "
            "draws of it were used.",
        ))  # fmt: skip
    rows.append((
        "missing rewards", str(criterion["missing"]),
        MISSING.get(str(criterion["missing"]), "This number stands where no reward was logged."),
    ))  # fmt: skip
    return rows


def _pairs_unchecked(numbers: dict[str, Any]) -> Unchecked:
    """Return why pairs of arms were not compared, or what is known of some."""
    what, held = "", "only the chosen arm's"
    if numbers["log"]["selection"] == "none":
        held = "none of these"
    if covered := numbers.get("covered"):
        pairs = covered["pairs"]
        what = " (beyond the bounds that follow from the pairs that are known)"
        held = f"those of {pairs['known']} of {pairs['all']} pairs, counted in every round"
    return Unchecked(
        "Smooth fairness: the smallest eps2, worst round and pair, violating rounds, the "
        f"frontier, and the probability that the log is fair{what}",
        "Needs the probabilities of all arms in each round; the log holds "
        f"{held}. Log the probability of every arm to have this checked.",
        ("subjective", "frontier", "objective.smallest_eps2", "objective.probability_fair",
         "objective.n_violating_rounds", *(f"objective.{end}" for end in _ENDS)),
    )  # fmt: skip


def unchecked(numbers: dict[str, Any]) -> list[Unchecked]:
    """Return what could not be checked, with the reason."""
    log, objective, calibration = numbers["log"], numbers["objective"], numbers["calibration"]
    selection, found = log["selection"], []
    if not log["n_judged"]:
        found.append(Unchecked(
            "Everything: no round is judged yet",
            "The log ends before the first round that is judged; its rounds serve the beliefs.",
            ("subjective", "objective", "calibration", "frontier", "arms"),
        ))  # fmt: skip
    if selection != "full":
        found.append(_pairs_unchecked(numbers))
    elif numbers["subjective"]["worst"] is None:
        found.append(Unchecked(
            "The worst round and pair", "There is no pair of arms to compare.",
            ("subjective.worst",),
        ))  # fmt: skip
    elif show_worst(numbers) and numbers["subjective"]["worst"]["row"] is None:
        found.append(Unchecked(
            "The row of the worst round in its source", "The log came without row numbers.",
            ("subjective.worst.row",),
        ))  # fmt: skip
    if objective is None:
        found.append(Unchecked(
            "Everything that concerns the true rewards", "Left out on request (objective=False).",
            ("objective", "calibration.objective", "frontier.objective", "criterion.model",
             "arms.p_best_objective"),
        ))  # fmt: skip
    if selection == "none":
        found.append(Unchecked(
            "Fairness regret itself; there is a lower bound only",
            "Without probabilities only the frequencies of the choices are known, not the rule "
            "that made them.",
            ("calibration",),
        ))  # fmt: skip
    elif calibration["effective_sample_size"] is None:
        found.append(Unchecked(
            "The effective sample size of the weights", "There is no weight to judge.",
            ("calibration",),
        ))  # fmt: skip
    if selection == "chosen":
        found.append(Unchecked(
            "Each arm's mean selection probability",
            "The probabilities of arms that were not chosen are not in the log; shares of the "
            "choices estimate them.",
            ("arms.selection_mean",),
        ))  # fmt: skip
    silent = sum(arm["reward_mean"] is None for arm in numbers["arms"])
    if silent:
        found.append(Unchecked(
            f"The mean reward of {counted(silent, 'arm')}",
            "No reward was observed; what is believed there is the prior.",
            ("arms.reward_mean",),
        ))  # fmt: skip
    if log["n_unobserved"]:
        found.append(Unchecked(
            f"The rewards of {counted(log['n_unobserved'], 'round')}",
            "Not observed: these rounds count in every fairness number, and beliefs did not learn "
            "from them.", (),
        ))  # fmt: skip
    if log["n_skipped"]:
        found.append(Unchecked(
            f"The {counted(log['n_skipped'], 'row')} left out", "Skipped on request.", ()
        ))  # fmt: skip
    drawn = objective is not None and numbers["criterion"]["model"] != "truth"
    if numbers["criterion"]["seed"] is None and drawn:
        found.append(Unchecked(
            "Whether the draws can be repeated",
            "A generator was given in place of a seed.", ("criterion.seed",),
        ))  # fmt: skip
    return [*found, *_untested(numbers)]


def _untested(numbers: dict[str, Any]) -> list[Unchecked]:
    """Return the tests of the log itself that could not be made."""
    return [
        Unchecked(f"Checks of the log: {CHECK_NAMES[name]}", check["reason"], (f"checks.{name}",))
        for name, check in numbers["checks"].items()
        if check["passed"] is None
    ]
