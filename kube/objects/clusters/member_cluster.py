"""MemberCluster: its fields, as they are read, and what the API server allows in them.

One stands on the manager for each cluster that gangs may be sent to. Its people write the spec, the
dispatcher the status.
"""

from typing import Annotated, Any, ClassVar

from kube.objects.base import ObjectMeta, OrNull, Part, Slim
from kube.objects.gang import COUNT, NAME, GangCondition
from kube.objects.schema import Allows, map_of, rules

ACTIVE, CORDONED, DRAINED = "Active", "Cordoned", "Drained"
STATES = (ACTIVE, CORDONED, DRAINED)

SEPARATE, SAME = "Separate", "Same"
USERS = (SEPARATE, SAME)

CONNECTED, COMPATIBLE = "Connected", "Compatible"
"""Types of conditions."""

LONGEST_NAME = 63
"""Of a MemberCluster: it becomes the value of a label."""

MOST_NAMESPACES = 1000

_UID: dict[str, Any] = {"maxLength": 128}
_NAMESPACE: dict[str, Any] = {"minLength": 1, "maxLength": 63}

_NAME_RULE = (
    f"!has(self.metadata) || size(self.metadata.name) <= {LONGEST_NAME}",
    f"the name of a MemberCluster has at most {LONGEST_NAME} characters",
)
_SAME_CLUSTER_RULE = (
    "!has(oldSelf.uid) || oldSelf.uid == '' || (has(self.uid) && self.uid == oldSelf.uid)",
    "another cluster answers: create another MemberCluster for it",
)


class KubeconfigSecret(Slim, frozen=True):
    """A Secret in Muster's namespace."""

    name: Annotated[str, Allows("Its name.", required=True, **NAME)] = ""
    key: Annotated[str, Allows("The key with the kubeconfig.", **NAME)] = "kubeconfig"


class MemberClusterSpec(Part, frozen=True):
    """How the cluster is reached, and what it takes. Labels are those of the MemberCluster."""

    kubeconfig_secret: Annotated[
        KubeconfigSecret,
        Allows(
            "The Secret of Muster's namespace with a kubeconfig; it is read again when it changes.",
            required=True,
        ),
    ] = KubeconfigSecret()
    state: Annotated[
        str,
        Allows(
            "Active: it takes gangs. Cordoned: it takes nothing new. Drained: gangs that another "
            "cluster may take leave it, too, one at a time.",
            enum=list(STATES),
        ),
    ] = ACTIVE
    users: Annotated[
        str,
        Allows(
            "Same: users and groups of the manager are those of the cluster, too. Then the cluster "
            "is asked whether the creator of an object may create it there, before it is sent. "
            "Separate: it is not asked.",
            enum=list(USERS),
        ),
    ] = SEPARATE
    namespaces: Annotated[
        OrNull[tuple[Annotated[str, Allows(**_NAMESPACE)], ...]],
        Allows(
            "The namespaces that are the same tenant's on both clusters. Gangs of no other one are "
            "sent there; absent means none.",
            maxItems=MOST_NAMESPACES,
            **{"x-kubernetes-list-type": "set"},
        ),
    ] = ()


class MemberClusterStatus(Part, frozen=True):
    """What the dispatcher has found out, and what it has sent there."""

    schema_extra: ClassVar[dict[str, Any]] = rules(_SAME_CLUSTER_RULE)

    uid: Annotated[str, Allows("The uid of its namespace kube-system.", **_UID)] = ""
    gangs: Annotated[int, Allows("Gangs that run or may run there.", **COUNT)] = 0
    conditions: Annotated[
        OrNull[tuple[GangCondition, ...]],
        Allows(
            "Connected: its API server answers. Compatible: gangs can be sent to what runs there.",
            **map_of("type"),
        ),
    ] = ()


class MemberCluster(Slim, frozen=True):
    """A cluster that gangs of queues with `clusters` may be sent to."""

    schema_extra: ClassVar[dict[str, Any]] = rules(_NAME_RULE)

    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[MemberClusterSpec, Allows(required=True)] = MemberClusterSpec()
    status: MemberClusterStatus = MemberClusterStatus()
