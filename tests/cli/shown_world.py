"""The small cluster whose outputs docs/cli.md shows; its messages are those of a real run."""

from cli.report.objects import Event
from tests.cli.fake_reader import FakeReader
from tests.cli.objects import GPU, Json, gang, node, placement, pod, queue, read

NOW = "2026-11-22T07:30:00Z"
H100 = {"nvidia.com/gpu.product": "h100"}

_FIT = (
    "1 of 3 workers fit beside headgroup: each needs 8 nvidia.com/gpu on one node, the gang 24 in "
    "all; 8 are free, and those that fit leave 0 (left out: 1 is cordoned). 12 of 24 "
    "nvidia.com/gpu are held by RayCluster team/train"
)
_QUOTA = (
    "queue product can hold at most 2 nvidia.com/gpu with all that it may borrow, and the gang "
    "needs 4 at once"
)
_SHORTAGE = {
    "resource": GPU,
    "each": "8",
    "needed": "24",
    "free": "8",
    "left": "0",
    "largest": "0",
    "total": "24",
}


def world() -> FakeReader:
    """Four nodes with GPUs, one of them cordoned; one gang runs, one starts, two wait."""
    nodes = [node(f"gpu-{at}", labels=H100) for at in range(3)]
    workers = [("gpu-0", 1), ("gpu-0", 2), ("gpu-1", 3)]
    mine = [pod(f"tune-w-{at}", "", 8, of="tune", gated=True, selector=H100) for at in range(1, 4)]
    return FakeReader(
        {
            "nodes": [*nodes, node("gpu-3", labels=H100, unschedulable=True), node("cpu", gpus=0)],
            "pods": [pod(f"train-w-{at}", on, 4, of="train", pinned=on) for on, at in workers],
            "pods ray.io/cluster=tune": mine,
            "gangs": [
                gang("tune", created="2026-11-22T07:18:00Z", **_waiting(_SHORTAGE, _FIT)),
                _quota(),
                gang(
                    "train",
                    "Running",
                    created="2026-11-22T05:10:00Z",
                    reason="Running",
                    message="the minimum is ready",
                    ready="4/4",
                    placement=placement("research", 4, gpu_0=2, gpu_1=1),
                ),
                gang(
                    "serve",
                    "Admitted",
                    created="2026-11-22T07:29:50Z",
                    reason="Admitted",
                    message="2 pods placed on 1 node",
                    ready="0/2",
                    placement=placement("research", 4, gpu_1=1),
                ),
            ],
            "gangqueues": _queues(),
            "events": _events(),
        }
    )


def _waiting(shortage: Json, message: str) -> Json:
    workers = {"name": "workers", "count": 3, "minimum": 3, "gated": 3, "shortage": shortage}
    head = {"name": "headgroup", "count": 1, "minimum": 1, "gated": 1}
    return {
        "position": 1,
        "ready": "0/4",
        "reason": "InsufficientResources",
        "message": message,
        "podSets": [
            {**head, "reason": "InsufficientResources", "message": "1 of 1 fit"},
            {**workers, "reason": "InsufficientResources", "message": "1 of 3 fit"},
        ],
    }


def _quota() -> object:
    return gang(
        "eval",
        queue="product",
        created="2026-11-22T07:24:00Z",
        position=1,
        ready="0/2",
        reason="QuotaExceeded",
        message=_QUOTA,
    )


def _queues() -> list[object]:
    return [
        queue("company", usage={GPU: "16"}),
        queue(
            "research",
            {GPU: 20},
            "company",
            pending=1,
            admitted=2,
            usage={GPU: "16"},
            reserved={GPU: "4"},
            holes=_holes(),
        ),
        queue(
            "product",
            {GPU: 2},
            "company",
            pending=1,
            usage={GPU: "0"},
            rules={"borrowingLimit": {GPU: 0}},
        ),
    ]


def _holes() -> list[Json]:
    pods = {1: 8, 2: 4, 4: 2, 8: 1}
    return [{"resource": GPU, "size": n, "pods": m, "atMost": m} for n, m in pods.items()]


def _events() -> list[Event]:
    event = {
        "metadata": {"name": "tune.1", "namespace": "team"},
        "type": "Warning",
        "reason": "InsufficientResources",
        "message": _FIT,
        "count": 2,
        "firstTimestamp": "2026-11-22T07:18:01Z",
        "lastTimestamp": "2026-11-22T07:29:50Z",
    }
    return [read(event, Event)]
