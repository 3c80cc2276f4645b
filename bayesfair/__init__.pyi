__version__: str

from . import errors, families, models, plots, policies, rewards, theory
from .audit import Audit, AuditGroup, AuditState, audit, load_audit, merge
from .audit.duels.api import audit_comparisons
from .audit.duels.result import DuelAudit
from .audit.truth.sensitivity import PriorSensitivity
from .comparisons import Comparisons, DuelLog
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
    smallest_eps2,
)
from .history import History
from .inference import fit
from .inference.beliefs import Beliefs, beliefs
from .inference.elpd import compare, loo
from .inference.influence import influence
from .inference.prior_power import prior_sensitivity
from .performance import tradeoff, utility
from .ranking import (
    pl_consistency,
    predicted_wins,
    quasi_standard_errors,
    rank_probability,
    rank_table,
    win_probability,
)
from .readers import HistoryScan, read_history, scan_history
from .readers.duels.comparisons import read_comparisons
from .readers.duels.log import read_duels
from .report import write_report
from .simulation.arms import simulate
from .simulation.duels import simulate_duels

# without it type checkers take none of these names for public
__all__ = [
    "ArmError",
    "Audit",
    "AuditGroup",
    "AuditState",
    "BayesfairError",
    "BayesfairWarning",
    "Beliefs",
    "Comparisons",
    "ConvergenceError",
    "DataError",
    "DuelAudit",
    "DuelLog",
    "History",
    "HistoryScan",
    "OptionError",
    "PriorSensitivity",
    "ProbabilityError",
    "audit",
    "audit_comparisons",
    "beliefs",
    "best_arm_probability",
    "best_mean_probability",
    "compare",
    "divergence",
    "errors",
    "fairness_regret",
    "families",
    "fit",
    "influence",
    "load_audit",
    "loo",
    "merge",
    "models",
    "pl_consistency",
    "plots",
    "policies",
    "predicted_wins",
    "prior_sensitivity",
    "quasi_standard_errors",
    "rank_probability",
    "rank_table",
    "read_comparisons",
    "read_duels",
    "read_history",
    "rewards",
    "scan_history",
    "simulate",
    "simulate_duels",
    "smallest_eps2",
    "theory",
    "tradeoff",
    "utility",
    "win_probability",
    "write_report",
]
