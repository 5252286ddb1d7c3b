"""Machines and networks as other tools describe them, as topologies: one file a format."""
