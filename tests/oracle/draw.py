"""The source of chance and names for the ingredients of a world."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.oracle.model import Json, namespaces


def host_key(slot: str) -> str:
    """Return the label that every node of a slot has a value of its own of."""
    return f"{slot}/host"


def zone_key(slot: str) -> str:
    """Return the label that several nodes of a slot share a value of."""
    return f"{slot}/zone"


@dataclass
class Draw:
    """The chance of one ingredient in one world, which no other ingredient shifts."""

    slot: str
    name: str
    random: Random
    objects: list[Json] = field(default_factory=list)
    """Where further objects of the world go."""

    @property
    def namespaces(self) -> tuple[str, str]:
        """The two namespaces of the world: the gang lives in the first."""
        return namespaces(self.slot)

    @property
    def node_names(self) -> str:
        """What the names of the world's nodes begin with; their numbers count from 0.

        A node that takes the name of one just deleted inherits how long it has been silent.
        """
        return f"{self.slot}-{self.name}-n"

    @property
    def pod_names(self) -> str:
        """What the names of the world's pods begin with.

        kube-scheduler patches the status of a pod by its name alone: a patch that is late would
        reach a pod that has taken the name.
        """
        return f"{self.name}-"

    @property
    def host(self) -> str:
        """The label that every node has a value of its own of."""
        return host_key(self.slot)

    @property
    def zone(self) -> str:
        """The label that several nodes share a value of, and some lack."""
        return zone_key(self.slot)

    def happens(self, chance: float) -> bool:
        """Draw whether something with this chance happens."""
        return self.random.random() < chance

    def maybe(self, chance: float, make: Callable[[], Any], otherwise: Any) -> Any:
        """Return what is made with this chance, or else the other."""
        return make() if self.happens(chance) else otherwise
