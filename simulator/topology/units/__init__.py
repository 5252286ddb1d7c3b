"""Kinds of unit: one file each, and a line in the registry."""
