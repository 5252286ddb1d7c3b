"""Simulates one training step: workload, hardware, layout, schedule, cost, engine."""
