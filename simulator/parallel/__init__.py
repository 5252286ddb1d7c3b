"""Parallel layouts, rank groups, sharding, and the program of one training step."""
