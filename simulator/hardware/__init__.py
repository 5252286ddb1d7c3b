"""Accelerators, links, nodes and cluster fabrics, and the profiles that describe them."""
