__version__: str

from . import errors, models, policies, rewards, theory
from .audit import Audit, audit, load_audit, merge
from .audit.duel_result import DuelAudit
from .audit.duels import audit_comparisons
from .beliefs import Beliefs, beliefs
from .beliefs_pymc import SequentialBeliefs, sequential_beliefs
from .comparisons import Comparisons, Connectivity
from .duelling import DuelLog, simulate_duels
from .errors import (
    ArmError,
    BayesfairError,
    BayesfairWarning,
    ConvergenceError,
    DataError,
    OptionError,
    ProbabilityError,
)
from .fairness import (
    best_arm_probability,
    best_mean_probability,
    divergence,
    fairness_regret,
    guarantee_note,
    smallest_eps2,
)
from .history import History
from .inference import fit, rewards_from_posterior
from .inference.criticism import compare, loo
from .inference.prior_power import prior_sensitivity
from .performance import tradeoff, utility
from .plots import plot_cumulative_regret, plot_frontier, plot_ranks, plot_selection
from .ranking import (
    fit_summary,
    influence,
    pl_consistency,
    predicted_wins,
    quasi_standard_errors,
    rank_probability,
    rank_table,
    win_probability,
)
from .readers import read_history, scan_history
from .readers.comparisons import read_comparisons
from .report import write_report
from .simulate import drifting_rewards, simulate
