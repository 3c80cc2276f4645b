"""What every room uses: checks, notices, labels, JSON, how things are shown and written."""
