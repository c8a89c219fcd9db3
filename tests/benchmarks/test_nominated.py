"""The pods whose cost is measured are nominated, and a new leader finds them so."""

from benchmarks.nominated import WORKERS, run
from coordinator.gang.nominations import Guard


def test_all_pods_are_nominated_and_the_next_leader_writes_none_again() -> None:
    found = run(10, 20, Guard.NOMINATION)
    assert found.nominated == 10 * (1 + WORKERS)
    assert found.written == 0


def test_the_floor_has_the_same_pods_and_none_is_nominated() -> None:
    assert run(10, 20, Guard.NONE).nominated == 0
