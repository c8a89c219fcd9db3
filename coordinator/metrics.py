"""The metrics of the coordinator.

No label carries a pod or a gang: their number is unbounded. Queues are made by admins.
"""

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from runtime.connections import ConnectionMetrics

GANGS = Gauge("muster_gangs", "Gangs by phase, as the leader sees them", ["phase"])
WAITING = Gauge("muster_gangs_waiting", "Gangs without room, by reason", ["reason"])
LEADER = Gauge("muster_leader", "1 while this replica leads")
EPOCH = Gauge("muster_leader_epoch", "Epoch of this replica's newest term")
CYCLE_SECONDS = Histogram(
    "muster_cycle_seconds",
    "Time of one decision cycle over all gangs that ask for room",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
ADMISSION_WAIT = Histogram(
    "muster_admission_wait_seconds",
    "From the creation of a RayCluster to the write of its placement",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400),
)
WRITES = Counter("muster_writes_total", "Writes to the API server", ["what", "outcome"])
NOMINATIONS_FORBIDDEN = Gauge(
    "muster_nominations_forbidden",
    "1 while the leader may not patch pods/status, and nominates no pod",
)
AVOIDED = Gauge(
    "muster_avoided_nodes", "Nodes that are avoided because kube-scheduler refused a pod there"
)
KEPT = Gauge("muster_kept_slots", "Slots that are kept for lost pods of gangs")
QUEUE_PENDING = Gauge("muster_queue_pending", "Gangs that wait in a queue", ["queue"])
QUEUE_USAGE = Gauge(
    "muster_queue_usage", "What a queue uses of its quota, in base units", ["queue", "resource"]
)
QUEUE_QUOTA = Gauge(
    "muster_queue_quota",
    "Quota of a queue and what those below lend it, in base units",
    ["queue", "resource"],
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
EVENTS_DROPPED = Counter("muster_events_dropped_total", "Events that could not be written")
INBOX = Gauge("muster_inbox_events", "Events that wait to be handled")
SYNCED = Gauge("muster_watch_synced", "1 when the watch has its first list", ["resource"])
BLIND = Gauge("muster_watch_blind", "1 while the watch is down", ["resource"])
SILENCE = Gauge("muster_watch_silence_seconds", "Since the watch last heard", ["resource"])
RELISTS = Gauge("muster_watch_relists", "Lists that the watch took over", ["resource"])
CONNECTIONS = ConnectionMetrics("coordinator", REGISTRY)
