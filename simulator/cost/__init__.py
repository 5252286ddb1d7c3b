"""Durations of operators and communication plans of collectives, as pure functions."""
