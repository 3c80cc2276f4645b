"""A logged decision history, validated once."""

from bayesfair.history.history import History

__all__ = ["History"]
