"""The number of examples that a property tries.

As many as it asks for in `make test-long`; in `make test` and `make test-unit` a share of them,
which the profile's own number of examples (100 where nothing is said) sets.
"""

from hypothesis import settings

_FULL = 100


def examples(most: int) -> settings:
    """Try at most so many examples, in a quicker profile as many less as it says."""
    return settings(max_examples=max(1, most * settings().max_examples // _FULL))
