"""What is counted of a placement."""

from scheduling.model.gang import SUBMITTER
from scheduling.model.placement import Assignment, Placement, amounts_of


def assigned(pod_set: str, *nodes: tuple[str, int]) -> Assignment:
    return Assignment(pod_set, "", "shape", (("cpu", 100), ("pods", 1)), nodes)


def test_all_pods_of_the_gang_are_counted_and_not_its_submitter() -> None:
    placed = Placement((assigned("w", ("n1", 2), ("n2", 1)), assigned(SUBMITTER, ("n1", 1))))
    assert amounts_of(placed) == {"cpu": 300, "pods": 3}
