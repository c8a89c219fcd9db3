"""How one gang is decided: topology, replicas, minimum, surplus, and what was refused before."""
