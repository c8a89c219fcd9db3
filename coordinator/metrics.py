"""The metrics of the coordinator.

No label carries a pod or a gang: their number is unbounded. Admins create the queues, and only the
largest node pools appear by name. A `Reading` is read off the state before each scrape
(`coordinator/shell/scrape.py`).
"""

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from runtime.connections import ConnectionMetrics
from runtime.readings import Reading

GPUS = ("pool", "resource")
_WAITS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)


def _gauge(name: str, text: str, *labels: str) -> Reading:
    return Reading("gauge", name, text, labels, REGISTRY)


def _counter(name: str, text: str, *labels: str) -> Reading:
    return Reading("counter", name, text, labels, REGISTRY)


GANGS = _gauge(
    *("muster_gangs", "Gangs by queue, phase and reason, as the leader sees them"),
    *("queue", "phase", "reason"),
)
WAITING = _gauge("muster_gangs_waiting", "Gangs without room, by reason", "reason")
LEADER = Gauge("muster_leader", "1 while this replica leads")
EPOCH = Gauge("muster_leader_epoch", "Epoch of this replica's newest term")
CYCLE_SECONDS = Histogram(
    "muster_cycle_seconds",
    "Time of one decision cycle over all gangs that ask for room",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
CYCLE_PART_SECONDS = Histogram(
    "muster_cycle_part_seconds",
    "Time of a part of a cycle",
    ["part"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1),
)
EVENT_LAG = Histogram(
    "muster_event_lag_seconds",
    "From the arrival of what was watched to its handling, of the oldest event of each step",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)
ADMISSION_WAIT = Histogram(
    "muster_admission_wait_seconds",
    "From the creation of a RayCluster to the write of its placement",
    ["queue"],
    buckets=_WAITS,
)
ADMISSION = Histogram(
    "muster_admission_seconds",
    "From the first request of a whole gang for room to the write of its placement",
    buckets=_WAITS,
)
RELEASE = Histogram(
    "muster_release_seconds",
    "From the write of a placement to the end of the releases that go together",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
GATE_REMOVAL = Histogram(
    "muster_gate_removal_seconds",
    "From the decision to release a pod to the API server's answer that its gate is off",
    buckets=(0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
PLACEMENTS = _counter(
    "muster_placements", "Placements decided: of gangs, and of more pods of placed gangs", "kind"
)
REFUSALS = _counter("muster_refusals", "Refusals decided, when they were news", "reason")
REFUSING_PREDICATES = _counter(
    "muster_refusing_predicates",
    "The same by predicate: each that kept a pod of the gang from a node",
    "predicate",
)
REPAIRS = Counter("muster_repairs", "Pods deleted to be placed anew, by why", ["why"])
BIND_REFUSALS = _counter(
    "muster_bind_refusals", "Released pods that kube-scheduler refused on their node"
)
GIVEN_UP_PLACEMENTS = Counter(
    "muster_placements_given_up", "Placements that were given up, by reason", ["reason"]
)
GPUS_ALLOCATABLE = _gauge("muster_gpus_allocatable", "GPUs that nodes offer", *GPUS)
GPUS_RESERVED = _gauge(
    "muster_gpus_reserved", "GPUs promised to gangs whose pods are not there yet", *GPUS
)
GPUS_FREE = _gauge(
    "muster_gpus_free", "GPUs neither used nor reserved, on nodes that take pods", *GPUS
)
GPUS_UNSCHEDULABLE = _gauge(
    "muster_gpus_unschedulable", "GPUs neither used nor reserved, on nodes that take none", *GPUS
)
GPUS_STRANDED = _gauge(
    "muster_gpus_stranded",
    "Free GPUs beside which too little CPU or memory is left for what pods typically take",
    *GPUS,
)
FAR_DEVICES = _gauge(
    "muster_far_devices", "Devices that several nodes reach, each counted once", *GPUS
)
FAR_RESERVED = _gauge(
    "muster_far_devices_reserved", "Those promised to gangs whose pods are not there yet", *GPUS
)
FAR_FREE = _gauge("muster_far_devices_free", "Those neither used nor reserved", *GPUS)
SHARED_DEVICES = _gauge("muster_shared_devices", "Devices of which claims may have shares", *GPUS)
SHARED_DEVICES_WITH_ROOM = _gauge(
    "muster_shared_devices_with_room", "Those of them of which something is left", *GPUS
)
SHARED_CAPACITY = _gauge(
    "muster_shared_capacity", "Capacity of devices that are shared", *GPUS, "capacity"
)
SHARED_CAPACITY_FREE = _gauge(
    *("muster_shared_capacity_free", "The part of it that is neither used nor reserved"),
    *(*GPUS, "capacity"),
)
HOLES = _gauge(
    "muster_holes", "Pods of so many GPUs that still fit, if no other size comes", *GPUS, "size"
)
UNWHOLE_GPU_SECONDS = _counter(
    "muster_gpu_seconds_incomplete",
    "GPU-seconds held on nodes by gangs some of whose minimum is on no node",
    "queue",
)
RESERVED_GPU_SECONDS = _counter(
    "muster_gpu_seconds_reserved_idle",
    "GPU-seconds reserved for pods that were not there yet",
    "queue",
)
WRITES = Counter("muster_writes_total", "Writes to the API server", ["what", "outcome"])
NOMINATIONS_FORBIDDEN = Gauge(
    "muster_nominations_forbidden",
    "1 while the leader may not patch pods/status, and nominates no pod",
)
MISSING_FIELDS = Gauge(
    "muster_definition_missing_fields",
    "Fields that the coordinator writes and a definition (CRD) drops; while any is, it cannot lead",
    ["definition"],
)
AVOIDED = Gauge(
    "muster_avoided_nodes", "Nodes that are avoided because kube-scheduler refused a pod there"
)
KEPT = Gauge("muster_kept_slots", "Slots that are kept for lost pods of gangs")
QUEUE_PENDING = _gauge("muster_queue_pending", "Gangs that wait in a queue", "queue")
QUEUE_STOPPED = _gauge(
    "muster_queue_stopped", "1 while spec.stop of a queue, or of one above it, stops it", "queue"
)
QUEUE_USAGE = _gauge(
    *("muster_queue_usage", "What a queue uses of its quota, in base units"),
    *("queue", "resource"),
)
QUEUE_QUOTA = _gauge(
    *("muster_queue_quota", "Quota of a queue and what those below lend it, in base units"),
    *("queue", "resource"),
)
PREEMPTIONS = Counter(
    "muster_preemptions_total",
    "Gangs (kind gang, or job for those whose RayJob is stopped) and replicas of surplus that were "
    "stopped for others, by the queue that lost them",
    ["queue", "kind"],
)
EVICTIONS = Counter(
    "muster_evictions_total", "Answers to evictions of pods, and to dry runs of them", ["outcome"]
)
LATE_STARTS = Counter(
    "muster_late_starts_total",
    "Starts of gangs that were ended because the minimum was not ready in time",
    ["queue"],
)
OFFERS = Counter(
    "muster_offers_total",
    "GangOffers that another cluster asked by, by the phase that they came to, and the reason",
    ["phase", "reason"],
)
MANAGER_SILENCE = _gauge(
    "muster_manager_silence_ratio",
    "Time since a manager was heard of, as a share of that after which its gangs are lost",
    "manager",
)
EVENTS_DROPPED = Counter("muster_events_dropped_total", "Events that could not be written")
INBOX = Gauge("muster_inbox_events", "Events that wait to be handled")
SYNCED = Gauge("muster_watch_synced", "1 when the watch has its first list", ["resource"])
BLIND = Gauge("muster_watch_blind", "1 while the watch is down", ["resource"])
SILENCE = Gauge("muster_watch_silence_seconds", "Since the watch last heard", ["resource"])
RELISTS = Gauge("muster_watch_relists", "Lists that the watch took over", ["resource"])
REOPENED = Gauge(
    "muster_watch_reopened", "Times that the watch was opened again on a suspicion", ["resource"]
)
CONNECTIONS = ConnectionMetrics("coordinator", REGISTRY)
