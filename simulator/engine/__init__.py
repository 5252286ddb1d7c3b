"""Plays a step program in simulated time with contention; the only user of simpy."""
