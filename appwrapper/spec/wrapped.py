"""The contents of an AppWrapper as read: its items, their pod sets, and its faults."""

from dataclasses import dataclass
from enum import StrEnum

from appwrapper.spec.faults import (
    Fault,
)
from appwrapper.spec.kinds import (
    group_of,
)
from appwrapper.spec.paths import Json, Path
from kube.objects.app_wrapper import (
    AppWrapperSpec,
    CustomPodResources,
    SchedulingSpec,
)


class Generation(StrEnum):
    """Whose AppWrapper it is, by the fields that it has."""

    MCAD = "MCAD"
    CODEFLARE = "CodeFlare"


@dataclass(frozen=True, slots=True)
class WrappedPodSet:
    """Pods of an item, all of one template; `name` fits a label value.

    `path` is where in the object the template is, empty where the object is itself the pod. It is
    None where only sizes are declared: such pods cannot be labelled, and come ungated. `in_order`,
    `ray`, `completions` and `later` are those of `kinds.PodsOfKind`.
    """

    name: str
    path: Path | None
    count: int
    minimum: int
    hosts: int = 1
    ray: Path | None = None
    in_order: bool = False
    completions: int | None = None
    later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One wrapped object, as it is to be created but for what Muster adds.

    `where` is how messages name it. `custom` are its custompodresources, `completion` its
    completionstatus.
    """

    where: str
    api_version: str
    kind: str
    name: str
    found: Json
    pod_sets: tuple[WrappedPodSet, ...] = ()
    custom: tuple[CustomPodResources, ...] = ()
    completion: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Tell the object from all others of its namespace."""
        return group_of(self.api_version), self.kind, self.name


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What an AppWrapper asks for; nothing of it is created while there is a fault."""

    generation: Generation
    spec: AppWrapperSpec
    items: tuple[Item, ...] = ()
    faults: tuple[Fault, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def scheduling(self) -> SchedulingSpec:
        """What schedulingSpec says."""
        return self.spec.scheduling_spec or SchedulingSpec()
