"""`audit`: from a log to a result; results merged, and read from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Protocol, cast, overload

from numpy.typing import ArrayLike

from bayesfair.audit.across import Across, check_across, with_across
from bayesfair.audit.cluster import check_client
from bayesfair.audit.covered import with_covered_pairs
from bayesfair.audit.criterion import Criterion, check_judge, eps2_options
from bayesfair.audit.group import GroupRecord
from bayesfair.audit.log.context_tables import CONTEXT_MODELS
from bayesfair.audit.log.start import most_offered
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.unused import refuse_unused
from bayesfair.audit.modelled_rule import check_rule, with_modelled_rule
from bayesfair.audit.parts import merge_records
from bayesfair.audit.question import Question
from bayesfair.audit.record import Record
from bayesfair.audit.result import Audit, AuditGroup, as_audit
from bayesfair.audit.run import run
from bayesfair.audit.saved.storage import read_audit
from bayesfair.audit.truth.model import check_fit, fitting_options
from bayesfair.base.arguments import PLAIN, TEXT_OR_MAPPING, each, takes
from bayesfair.base.checks import check_choice, no_seed
from bayesfair.base.options import given, refuse_beside
from bayesfair.base.progress import tells
from bayesfair.errors import OptionError
from bayesfair.families.finite import check_support
from bayesfair.history import History
from bayesfair.history.logs import logs_in
from bayesfair.inference.contract import family_of_models
from bayesfair.readers import HistoryScan
from bayesfair.rewards import Rewards
from bayesfair.typing import FilePath, Model, Progress, Seed

if TYPE_CHECKING:
    import xarray as xr
    from distributed import Client

__all__ = ["audit", "load_audit", "merge"]


class _OfLogs[**P](Protocol):
    """`audit` as a type: one log gives an audit, several give a group of them."""

    @overload
    def __call__(
        self, data: History | HistoryScan, *args: P.args, **options: P.kwargs
    ) -> Audit: ...
    @overload
    def __call__(
        self,
        data: Mapping[str, History] | Mapping[str, HistoryScan],
        *args: P.args,
        **options: P.kwargs,
    ) -> AuditGroup: ...


def _by_data[**P](function: Callable[Concatenate[Any, P], object]) -> _OfLogs[P]:
    """Let the type of what a function returns follow from that of its data."""
    return cast("_OfLogs[P]", function)


@_by_data
@takes(**each(
    PLAIN, "eps1", "family", "divergence", "reward_divergence", "objective", "judge",
    "context_model", "rule", "rule_window", "propensity_draws",
), across=TEXT_OR_MAPPING)  # fmt: skip
@tells
def audit(
    data: Any,
    *,
    eps1: float = 2.0,
    eps2: float | None = None,
    delta: float = 0.05,
    divergence: str = "total_variation",
    reward_divergence: str | None = None,
    family: str = "auto",
    prior: Any = None,
    support: ArrayLike | None = None,
    model: Model | None = None,
    fit: xr.DataTree | None = None,
    beliefs_model: Model | None = None,
    context_model: str | None = None,
    truth: Rewards | None = None,
    objective: bool = True,
    tolerance: float | None = None,
    draws: int = 4000,
    seed: Seed | None = None,
    from_round: int = 0,
    judge: str = "both",
    arm_groups: Mapping[str, str] | None = None,
    rule: str | None = None,
    rule_window: int | None = None,
    propensity_draws: int | None = None,
    across: Across | None = None,
    progress: Progress = None,
    partial: Any = None,
    model_options: Mapping[str, Any] | None = None,
    sampler: Mapping[str, Any] | None = None,
    client: Client | None = None,
) -> Audit | AuditGroup:
    r"""Audit a log for smooth fairness and calibration.

    Smooth fairness: :math:`D(\pi_t(i)\|\pi_t(j)) \le \epsilon_1 D(r_i\|r_j) + \epsilon_2` in every
    round and for every pair, *subjective* (against the beliefs before the round) and *objective*
    (against the true rewards). Calibration: the fairness regret
    :math:`\sum_i \max(P^*(i) - \pi_t(i), 0)`.

    Parameters
    ----------
    data : History, HistoryScan, or mapping of label to them
        What was logged. A mapping (``by=``) is audited group by group.
    eps1, eps2, delta : float
        The criterion. ``eps2=None`` means min(.05, 1/(2k)), where k is the most arms on offer in
        one round, the same for all groups; it is fixed where the log begins, and a later part with
        more arms on offer keeps it. ``delta`` concerns the objective verdict only: ``fair`` from a
        posterior probability 1 - delta on, ``unfair`` up to delta.
    divergence, reward_divergence : str
        D between decisions; D between rewards (default the same): total_variation, kl, hellinger,
        chi2, jensen_shannon, wasserstein.
    family : str
        ``"auto"``, ``"bernoulli"``, ``"finite"``, ``"poisson"``, ``"normal"``.
    prior : optional
        Parameters of the conjugate prior, for all arms, ``(k, p)``, or by label; Bernoulli:
        (alpha, beta), default Jeffreys (1/2, 1/2). That of measurements is by default centred and
        scaled by the first 20 known rewards and then frozen; in earlier rounds by those known then
        (a notice ``prior_learned`` says which rounds). Or an earlier audit (a loaded one, or its
        ``state``), to go on where it ended; of several logs for several logs. An audit that was
        interrupted goes on with its own log, from where it stopped.
    support : sequence of float, optional
        All values that a reward can take, for family ``"finite"`` (then the default); else those
        seen in the log (in all logs of a mapping), or in the first part of one scan.
    model : str or callable, optional
        Posterior of the true rewards from a PyMC model instead of the conjugate one: a name in
        `bayesfair.models` or a function ``build(history)``.
    fit : DataTree, optional
        Instead of `model`: what `bayesfair.fit` returned for this log, used as it is. Its arms,
        rounds and rewards must be those of the log, its family that of the audit.
    beliefs_model : str or callable, optional
        Model of the beliefs before each round; default conjugate. Of a log with a context it may
        have its `READS` by ``("context", "arm")``, such as ``"bernoulli_pooled_cells"``, or by
        ``("round", "arm")``: then the true rewards are drawn from it too, unless `model` or `truth`
        says otherwise, and there is a table of contexts.
    context_model : str, optional
        How beliefs are given the context of each round (``History.context``). ``"cells"``:
        conjugate beliefs for each context and arm, independent of all others; the log needs the
        largest eps2 of all contexts, its regret is the sum of theirs, and the probability that it
        is fair the product. ``"pooled"`` (rewards 0 and 1): an arm pays alike in its contexts, as
        far as they show: theta_ic ~ Beta(kappa mu_i, kappa (1 - mu_i)), with mu_i ~ Beta (`prior`)
        and log kappa_i uniform between 0.5 and 200 plays, on 40 x 20 nodes, exact and sequential.
        ``"linear"`` (measurements), ``"probit"`` and ``"logit"`` (0 and 1): columns of numbers,
        scaled by the first 100 rounds, and indicators of other values are features; beliefs on each
        arm's coefficients are exact (linear), or normal with exact moments after each reward.
        ``"none"``: beliefs that know no context, as with `model`, `beliefs_model`, `arm_groups`.
        Default, with a context: ``"pooled"`` for rewards 0 and 1 and more than 5 contexts, or a
        scan, which tells them at its end; ``"cells"`` else. A resumed audit keeps its own.
    truth : Rewards, optional
        Known true rewards: the objective part is exact. One set of arms, or one for each round
        (batch shape ``(n_rounds,)``). Excludes `model`.
    objective : bool
        False leaves the objective part out (no draws, no seed).
    tolerance : float, optional
        Excesses up to eps2 + tolerance are no violations; default 1e-9, raised with a notice to
        the resolution of the logged numbers.
    draws : int
        Posterior draws.
    seed : int or Generator
        Required wherever something is drawn. Several logs share the stream: an int is the seed of
        each of them, so each has the draws of its audit alone, and logs with the same posterior
        the same ones; a Generator gives that int.
    from_round : int
        First round that is judged, counted from 0 at the start of the log (of each group). The
        rounds before it serve the beliefs alone: every number is of the judged rounds.
    judge : str
        Whose verdict is the top one: ``"subjective"``, ``"objective"``, or ``"both"``: unfair if
        either is, fair only if both are; the objective one where `truth` is given.
    arm_groups : mapping of label to group, optional
        Also report pairs between and within groups of arms.
    rule : str, optional
        ``"estimated"``: of a log without probabilities, also estimate shares of the arms from the
        choices, in windows of rounds, each with a Dirichlet(1/2) posterior, and what they would
        need and lack: ``modelled`` in `Audit.to_dict`. A model: no part of any verdict, nor of
        merged or resumed audits, which say so. ``if_calibrated`` is what choices drawn from P*
        would show, so estimated: the noise of the estimates raises both.
    rule_window : int, optional
        Least rounds of such a window, default 100 for each arm; windows are as even as can be.
    propensity_draws : int, optional
        The logged probabilities are shares of so many Monte Carlo draws, each round of its own. A
        round counts as violating where it does beyond their error, a verdict is ``undetermined``
        where it hangs on it, and regrets have wider intervals (``monte_carlo`` in
        `Audit.to_dict`). With ``divergence`` total_variation or wasserstein.
    across : str or mapping, optional
        ``"contexts"``: also hold decisions of two rounds against each other, with the same eps1 and
        eps2: D of the laws of the choice, and D of the joint laws of all rewards that were believed
        before these rounds, given the context. A verdict of its own (``across`` in
        `Audit.to_dict`), no part of any other, nor of merged or resumed audits; of beliefs, not of
        true rewards. At eps1 = 1 a calibrated rule needs no eps2, also while it learns. Needs
        rewards 0 and 1 or few levels, whole rules, a log in memory. ``arms_as_individuals`` there
        is the eps2 of all pairs of arms in rounds, which calibrated rules may need.
        ``{"rule_version": column}``: likewise, where a column of the context says which version of
        the rule a round had, no part of what the beliefs are given. Pairs are within a version, of
        the beliefs before its first round with each context: with the same context two rounds
        should have one rule.
    progress : bool or callable, optional
        True shows on stderr how many rounds are done, and the draws of fits, how fast, and how long
        the rest will take. A function is called as ``progress(done, total, what)``, such as
        ``(3, 10, "rounds")``; total is None where it is not known.
    partial : str, Path or Checkpoint, optional
        File that holds the audit of the rounds seen so far, written every minute and when the audit
        is interrupted (Ctrl-C), between two parts of a scan; `load_audit` reads it, and
        `Audit.resume` goes on. It is removed when the audit is complete.
    model_options : mapping, optional
        Options of the `build` of `model` or `beliefs_model`, each to those that take it, such as
        ``{"n_bins": 5}``.
    sampler : mapping, optional
        How these models are fitted: ``target_accept``, ``tune``, ``chains``, ``backend`` as in the
        ``sampler=`` of `bayesfair.fit`; its ``method``, ``cores``,
        ``allow_unconverged``; and ``min_ess``, ``max_fits`` of `bayesfair.beliefs`.
    client : distributed.Client, optional
        A Dask cluster, whose workers share the files of a scan, the row groups of a Parquet file
        (up to two million rows a share), or several logs (extra ``distributed``). The numbers do
        not depend on how many they are. The order must be told, by a column or by numbers in the
        names of the files.

    Returns
    -------
    Audit or AuditGroup
        Unfair is a result, never an exception.

    Raises
    ------
    DataError, ProbabilityError, OptionError
        Naming what is wrong and the remedy.
    ConvergenceError
        If a model did not converge.

    References
    ----------
    .. [1] Liu, Radanovic, Dimitrakakis, Mandal, Parkes (2017), arXiv:1707.01875.

    Examples
    --------
    >>> from bayesfair import History
    >>> history = History(
    ...     ["a", "b", "a"], [1, 0, 1], selection_probability=[[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    ... )
    >>> result = audit(history, eps1=1, eps2=0.1, seed=1)
    >>> result.subjective_verdict, result.smallest_eps2
    ('fair', 0.0)
    """
    options = fitting_options(model_options, sampler, audit)
    if options and model is None and beliefs_model is None:
        name = "sampler" if sampler else "model_options"
        raise OptionError(
            f"{name}={options!r:.60} belongs to a model, and neither model= nor beliefs_model= was "
            "given.",
            kind="unused_option",
            column=name,
            value=options,
        )
    _check_context_model(
        context_model,
        model=model,
        fit=fit,
        beliefs_model=beliefs_model,
        arm_groups=arm_groups,
        propensity_draws=propensity_draws,
    )
    check_rule(
        rule, rule_window, context_model=context_model, beliefs_model=beliefs_model, client=client,
        divergence=None if divergence == "total_variation" else divergence,
    )  # fmt: skip
    seen, rule_version = check_across(
        across, data, model=model, beliefs_model=beliefs_model,
        arm_groups=arm_groups, client=client, propensity_draws=propensity_draws,
        **{name: "wasserstein" for name, D in (("divergence", divergence),
           ("reward_divergence", reward_divergence)) if D == "wasserstein"},
    )  # fmt: skip
    if truth is not None and not isinstance(truth, Rewards):
        raise OptionError(
            f"truth={truth!r} must be the true reward laws, such as "
            "bayesfair.rewards.Bernoulli([0.6, 0.5])."
        )
    if truth is not None and model is not None:
        raise OptionError("give truth= (known rewards) or model= (a posterior of them), not both.")
    drawn = (objective and truth is None) or beliefs_model is not None or rule is not None
    asked = given(audit, locals())
    refuse_unused(asked, data, drawn=drawn)
    if fit is not None:
        fitted, draws = check_fit(fit, data, asked)
        if family not in ("auto", fitted):
            raise OptionError(
                f"fit= has rewards of family {fitted!r}, not {family!r}: leave family out.",
                kind="other_fit", column="fit", value=fitted,
            )  # fmt: skip
        family = fitted
    if objective and truth is None and seed is None:
        raise no_seed("the objective part draws from a posterior", ", or objective=False")
    if rule is not None and seed is None:
        raise no_seed("rule='estimated' draws from a posterior")
    check_judge(judge, objective)
    criterion = Criterion(
        eps1=eps1,
        **eps2_options(eps2, 0 if eps2 is not None else _eps2_arms(data, prior)),
        delta=delta,
        from_round=from_round,
        judge=judge,
        divergence=divergence,
        reward_divergence=reward_divergence or divergence,
        tolerance=1e-9 if tolerance is None else tolerance,
        tolerance_given=tolerance is not None,
        propensity_draws=propensity_draws,
    )
    goes_on = isinstance(prior, (Record, GroupRecord, AuditState))
    question = Question(
        criterion=criterion,
        family=family_of_models(family, model, beliefs_model),
        prior=None if goes_on else prior,
        earlier=prior if goes_on else None,
        support=None if support is None else check_support(support),
        model=model,
        fit=fit,
        beliefs_model=beliefs_model,
        context_model=context_model,
        truth=truth,
        objective=objective,
        draws=draws,
        seed=seed,
        options=options,
        arm_groups=arm_groups,
    )
    if client is not None:
        check_client(client, question, data, partial)
    found = with_covered_pairs(run(seen, question, partial, client), seen)
    if across is not None:
        found = with_across(found, data, rule_version)
    if rule is not None and seed is not None:
        found = with_modelled_rule(found, rule_window, seed)
    return as_audit(found)


_NO_CONTEXT_MODEL = {
    "model": "the true rewards are drawn given the context",
    "fit": "the true rewards are drawn given the context",
    "beliefs_model": "each says what the beliefs are",
    "arm_groups": "pairs of groups of arms are not made given a context yet",
    "propensity_draws": "Monte Carlo error is not allowed for by context yet",
}


def _check_context_model(context_model: str | None, **others: Any) -> None:
    """Refuse a model of the context that is not known, or what does not go with one."""
    if context_model is None:
        return
    check_choice(context_model, "context_model", (*CONTEXT_MODELS, "none"))
    if context_model != "none":
        refuse_beside("context_model", context_model, others, _NO_CONTEXT_MODEL)


def _eps2_arms(data: Any, prior: Any) -> int:
    """Return for how many arms the default eps2 is made: kept from where the log began."""
    if isinstance(prior, GroupRecord):
        prior = next(iter(prior.audits.values()))
    earlier = getattr(prior, "state", prior)
    if isinstance(earlier, AuditState) and earlier.eps2_arms is not None:
        return earlier.eps2_arms
    return max((most_offered(log) for log in logs_in(data)), default=1)


@takes()
def merge[T: (Audit, AuditGroup)](first: T, second: T, *, seed: Seed | None = None) -> T:
    """Return the audit of two consecutive parts of one log, or of several logs.

    Parameters
    ----------
    first : Audit or AuditGroup
        Of the earlier part; a loaded one will do.
    second : Audit or AuditGroup
        Of the part that follows, made with ``prior=first`` and the same criterion.
    seed : int or Generator, optional
        For the objective part; default the seed of `second`.

    Returns
    -------
    Audit or AuditGroup
        The numbers of an audit of the whole (its log is no longer at hand for `Audit.rounds`).
        Groups are merged label by label; one that has no second part stays as it is.

    Raises
    ------
    DataError, OptionError
        If `second` does not start where `first` ended, or asked something else.

    Examples
    --------
    >>> from bayesfair import History
    >>> log = History(["a", "b"] * 4, [1, 0, 0, 1] * 2, selection_probability=[[0.5, 0.5]] * 8)
    >>> early = audit(log.before(5), seed=1)
    >>> late = audit(log.rounds(5, 8), prior=early, seed=1)
    >>> merge(early, late).regret == audit(log, seed=1).regret
    True
    """
    return as_audit(merge_records(first, second, seed=seed))


@takes()
def load_audit(path: FilePath) -> Audit | AuditGroup:
    """Read an audit that `Audit.save` or `AuditGroup.save` wrote.

    What it gives prints, merges and goes on as the audit that was saved: ``prior=`` of tomorrow's
    audit, `merge`, `Audit.resume`. Its log is not in the file: `Audit.rounds` works if it was saved
    with ``rounds=True``, `Audit.prior_sensitivity` does not.

    What goes on from it may be saved to the same file, unless that was replaced meanwhile: of two
    processes that resume one file the second is refused.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Audit or AuditGroup

    Raises
    ------
    DataError
        If the file is missing, is no NetCDF file, holds no audit, comes from an older or newer
        layout, lacks a part, or is not byte for byte as it was saved.
    OptionError
        If `path` is no path.
    """
    return as_audit(read_audit(path))
