"""Sweeps: one scenario with many values of its keys, or several scenarios side by side."""
