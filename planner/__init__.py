"""Searches layouts and plans whole runs: feasibility, time, money, energy, failures."""
