"""Generates the reference pages from the types and registries, and measures the accuracy page."""
