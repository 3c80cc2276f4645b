"""The audit of who gets compared: a slot's law against beliefs and worths."""
