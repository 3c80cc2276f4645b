"""Formats of logs that are no table yet: one file each, behind one registry."""
