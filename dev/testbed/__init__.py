"""A real Kubernetes control plane on a bare machine, for the demo and the tests.

`python -m testbed build` makes the programs, `testbed.cluster.Cluster` runs them on loopback, and
`testbed.pytest_plugin` hands a fresh cluster to a test. No container engine and no root is needed:
the nodes are kwok's, everything else is the real thing.
"""
