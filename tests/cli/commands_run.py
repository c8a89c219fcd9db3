"""A cluster for the tests of all commands, and every command."""

from cli.endings import NotAllowed
from tests.cli.objects import GPU, gang, node, placement, pod, queue

MESSAGE = "0 of 2 workers fit: each needs 8 nvidia.com/gpu on one node"


def cluster() -> dict[str, list[object]]:
    return {
        "gangs": [
            gang("train", position=1, reason="InsufficientResources", message=MESSAGE),
            gang("runs", "Running", placement=placement(gpus=8, a=1)),
        ],
        "gangqueues": [queue("research", {GPU: 16}, usage={GPU: "8"}, pending=1, admitted=1)],
        "nodes": [node("a"), node("b")],
        "pods": [pod("runs-w", "a", 8, of="runs", pinned="a")],
    }


NO = NotAllowed("not allowed to read these")
