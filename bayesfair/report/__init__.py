"""One self-contained HTML file for those who must act on an audit."""

from bayesfair.report.write import write_report

__all__ = ["write_report"]
