"""The labels, annotations, gates and other names that Muster shares with others.

Constants only. What two parts must agree on stands here once.
"""

from datetime import timedelta

GROUP = "muster.dev"
API_VERSION = "muster.dev/v1alpha1"

GATE = "muster.dev/gang"
OPT_IN = "muster.dev/gang"
QUEUE = "muster.dev/queue"
PRIORITY_CLASS = "muster.dev/priority-class"
MIN_REPLICAS = "muster.dev/min-replicas"
TOPOLOGY_REQUIRED = "muster.dev/topology-required"
TOPOLOGY_PREFERRED = "muster.dev/topology-preferred"
REPLICA_TOPOLOGY_REQUIRED = "muster.dev/replica-topology-required"
EXPECTED_DURATION = "muster.dev/expected-duration"
LAST_CHECKPOINT = "muster.dev/last-checkpoint"  # on a RayCluster: work until then is not lost
RETRY = "muster.dev/retry"  # another value: a gang that was given up is started again
QUEUE_FINALIZER = "muster.dev/admitted-gangs"  # on a GangQueue: its gangs may hold room
GROWTH = "muster.dev/growth"  # on a RayCluster: how what is added to a running gang is placed
GROWTH_BY_REPLICA = "by-replica"
GROWTH_WHOLE = "whole"
TOGETHER = "muster.dev/together"  # on Ray objects: the group whose members start together
TOGETHER_SIZE = "muster.dev/together-size"  # beside it: how many members the group has
TOGETHER_END = "muster.dev/together-end"  # beside it: what becomes of others when a member ends
TOGETHER_KEEP = "Keep"
TOGETHER_ALL = "All"
TOGETHER_TOPOLOGY = "muster.dev/together-topology"  # beside it: whether members share a domain
TOGETHER_ONE = "One"
TOGETHER_EACH = "Each"
CREATE_PODS = "muster.dev/create-pods"  # on a RayCluster: when its pods are created
CREATE_ALWAYS = "always"
CREATE_WHEN_ADMITTED = "when-admitted"
HELD = "muster.dev/held"  # on a RayCluster: Muster suspended it
MANAGER = "muster.dev/manager"  # on what was created for another cluster: uid of its kube-system
ORIGIN = "muster.dev/origin"  # beside it: uid of the object there
SENT = "muster.dev/sent"  # beside both: which of its user's later wishes it has
WOKEN = "muster.dev/woken"  # on a RayCluster: when KubeRay was asked to look at it again
SUSPENDED_FOR = "muster.dev/suspended-for"  # on a RayJob: for which gang, and its own uid
HEAD_FAULT_TOLERANCE = "muster.dev/head-fault-tolerance"  # on Ray objects: where heads keep state
BUILT_IN = "built-in"  # its one value: in the Redis of Muster's namespace
TOLD = "muster.dev/told"  # on a nominated pod: the kube-scheduler that was told of it
RELEASED = "muster.dev/released"  # on a pod that Muster pinned: see kube/codec/release_note.py
NODES_FOR = "muster.dev/nodes-for"  # label of ProvisioningRequests that Muster makes: gang
NODES_ASKED = "muster.dev/nodes-asked"  # on one: a hash of what it asks for
NODES_ATTEMPT = "muster.dev/nodes-attempt"  # on one: for which time that is asked for
FENCE = "muster.dev/fence"  # on a pod: epoch of the leader that took the gang over

