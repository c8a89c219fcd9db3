"""The events that report how writes, reads and dry runs ended: None for success, else the error."""

from dataclasses import dataclass

from kube.codec.budget import Budget
from scheduling.model.gang import GangKey


@dataclass(frozen=True, slots=True)
class WriteEnded:
    """The write of a gang's own object ended; None: done, else what the API server said."""

    key: GangKey
    error: str | None


@dataclass(frozen=True, slots=True)
class QueueWriteEnded:
    """The write of a GangQueue ended; None: done, else what the API server said.

    `outdated`: the object is another one than was read; its watch tells of it.
    """

    name: str
    error: str | None
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class PodPatchEnded:
    """A release, fence or delete of a pod ended.

    `error` is None when it was done; `refused` says that the API server judged the very
    object that we had read and said no, so that trying the same again is of little use. `unknown`:
    it may have been carried out, or yet be.
    """

    gang: GangKey
    uid: str
    error: str | None
    refused: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class EvictionTried:
    """The dry run of an eviction, or of a suspension, ended; None: it would be accepted.

    `uid` is that of the pod or of the RayJob. `by_budget`: a disruption budget is against it.
    """

    gang: GangKey
    uid: str
    refusal: str | None
    by_budget: bool = False


@dataclass(frozen=True, slots=True)
class BudgetsRead:
    """The disruption budgets of a namespace were read, for pods that are to end for a gang.

    `error` is None where they were, else why not.
    """

    gang: GangKey
    namespace: str
    budgets: tuple[Budget, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RayJobWriteEnded:
    """A RayJob was suspended or resumed; None: done, else what the API server said.

    `refused`: it judged the change and said no. `unknown`: it may have been carried out.
    """

    gang: GangKey
    uid: str
    error: str | None
    refused: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class NodeRequestWriteEnded:
    """A ProvisioningRequest was created or deleted; None: done, else what the API server said."""

    gang: GangKey
    name: str
    error: str | None


@dataclass(frozen=True, slots=True)
class RayClusterWriteEnded:
    """A held RayCluster was resumed or suspended; None: done, else what the API server said.

    `refused`: it judged the change of the very object that was read, and said no.
    """

    gang: GangKey
    uid: str
    error: str | None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class NominationEnded:
    """The write of a nomination ended; a watch tells what became of it where it failed.

    `forbidden`: the coordinator has no right to it, for any pod.
    """

    gang: GangKey
    uid: str
    forbidden: bool = False


@dataclass(frozen=True, slots=True)
class LeaseStamped:
    """The Lease of a manager was read, or stamped; None: done, else what the API server said.

    `copied` is the newest stamp that the manager has read, 0 where it has read none. `missing`:
    there is no Lease yet, or it may not be read.
    """

    manager: str
    error: str | None
    copied: float = 0.0
    missing: bool = False


@dataclass(frozen=True, slots=True)
class OfferWriteEnded:
    """The write of a GangOffer ended; None: done, else what was said.

    `term` is that of the manager's leader, where it was read before a start; 0 where it was not.
    """

    gang: GangKey
    uid: str
    error: str | None
    term: int = 0
