"""Read logs and comparisons from files and data frames; the only place that knows their formats.

Importing this package loads neither pyarrow nor a data frame library.
"""

from bayesfair.readers.log.history import read_history
from bayesfair.readers.log.preview import preview
from bayesfair.readers.log.rules import ReadRule, read_rule
from bayesfair.readers.log.scan import HistoryScan, scan_history

__all__ = ["HistoryScan", "ReadRule", "preview", "read_history", "read_rule", "scan_history"]
