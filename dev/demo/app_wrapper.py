"""The scene of two AppWrappers, as the documents of KubeRay and of MCAD walk through it."""

from __future__ import annotations

from demo.claims import Claim
from demo.manifests import autoscaled_ray_cluster, filler, mcad_app_wrapper, named
from demo.stage import Stage
from testbed.api import Json
from testbed.history import Gang
from testbed.muster import wait_app_wrappers_trusted
from testbed.nodes import NodeSpec
from testbed.waiting import wait_until

_FIRST, _SECOND = "raycluster-complete", "raycluster-complete-1"
_SIZE = 2
_NODE = NodeSpec("eight-cpus-6", cpus=8, memory="8118372Ki")
_SYSTEM, _USED = "2550m", 6050
"""What the pods of the system take of the node, and what is taken beside the first Ray cluster."""

_NO_ROOM = "Insufficient resources to dispatch AppWrapper."
_PARTS = (("ConfigMap", "code"), ("Secret", "token"))


def wrapped_pair(stage: Stage) -> list[Claim]:
    """Play two AppWrappers that do not both fit: the second starts when the first is deleted."""
    stage.set_up("scene-6", [_NODE])
    stage.create_pod(filler("system", _NODE.name, {"cpu": _SYSTEM}))
    wait_app_wrappers_trusted(stage.cluster)
    first = stage.create_app_wrapper(_app_wrapper(stage, _FIRST))
    stage.wait_whole(first, _SIZE)
    runs = _runs(stage, first)
    second = stage.create_app_wrapper(_app_wrapper(stage, _SECOND))
    waits = _waits(stage, second)
    stage.display.pause()
    return [*runs, *waits, *_follows(stage, first, second)]


def _app_wrapper(stage: Stage, name: str) -> Json:
    """A Ray cluster that scales itself, and what goes with it."""
    parts = [named(kind, f"{name}-{part}") for kind, part in _PARTS]
    cluster = autoscaled_ray_cluster(stage.cluster.samples, name, f"{name}-code")
    return mcad_app_wrapper(name, *parts, cluster)


def _runs(stage: Stage, first: Gang) -> list[Claim]:
    state = stage.app_wrapper_status(first)["state"]
    used = _cpu_used(stage)
    parts = _parts(stage, first)
    text = f"with it {len(parts)} of {len(_PARTS)} other items were created"
    runs = (state, used) == ("Running", _USED)
    return [
        Claim(f"{first[1]} is {state}: {used}m of 8 CPUs are used", holds=runs),
        Claim(text, holds=len(parts) == len(_PARTS)),
    ]


def _waits(stage: Stage, second: Gang) -> list[Claim]:
    state, condition = _wait_backoff(stage, second)
    reason, message = condition["reason"], condition["message"]
    parts = _parts(stage, second)
    return [
        Claim(f"{second[1]} is {state}, {condition['type']}, {reason}", holds=state == "Pending"),
        Claim(f"with MCAD's message: {message}", holds=message == _NO_ROOM),
        Claim(f"and Muster's, in numbers: {stage.wait_refused(second)}"),
        *stage.has_no_pods(second),
        Claim(f"{len(parts)} of its other items exist", holds=not parts),
    ]


def _follows(stage: Stage, first: Gang, second: Gang) -> list[Claim]:
    deleted = stage.delete_app_wrapper(first)
    whole = stage.wait_whole(second, _SIZE)
    wait_until(lambda: not _parts(stage, first), "what was wrapped with the first to be gone")
    pair = {first: _SIZE, second: _SIZE}
    return [
        Claim(f"{second[1]} fully Running {whole - deleted:.2f} s after that, its pods made anew"),
        Claim("the ConfigMap and the Secret that were wrapped with the first are gone"),
        stage.never_partial(pair),
        stage.never_together(pair),
    ]


def _wait_backoff(stage: Stage, gang: Gang) -> tuple[str, Json]:
    """Wait until MCAD's words are those of an AppWrapper that was refused."""

    def told() -> tuple[str, Json] | None:
        status = stage.app_wrapper_status(gang)
        last = (status.get("conditions") or [{}])[-1]
        return (status["state"], last) if last.get("type") == "Backoff" else None

    return wait_until(told, f"{gang[1]} to back off", seen=lambda: stage.app_wrapper_status(gang))


def _parts(stage: Stage, gang: Gang) -> list[str]:
    """The items of an AppWrapper that exist, but for the Ray cluster."""
    core = f"/api/v1/namespaces/{gang[0]}"
    paths = (f"{core}/{kind.lower()}s/{gang[1]}-{part}" for kind, part in _PARTS)
    return [path for path in paths if stage.cluster.api.exists(path)]


def _cpu_used(stage: Stage) -> int:
    """Thousandths of a CPU that the containers of bound pods ask for."""
    pods = stage.cluster.api.get(f"/api/v1/namespaces/{stage.namespace}/pods")["items"]
    containers = (each for pod in pods if _is_bound(pod) for each in pod["spec"]["containers"])
    return sum(_thousandths(each["resources"]["requests"]["cpu"]) for each in containers)


def _is_bound(pod: Json) -> bool:
    return "nodeName" in pod["spec"]


def _thousandths(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
