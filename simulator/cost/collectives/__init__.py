"""Collective algorithms: one file each, a registry, and the choice that a library would make."""
