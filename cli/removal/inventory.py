"""Lists Muster's objects in a cluster, in the order of their removal."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cli.removal.objects import AnyObject, ConfigMap
from cli.removal.ours import (
    COORDINATOR,
    EXTENDER,
    OWN_DEFINITIONS,
    PREFIX,
    WRAPPER_DEFINITIONS,
    Release,
    helm_releases,
)
from kube.objects.names import KUBE_SYSTEM

PROGRAMS_FIRST: Final = ("deployments", "daemonsets", "statefulsets", "jobs", "cronjobs")
LAST: Final = ("customresourcedefinitions", "namespaces")
UNLABELLED: Final = (
    ("", "configmaps"),
    ("", "secrets"),
    ("coordination.k8s.io", "leases"),
    ("storage.k8s.io", "csistoragecapacities"),
)
"""Kinds that programs of Muster make objects of, in its namespace, without a label."""


@dataclass(frozen=True, slots=True)
class Item:
    """An object, by the API group, the plural and the path of its kind."""

    group: str
    plural: str
    path: str
    meta: AnyObject

    def __str__(self) -> str:
        meta = self.meta.metadata
        place = f"{meta.namespace}/" if meta.namespace else ""
        return f"{self.plural} {place}{meta.name}"


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that is Muster's, but for its namespace, and what bears its label and is not."""

    items: tuple[Item, ...]
    others: tuple[Item, ...]
    unread: tuple[str, ...]

    @property
    def releases(self) -> tuple[Release, ...]:
        """The releases of Helm that are there; the definitions that one keeps are of none."""
        return helm_releases(each.meta for each in self.removable)

    @property
    def definitions(self) -> tuple[Item, ...]:
        """The definitions of Gang and GangQueue."""
        return tuple(each for each in self.items if is_own_definition(each))

    @property
    def wrapper_definitions(self) -> tuple[Item, ...]:
        """The definitions of AppWrapper that Muster installed."""
        return tuple(
            each
            for each in self.items
            if each.plural == LAST[0] and each.meta.metadata.name in WRAPPER_DEFINITIONS
        )

    @property
    def removable(self) -> tuple[Item, ...]:
        """What can go without another thought: all but definitions and the namespace."""
        mine = (each for each in self.items if each.plural not in LAST and not is_signpost(each))
        return tuple(sorted(mine, key=_rank))

    @property
    def signposts(self) -> tuple[Item, ...]:
        """What tells a later call which namespace is Muster's: it goes when all else is gone."""
        return tuple(each for each in self.items if is_signpost(each))


def is_signpost(item: Item) -> bool:
    """Say whether this is the binding by which Muster's namespace is found."""
    return item.plural == "clusterrolebindings" and item.meta.metadata.name == COORDINATOR


def is_own_definition(item: Item) -> bool:
    """Say whether this is the definition of Gang or of GangQueue."""
    return item.plural == LAST[0] and item.meta.metadata.name in OWN_DEFINITIONS


def is_made_by_program(item: Item, home: str) -> bool:
    """Say whether a program of Muster made an object that has no label."""
    meta = item.meta.metadata
    made = (item.group, item.plural) in UNLABELLED
    return made and meta.namespace == home and meta.name.startswith(PREFIX)


def _rank(item: Item) -> tuple[bool, str, str]:
    return item.plural not in PROGRAMS_FIRST, item.plural, str(item)


def calls_extender(configurations: Iterable[ConfigMap]) -> str:
    """Name the ConfigMap of kube-system by which kube-scheduler calls the extender, if one does."""
    for each in configurations:
        texts = each.data.values()
        if any("KubeSchedulerConfiguration" in text and EXTENDER in text for text in texts):
            return f"{KUBE_SYSTEM}/{each.metadata.name}"
    return ""
