"""From tables to a logged decision history, whole or part by part."""
