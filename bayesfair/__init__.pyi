__version__: str

from . import errors, models, plots, policies, rewards, theory
from .audit import Audit, audit, load_audit, merge
from .beliefs import Beliefs, beliefs
from .comparisons import Comparisons
from .errors import (
    ArmError,
    BayesfairError,
    BayesfairWarning,
    ConvergenceError,
    DataError,
    OptionError,
    ProbabilityError,
)
from .history import History
from .readers import read_comparisons, read_history, scan_history
