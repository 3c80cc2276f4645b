"""The audit of a logged sequence of decisions: smooth fairness and calibration."""

from bayesfair.audit.api import audit, load_audit, merge
from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.result import Audit, AuditGroup

__all__ = ["Audit", "AuditGroup", "AuditState", "Criterion", "audit", "load_audit", "merge"]
