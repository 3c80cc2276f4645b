"""What an audit keeps of a log of decisions and says of it: one file per question."""
