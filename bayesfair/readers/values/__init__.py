"""Cells as values: numbers, times and labels, read strictly."""
