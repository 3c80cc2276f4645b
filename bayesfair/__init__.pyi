__version__: str

from . import errors, models, policies, rewards, theory
from .audit import Audit, audit, load_audit, merge
from .audit.duels.api import audit_comparisons
from .audit.duels.result import DuelAudit
from .comparisons import Comparisons, Connectivity, DuelLog
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
from .inference.beliefs import Beliefs, beliefs
from .inference.beliefs_by_fits import SequentialBeliefs, sequential_beliefs
from .inference.elpd import compare, loo
from .inference.prior_power import prior_sensitivity
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
from .readers.duels.comparisons import read_comparisons
from .readers.duels.log import read_duels
from .report import write_report
from .simulation.arms import drifting_rewards, simulate
from .simulation.duels import simulate_duels
from .simulation.performance import tradeoff, utility
