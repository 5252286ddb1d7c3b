"""Collectives on the links of a cluster: who sends over which link, and what that limits."""
