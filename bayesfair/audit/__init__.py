"""The audit of a logged sequence of decisions: smooth fairness and calibration."""

from bayesfair.audit.api import audit
from bayesfair.audit.criterion import Criterion
from bayesfair.audit.group import AuditGroup
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.parts import merge
from bayesfair.audit.result import Audit
from bayesfair.audit.saved.storage import load_audit

__all__ = ["Audit", "AuditGroup", "AuditState", "Criterion", "audit", "load_audit", "merge"]
