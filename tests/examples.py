"""The number of examples that a property tries.

As many as it asks for in `make test-long`; in `make test` and `make test-unit` a share of them,
which the profile's own number of examples (100 where nothing is said) sets.
"""

from hypothesis import settings

_FULL = 100


def examples(most: int, *, otherwise: int | None = None) -> settings:
    """Try at most so many examples, in a quicker profile as many less as it says.

    `otherwise` is how many are tried there of a property whose examples take seconds each.
    """
    quick = most * settings().max_examples // _FULL
    if otherwise is not None and settings().max_examples < _FULL:
        quick = otherwise
    return settings(max_examples=max(1, quick))
