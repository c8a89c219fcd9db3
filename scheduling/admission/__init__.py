"""Admits or refuses one gang: topology, replicas, minimum, surplus, and remembered refusals."""
