"""The number of examples that a property tries, and of cases that differ little.

As many as it asks for in `make test-long`; in `make test` and `make test-unit` a share of them,
which the profile's own number of examples (100 where nothing is said) sets.
"""

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

_FULL = 100
T = TypeVar("T")


def examples(most: int, *, otherwise: int | None = None) -> settings:
    """Try at most so many examples, in a quicker profile as many less as it says.

    `otherwise` is how many are tried there of a property whose examples take seconds each.
    """
    quick = most * settings().max_examples // _FULL
    if otherwise is not None and settings().max_examples < _FULL:
        quick = otherwise
    return settings(max_examples=max(1, quick))


def every_other(cases: Iterable[T]) -> list[ParameterSet]:
    """Cases of which each second one is for `make test-long`: they differ by one step each."""
    return one_in(2, cases)


def one_in(many: int, cases: Iterable[T]) -> list[ParameterSet]:
    """Cases of which `make test` has the first of so many: they differ by a step, or by chance."""
    return [
        pytest.param(case, marks=pytest.mark.long if number % many else ())
        for number, case in enumerate(cases)
    ]
