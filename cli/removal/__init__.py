"""Lists Muster's objects in a cluster, and the order of their removal. Pure."""
