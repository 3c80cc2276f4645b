"""Audits as files: what is written, how it is sealed, and how interrupted work goes on."""
