"""Run decision rules on known truths: bandits and duels."""
