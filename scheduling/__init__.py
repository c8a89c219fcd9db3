"""The core: decides which gangs start, and the node of each of their pods.

The rules every module here keeps:

1. A function gets all it needs as arguments, the time included, and says all it has to say in
   what it returns. Same input, same output: ties are broken by name.
2. A gang is placed whole or not at all; no function returns half a placement.
3. Never release what kube-scheduler would refuse. A constraint that is not modelled is
   Unsupported by its name, never taken for satisfied.
4. A refusal is a value with a reason a user can act on; an exception is a bug.
5. Equal pods are one shape with a count; nodes are columns of int64 arrays, resources are rows.
6. "No" is final only when an exact test says so; a bounded search that runs out is Undecided.
"""
