"""The benchmark of moves fills a cluster, and moves let more gangs start than fit without."""

from benchmarks import defrag
from benchmarks.cases import CASES
from benchmarks.openb import Machine, Pod

MACHINES = [Machine(96_000, 2**40, 8, "A100")] * 12
ONES = [Pod(1_000, 2**30, 1, 1_000, ())] * 80


def test_moves_let_gangs_start_for_which_the_room_lies_in_pieces() -> None:
    full = defrag.Full(MACHINES, ONES, 42)
    assert full.idle <= 12 * 8 * 0.06
    found = defrag.run(MACHINES, ONES, 42)
    assert found.moved == 0  # less than eight are idle


def test_a_row_has_the_means_over_the_seeds() -> None:
    found = defrag.Found(20, 1, 2, 16.0, 4, 0, (0.5,))
    assert defrag.row("default", [found, found]) == (
        "| default | 20 | 1.0 | 2.0 | 8.0 | 2.0 | 0 of 4 | 0.50 |"
    )


def test_it_is_among_the_cases() -> None:
    assert CASES["defrag"].measure.__name__ == "measure_defrag"
