"""From tables, ballots and arena files to comparisons."""
