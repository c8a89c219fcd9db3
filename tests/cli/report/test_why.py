"""Why a gang waits: its place, what is short and who has it, and what would help."""

import msgspec
from msgspec.structs import replace

from cli.report.objects import Event
from cli.report.snapshot import NODES, Snapshot, Unread
from cli.report.why import Case, WhyReport, why_report
from kube.objects.core import Pod
from tests.cli.objects import GPU, Json, gang, node, placement, pod, queue

SHORTAGE = {
    "resource": GPU,
    "each": "8",
    "needed": "16",
    "free": "12",
    "left": "12",
    "largest": "6",
    "holders": [{"kind": "RayCluster", "namespace": "x", "name": "told", "amount": "9"}],
}
PODS = tuple(pod(f"w-{i}", "", 8, of="train", gated=True, selector={"gpu": "h100"}) for i in (1, 2))


def waiting() -> Json:
    sets = [
        {
            "name": "workers",
            "count": 2,
            "minimum": 2,
            "gated": 2,
            "reason": "InsufficientResources",
            "message": "0 of 2 workers fit",
            "shortage": SHORTAGE,
        }
    ]
    return {
        "position": 3,
        "ready": "0/2",
        "reason": "InsufficientResources",
        "message": "0 of 2 workers fit",
        "podSets": sets,
    }


def cluster() -> Snapshot:
    """Two nodes that could run it: on `a` big holds 6 and reserves 2 more; on `b` a job holds 4."""
    h100 = {"gpu": "h100"}
    return Snapshot(
        nodes=(node("a", labels=h100), node("b", labels=h100), node("c", labels={"gpu": "a100"})),
        pods=(
            pod("big-1", "a", 6, of="big", pinned="a"),
            pod("job", "b", 2),
            pod("elsewhere", "c", 8),
        ),
        gangs=(
            gang("train", **waiting()),
            gang("first", position=1),
            gang("second", position=2),
            gang("behind", position=4),
            gang("big", "Admitted", placement=placement(gpus=6, a=1)),
            gang("coming", "Admitted", placement=placement(gpus=2, a=1)),
        ),
    )


def report_of(
    found: Snapshot, pods: tuple[Pod, ...] = PODS, events: tuple[Event, ...] = ()
) -> WhyReport:
    return why_report(found, Case(found.gangs[0], pods, events))


def test_the_place_of_a_gang_is_among_those_that_wait_in_its_queue() -> None:
    report = report_of(cluster())
    assert (report.waits, report.position, report.of) == (True, 3, 4)
    assert report.ahead == ("team/first", "team/second")
    assert report.reason == "InsufficientResources"
    assert report.means.startswith("there are nodes that could run the pods")


def test_holders_are_those_on_the_nodes_that_could_run_the_pods() -> None:
    (workers,) = report_of(cluster()).pod_sets
    assert workers.short is not None
    assert (workers.short.is_judged, workers.short.nodes) == (True, 2)
    assert [(h.kind, h.name, h.amount, h.reserved, h.frees) for h in workers.short.holders] == [
        ("RayCluster", "big", "6", "0", 0),
        ("Namespace", "team", "2", "0", 1),
        ("RayCluster", "coming", "2", "2", 0),
    ]


def test_what_would_help_is_the_end_of_one_holder_that_makes_room() -> None:
    assert report_of(cluster()).helps == ()  # pods without a controller do not end by themselves
    found = cluster()
    alone = Snapshot(
        nodes=found.nodes,
        pods=found.pods,
        gangs=tuple(each for each in found.gangs if each.metadata.name != "coming"),
    )
    (said,) = report_of(alone).helps
    assert said.startswith("if RayCluster team/big ended, 1 more pod of workers would have the")


