"""Turns result files into figures, tables and shareable reports."""
