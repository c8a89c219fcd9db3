"""Lists the cases, and how often each runs by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import (
    alive,
    backlog,
    burst,
    claimed_filter,
    devices,
    dispatched,
    extender,
    fit,
    foreseen,
    freed,
    held,
    large,
    latency,
    lifetime,
    many_members,
    many_queues,
    nominated,
    nomination,
    page,
    preempting,
    programs,
    quota_room,
    reconciles,
    recording,
    release,
    relist,
    reviews,
    scrape,
    status_writes,
    sync,
    throughput,
    together,
    traces,
    under_load,
    verdict,
    whole_nodes,
    wrapped_jobs,
    wrapped_waiting,
)
from benchmarks.measure import Outcome


@dataclass(frozen=True)
class Case:
    """One question, and what answers it with so many pairs of runs or samples."""

    question: str
    runs: int
    measure: Callable[[int], Outcome]


CASES = {
    "burst": Case("How long do 100 Ray clusters take that are created at once?", 5, burst.measure),
    "gating": Case("What do gates cost, by a policy or a webhook?", 3, burst.measure_gatings),
    "backlog": Case("How long do 300 waiting gangs take once they can go?", 3, backlog.measure),
    "burst-queues": Case(
        "What do queues cost 100 Ray clusters that are created at once?", 5, burst.measure_queues
    ),
    "burst-policies": Case(
        "What do admission policies cost 100 Ray clusters that are created at once?",
        5,
        burst.measure_policies,
    ),
    "backlog-queues": Case(
        "What do queues cost 300 waiting gangs once they can go?", 3, backlog.measure_queues
    ),
    "backlog-nominations": Case(
        "What do nominations cost 300 waiting gangs once they can go?",
        2,
        backlog.measure_nominations,
    ),
    "alive": Case("What do 500 gangs that run cost the coordinator?", 3, alive.measure),
    "lifetime": Case(
        "How soon is a lost worker replaced, and do a hundred more run?", 10, lifetime.measure
    ),
    "idle": Case("How long does one gang take in an idle cluster?", 20, latency.measure_idle),
    "wakeup": Case(
        "How soon does the next gang run after one is deleted?", 20, latency.measure_wake
    ),
    "quota-room": Case(
        "How much later does a gang start where a ResourceQuota has room?", 20, quota_room.measure
    ),
    "release": Case("How fast are gated pods released?", 3, release.measure),
    "freed": Case("How soon is a waiting gang of 100 pods released?", 5, freed.measure),
    "held": Case("What do 300 held Ray clusters cost that wait, and then start?", 3, held.measure),
    "app-wrappers": Case("How long do 100 AppWrappers of one Job take?", 3, wrapped_jobs.measure),
    "app-wrappers-waiting": Case(
        "What do 1,000 AppWrappers cost that wait?", 1, wrapped_waiting.measure
    ),
    "large": Case("What does a large gang cost the coordinator as it starts?", 3, large.measure),
    "reconciles": Case("Which writes wake KubeRay?", 2, reconciles.measure),
    "webhook": Case("How long does the review of a pod take?", 3, reviews.measure),
    "load": Case(under_load.QUESTION, 1, under_load.measure),
    "packing": Case(
        "How many GPUs does the packing rule bring to use?", 10, traces.measure_packing
    ),
    "philly": Case(
        "Which gangs does the packing rule keep out as gangs come and go?", 1, traces.measure_philly
    ),
    "queueing": Case("How long do gangs wait behind a blocked one?", 1, traces.measure_queueing),
    "preemption": Case("How long is a cycle that looks for gangs to stop?", 9, preempting.measure),
    "queues": Case("How long is a cycle with 1,000 queues?", 9, many_queues.measure),
    "status-writes": Case(
        "What do 20,000 waiting gangs cost the API server?", 1, status_writes.measure
    ),
    "verdict": Case(
        "How long does a verdict take, and a cycle of 1,000 gangs?", 1, verdict.measure
    ),
    "devices": Case(
        "How long is a cycle where pods claim devices of 5,000 nodes?", 5, devices.measure
    ),
    "fit": Case("How long does `muster fit` take with a large cluster?", 5, fit.measure),
    "foresee": Case(
        "What do the first 20 estimates take with 1,000 gangs that wait?",
        3,
        foreseen.measure_foresee,
    ),
    "together": Case(
        "What do pairs cost the state machine, beside the same gangs apart?", 5, together.measure
    ),
    "estimates": Case(
        "How far off is what gangs are told of their start, on two traces?",
        6,
        traces.measure_estimates,
    ),
    "defrag": Case(
        "How many more large gangs start on a full cluster with moves?", 3, traces.measure_defrag
    ),
    "what-if": Case(
        "How long does a what-if take with 1,000 gangs that wait?", 3, foreseen.measure_what_if
    ),
    "page": Case(
        "How soon does the page in the browser answer, and what does it take?", 3, page.measure
    ),
    "extender": Case("How long does kube-scheduler wait for the extender?", 3, extender.measure),
    "dispatch": Case(
        "What does a gang cost that is sent to another cluster?", 20, dispatched.measure
    ),
    "dispatch-many": Case(
        "How soon does the dispatcher decide, of 2,000 gangs, that 50 members are asked for?",
        40,
        many_members.measure,
    ),
    "claimed-filter": Case(
        "How long does the extender judge 5,000 nodes for a pod that claims a device?",
        3,
        claimed_filter.measure,
    ),
    "relist": Case("How long do calls take while pods are listed anew?", 3, relist.measure),
    "whole-nodes": Case(
        "How long do others wait while whole nodes are sent?", 3, whole_nodes.measure
    ),
    "throughput": Case(
        "How many pods a second does kube-scheduler place on 1,000 nodes?",
        5,
        throughput.measure_small,
    ),
    "throughput-large": Case(
        "How many pods a second does kube-scheduler place on 5,000 nodes?",
        5,
        throughput.measure_large,
    ),
    "nomination": Case(
        "What do nominations cost a burst, and kube-scheduler?", 3, nomination.measure
    ),
    "nomination-large": Case(
        "What do nominations cost kube-scheduler on 5,000 nodes?", 3, nomination.measure_large
    ),
    "nominated": Case("What do 10,000 nominated pods cost the coordinator?", 3, nominated.measure),
    "recording": Case("What does a recording cost in a burst?", 10, recording.measure),
    "scrape": Case("What does a scrape of the metrics cost?", 20, scrape.measure),
    "programs": Case(
        "How soon is each program ready, and how much memory does it take?", 3, programs.measure
    ),
    "sync": Case("What does it take to sync with a large cluster?", 1, sync.measure),
}
