"""Defines the events and actions of the wrapper's state machine.

Each action is carried out for one AppWrapper, and each AppWrapper has at most one under way. Its
`ticket` comes back with the result; a result with another ticket is of an earlier term or object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from appwrapper.completion import Completion
from appwrapper.status.told import Totals
from kube.objects.app_wrapper import AppWrapperStatus, PodCondition
from kube.objects.base import ObjectMeta
from wrapper.contents import Contents, Reference

NO_TOTALS = Totals()


@dataclass(frozen=True, slots=True, order=True)
class WrapperKey:
    """Where an AppWrapper is: the group of its API, its namespace and its name."""

    group: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Print it as kubectl does: namespace/name."""
        return f"{self.namespace}/{self.name}"


# --- what is watched --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wrapper:
    """An AppWrapper as far as the state machine needs it: its templates are not kept."""

    metadata: ObjectMeta
    api_version: str
    status: AppWrapperStatus
    contents: Contents

    @property
    def key(self) -> WrapperKey:
        """Where it is."""
        group = self.api_version.rpartition("/")[0]
        return WrapperKey(group, self.metadata.namespace, self.metadata.name)

    @property
    def generation(self) -> int:
        """That of its gang, which counts edits of its spec and changes of its phase."""
        return self.metadata.generation + self.status.transition_count


@dataclass(frozen=True, slots=True)
class WrappedPod:
    """A pod of an AppWrapper, for counting; `of` is the uid of the AppWrapper.

    `completed`: it succeeded, and was not being deleted when it did.
    `exits` are the codes, other than 0, with which containers of a failed pod ended, `totals` what
    its containers request, `unschedulable` what kube-scheduler says where it cannot place it.
    """

    metadata: ObjectMeta
    wrapper: WrapperKey
    of: str
    phase: str
    pod_set: str = ""
    completed: bool = False
    exits: tuple[int, ...] = ()
    totals: Totals = NO_TOTALS
    unschedulable: tuple[PodCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class GangSignal:
    """What the Gang of an AppWrapper says: `of` and `generation` say of which one it speaks."""

    metadata: ObjectMeta
    of: str
    wrapper: WrapperKey
    placed: bool
    held: str
    generation: int
    reason: str
    message: str


# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrapperSeen:
    """A watch told of an AppWrapper."""

    wrapper: Wrapper


@dataclass(frozen=True, slots=True)
class WrapperGone:
    """An AppWrapper is gone."""

    key: WrapperKey
    uid: str


@dataclass(frozen=True, slots=True)
class GangSeen:
    """A watch told of the Gang of an AppWrapper."""

    signal: GangSignal


@dataclass(frozen=True, slots=True)
class GangGone:
    """The Gang of an AppWrapper is gone."""

    signal: GangSignal


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A watch told of a pod of an AppWrapper."""

    pod: WrappedPod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod of an AppWrapper is gone."""

    pod: WrappedPod


@dataclass(frozen=True, slots=True)
class TermStarted:
    """This replica leads; all that an earlier leader wrote has been seen."""


@dataclass(frozen=True, slots=True)
class TermEnded:
    """This replica does not lead any more."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The moment has come for which the state machine asked."""


@dataclass(frozen=True, slots=True)
class Written:
    """The status was written; the AppWrapper as it is now."""

    wrapper: Wrapper


@dataclass(frozen=True, slots=True)
class NotWritten:
    """The status was not written, or that is unknown; the AppWrapper as it was read then."""

    error: str
    wrapper: Wrapper | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an item was not created. One that `lasts` is not worth a second try.

    One that is `forbidden` would be refused again at once, as by a quota: the rest need not wait.
    """

    item: int
    message: str
    lasts: bool
    forbidden: bool = False


@dataclass(frozen=True, slots=True)
class Created:
    """Items that exist by now and are the AppWrapper's, and what stopped those after them."""

    items: frozenset[int] = frozenset()
    refusal: Refusal | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Deleted:
    """Items that are certainly gone."""

    items: frozenset[Reference] = frozenset()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """How far the items have come, and one that is not there any more, if any is missing.

    `ends` are the outcomes of those that are deleted some time after their end.
    """

    completion: Completion = Completion.RUNNING
    missing: str = ""
    error: str = ""
    ends: tuple[tuple[Reference, Completion], ...] = ()


Result: TypeAlias = Written | NotWritten | Created | Deleted | Read


@dataclass(frozen=True, slots=True)
class Ended:
    """An action ended."""

    key: WrapperKey
    ticket: int
    result: Result


Event: TypeAlias = (
    WrapperSeen
    | WrapperGone
    | GangSeen
    | GangGone
    | PodSeen
    | PodGone
    | TermStarted
    | TermEnded
    | TimePassed
    | Ended
)


# --- actions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write the whole status, if the AppWrapper is still as it was seen.

    Where it `starts`, the Gang is read once more before: it must still have its placement. What
    only informs lets all else pass.
    """

    key: WrapperKey
    ticket: int
    wrapper: Wrapper
    status: AppWrapperStatus
    starts: bool = False
    informs: bool = False


@dataclass(frozen=True, slots=True)
class CreateItems:
    """Create the next items, in order, unless the AppWrapper has changed its phase since."""

    key: WrapperKey
    ticket: int
    wrapper: Wrapper
    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeleteItems:
    """Delete these, as far as they are the AppWrapper's, and find out which are gone.

    Then delete the `pods`, by name and uid, without waiting for their nodes.
    """

    key: WrapperKey
    ticket: int
    wrapper: Wrapper
    items: tuple[Reference, ...]
    pods: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ReadItems:
    """Read how far all items have come; `pods_left` of its pods are pending or running.

    `completed` counts those that succeeded by pod set, also those that are gone since.
    """

    key: WrapperKey
    ticket: int
    wrapper: Wrapper
    pods_left: int
    completed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TellUser:
    """Write an Event on the AppWrapper."""

    key: WrapperKey
    wrapper: Wrapper
    reason: str
    message: str
    warning: bool


Deed: TypeAlias = WriteStatus | CreateItems | DeleteItems | ReadItems
Action: TypeAlias = Deed | TellUser