def test_of_what_fits_nowhere_no_end_of_others_helps() -> None:
    found = cluster()
    (first, *others) = (each for each in found.gangs if each.metadata.name != "coming")
    never = replace(first, status=replace(first.status, reason="NeverFits"))
    report = report_of(Snapshot(nodes=found.nodes, pods=found.pods, gangs=(never, *others)))
    assert report.helps == ()
    assert report.pod_sets[0].short is not None


def test_the_nodes_are_those_of_the_queue() -> None:
    rules = {"nodeSelector": {"rack": "r9"}}
    found = cluster()
    held = Snapshot(
        nodes=found.nodes,
        pods=found.pods,
        gangs=found.gangs,
        queues=(queue("research", {GPU: 99}, rules=rules),),
    )
    (workers,) = report_of(held).pod_sets
    assert workers.short is not None
    assert (workers.short.nodes, workers.short.holders) == (0, ())


def test_without_nodes_the_holders_are_those_that_the_gang_names() -> None:
    blind = Snapshot(gangs=cluster().gangs, unread=(Unread(NODES, "not allowed"),))
    (workers,) = report_of(blind).pod_sets
    assert workers.short is not None
    assert not workers.short.is_judged
    assert [(h.name, h.amount) for h in workers.short.holders] == [("told", "9")]
    assert report_of(blind).unread == ("not allowed",)


def test_a_gang_without_pods_is_told_whose_end_would_help() -> None:
    """As one that is held, or of an AppWrapper: none of its pods can be judged on the nodes."""
    (helps,) = report_of(cluster(), pods=()).helps
    assert helps == "if RayCluster x/told ended, the nvidia.com/gpu that it holds would come free"


def test_keys_without_a_meaning_are_told() -> None:
    said = {"type": "KeysUnderstood", "status": "False", "reason": "UnknownKey", "message": "x"}
    other = {**said, "type": "Gathered", "reason": "Queued", "message": "y"}
    found = Snapshot(gangs=(gang("g", conditions=[other, said]),))
    assert report_of(found, ()).notes == ("x",)


def test_history_is_by_time_the_oldest_first() -> None:
    def event(reason: str, last: str | None, made: str) -> Event:
        meta = {"creationTimestamp": made}
        return msgspec.convert({"metadata": meta, "reason": reason, "lastTimestamp": last}, Event)

    events = (
        event("Admitted", None, "2026-11-22T09:00:00Z"),
        event("QueueBlocked", "2026-11-22T08:30:00Z", "2026-11-22T08:00:00Z"),
    )
    history = report_of(cluster(), events=events).history
    assert [(each.reason, each.count) for each in history] == [("QueueBlocked", 1), ("Admitted", 1)]


def test_a_gang_that_has_its_place_says_where() -> None:
    found = Snapshot(gangs=(gang("g", "Running", reason="Running", placement=placement(b=1, a=2)),))
    report = report_of(found, ())
    assert (report.waits, dict(report.nodes), report.helps) == (False, {"a": 2, "b": 1}, ())


def test_why_each_cluster_refuses_a_gang_is_told_in_a_line_until_one_has_it() -> None:
    asked = {
        "attempt": 2,
        "term": 1,
        "phase": "Asked",
        "refusals": [
            {"cluster": "east", "message": "1 of 2 workers fit"},
            {"cluster": "west", "message": "it is not connected"},
        ],
    }
    nowhere = {"": 2}
    reserved = placement()
    reserved["podSets"][0]["assignments"][0]["nodes"] = nowhere
    status = {"reason": "QuotaReserved", "placement": reserved}
    found = gang("far", "QuotaReserved", dispatch=asked, **status)
    report = why_report(Snapshot(gangs=(found,)), Case(found))
    assert (report.cluster, report.nodes) == ("", {})
    assert dict(report.refused_by) == {"east": "1 of 2 workers fit", "west": "it is not connected"}
    runs = gang("far", "Running", dispatch={**asked, "phase": "Started", "cluster": "west"})
    report = why_report(Snapshot(gangs=(runs,)), Case(runs))
    assert (report.cluster, dict(report.refused_by)) == ("west", {})
