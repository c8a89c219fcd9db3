"""Dynamic resource allocation: which devices kube-scheduler will allocate, and what fits."""
