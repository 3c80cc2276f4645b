"""Reward distributions of k arms at once, one family per file."""
