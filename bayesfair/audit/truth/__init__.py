"""The objective audit: what the log owes to the true rewards, known or drawn."""
