"""Run decision rules on known truths: bandits and duels, and what a run cost."""
