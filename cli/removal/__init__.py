"""Lists what of a cluster is Muster's, and what has to happen before it is removed. Pure."""