APP_WRAPPER = "muster.dev/app-wrapper"  # label of wrapped objects and their pods; see MANAGED_BY
APP_WRAPPER_UID = "muster.dev/app-wrapper-uid"  # label beside it: an earlier one is another
MANAGED_ELSEWHERE = "kueue.x-k8s.io/multikueue"
"""The one value of spec.managedBy with which KubeRay leaves a Ray object alone."""
DISPATCHED = "muster.dev/dispatched"
"""On an AppWrapper of a queue with clusters: another cluster runs it. managedBy is its user's."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"  # label of what is Kueue's, with that value too
MADE_FOR = "muster.dev/made-for"
"""On a RayJob or RayService that was created for a GangOffer: name and uid; KubeRay copies it."""
DISPATCHER_LEASE = "muster-dispatcher"  # with the uid of the manager; on each member
STAMP = "muster.dev/stamp"  # on it: the member's own time of day, in seconds since 1970
STAMP_READ = "muster.dev/stamp-read"  # beside it: the newest that the manager has read
APP_WRAPPER_GROUP = "muster.dev/app-wrapper-group"  # beside them where it is not CodeFlare's
POD_SET = "muster.dev/pod-set"  # label of pods of an AppWrapper: their pod set
CREATED_BY = "muster.dev/created-by"  # on an AppWrapper: the user whose rights its objects need
WRAPPED_OBJECTS = "muster.dev/aggregate-to-wrapped-objects"  # on ClusterRoles: what is created
MANAGED_BY = "muster.dev/app-wrapper"  # spec.managedBy of AppWrappers that Muster takes care of
DEFAULT_QUEUE = "default"

APP_WRAPPER_GANG = "appwrapper."  # before its name in that of its Gang; no RayCluster has a dot
MCAD_GANG = "appwrapper-mcad."  # the same for those of mcad.ibm.com
APP_WRAPPER_KIND = "AppWrapper"
APP_WRAPPERS = "appwrappers"
CODEFLARE_GROUP = "workload.codeflare.dev"
MCAD_GROUP = "mcad.ibm.com"
CODEFLARE_V1BETA2 = "workload.codeflare.dev/v1beta2"
CODEFLARE_V1BETA1 = "workload.codeflare.dev/v1beta1"
MCAD_V1BETA1 = "mcad.ibm.com/v1beta1"
APP_WRAPPER_API_VERSIONS = (CODEFLARE_V1BETA2, CODEFLARE_V1BETA1, MCAD_V1BETA1)
CODEFLARE_LABEL = "workload.codeflare.dev/appwrapper"  # as AppWrapper v1beta2 labels pods
MCAD_LABEL = "appwrapper.mcad.ibm.com"  # as MCAD does
MCAD_ITEM_LABEL = "resourceName"  # beside it, the name of the wrapped object

RAY_API_VERSION = "ray.io/v1"
RAY_NODE_TYPE = "ray.io/node-type"
RAY_CLUSTER = "ray.io/cluster"
RAY_GROUP = "ray.io/group"
RAY_REPLICA_NAME = "ray.io/worker-group-replica-name"
RAY_NO_OTHER_HEAD = "ray.io/disable-provisioned-head-restart"
"""On RayClusters that KubeRay made for a RayJob in SidecarMode."""
RAY_HEAD_GROUP = "headgroup"
RAY_NODE_TYPES = ("head", "worker")
RAY_REDIS_CLEANUP = "redis-cleanup"
"""The node type of the pod for which a RayCluster with fault tolerance waits at its end."""

PART_OF = "app.kubernetes.io/part-of"  # label of all objects that the manifests make
PART_OF_MUSTER = "muster"

LEASE_NAME = "muster-coordinator"
STOPPED = (
    "muster-release"  # holds the Lease where `muster release` has all coordinators stand still
)
DEFAULT_NAMESPACE = "muster-system"
COORDINATOR = "muster-coordinator"
"""Its Deployment, its account, and the binding that gives it its rights."""
KUBE_SYSTEM = "kube-system"
"""No RayCluster there or in Muster's namespace is a gang, whatever labels say: what Muster needs
must not wait for it."""

CERT_MANAGERS = "cert-manager.io/certificate-name"
"""The annotation of a Secret that cert-manager writes: the Certificate that asks for it."""

CONFIGURATION_HEARD = timedelta(seconds=30)
"""So long after a write to a webhook's configuration every API server has heard of it: they watch,
and are behind by less than a second; one that is cut off from etcd for longer admits nothing."""
