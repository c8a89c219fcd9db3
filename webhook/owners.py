"""Defines the owner of a pod: its RayCluster or AppWrapper, and its namespace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from kube.objects.names import CODEFLARE_GROUP


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """One RayCluster: the uid tells it from an earlier or later one of the same name."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"RayCluster {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NamespaceKey:
    """One namespace."""

    name: str

    def __str__(self) -> str:
        return f"Namespace {self.name}"


@dataclass(frozen=True, slots=True)
class AppWrapperKey:
    """One AppWrapper: the uid tells it from an earlier or later one of the same name."""

    namespace: str
    name: str
    uid: str
    group: str = CODEFLARE_GROUP

    def __str__(self) -> str:
        return f"AppWrapper {self.namespace}/{self.name}"


Key: TypeAlias = ClusterKey | NamespaceKey | AppWrapperKey


@dataclass(frozen=True, slots=True)
class Marks:
    """The labels and annotations of an object that may opt in."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Gone:
    """There is no such object, or another one bears its name."""


class Off(Gone):
    """There are no AppWrappers: a setting says so."""


GONE: Final = Gone()
OFF: Final = Off()


class Lookup(Protocol):
    """What is known about owners and namespaces without a request."""

    def find(self, key: Key) -> Marks | Gone | None:
        """Return what is known; None when that has to be asked."""
