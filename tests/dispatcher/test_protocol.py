"""A gang never runs on two members, whatever is lost, doubled or late, and runs in the end."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dispatcher.model import World
from tests.examples import examples

RULES = pytest.mark.parametrize(
    ("requeues", "changes"), [(False, False), (True, False), (False, True)]
)
"""What its queue says of a lost member, and whether that changes."""


@RULES
@examples(1000)
@given(history=st.binary(min_size=40, max_size=250))
def test_it_never_runs_twice_and_runs_once_all_is_well(
    requeues: bool, changes: bool, history: bytes
) -> None:
    world = World(requeues=requeues, changes=changes)
    world.play(history)
    world.heal()


@pytest.mark.long
@pytest.mark.timeout(3600)
@RULES
def test_nor_in_50000_longer_histories(requeues: bool, changes: bool) -> None:
    for seed in range(50_000):
        world = World(requeues=requeues, changes=changes)
        world.play(random.Random(seed).randbytes(400))
        world.heal()
