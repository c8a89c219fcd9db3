"""A placement: which pods of a gang go to which node, counted."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where the pods of one shape (and replica) of a pod set go: node name -> number of pods.

    `requests` are those of the shape, so that the room stays reserved even when no pod of the
    shape exists for the moment. The pods are released in their `turn`: once all pods of the gang
    that have an earlier one are bound.
    """

    pod_set: str
    replica: str
    shape: str
    requests: tuple[tuple[str, int], ...]
    nodes: tuple[tuple[str, int], ...]
    turn: int = 0


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Placement:
    """The assignments of a whole gang; written down, it is the gang's reservation.

    What is worked out of one is kept for as long as it lives (`bounded.while_alive`).
    """

    assignments: tuple[Assignment, ...] = field(default=())
