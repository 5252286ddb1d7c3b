"""Measures a real machine and fits a profile to the measurements."""
