"""Says whether an AppWrapper is finished, by the status of its objects.

MCAD goes by completionstatus alone: an AppWrapper in which no item has it runs until it is deleted.
In CodeFlare's generation the kinds that end say so themselves.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from appwrapper.spec.paths import Json, at
from appwrapper.spec.wrapped import Generation, Item, Wrapped

Statuses = Mapping[tuple[str, str, str], Json | None]
"""`status` of the created objects by `Item.key`; None, or absent, where there is none."""


class Completion(StrEnum):
    """How far an AppWrapper is; HOLD: all that is asked for is complete, and pods still run."""

    RUNNING = "Running"
    HOLD = "Hold"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


def completion(wrapped: Wrapped, statuses: Statuses, *, pods_left: int) -> Completion:
    """Judge an AppWrapper; `pods_left` are those of its pods that are pending or running."""
    if wrapped.generation is Generation.MCAD:
        return _by_conditions(wrapped.items, statuses, pods_left)
    ends = [ended(each, statuses.get(each.key)) for each in wrapped.items]
    if Completion.FAILED in ends:
        return Completion.FAILED
    with_pods = [end for end, item in zip(ends, wrapped.items, strict=True) if item.pod_sets]
    done = bool(with_pods) and all(end is Completion.SUCCEEDED for end in with_pods)
    return Completion.SUCCEEDED if done else Completion.RUNNING


def _by_conditions(items: Iterable[Item], statuses: Statuses, pods_left: int) -> Completion:
    asked = [each for each in items if words(each.completion)]
    if not asked or not all(has_condition(each, statuses.get(each.key)) for each in asked):
        return Completion.RUNNING
    return Completion.HOLD if pods_left else Completion.SUCCEEDED


def words(completionstatus: str) -> list[str]:
    """Split completionstatus; as parts of types of conditions, in any case."""
    return [each.strip().lower() for each in completionstatus.split(",") if each.strip()]


def has_condition(item: Item, status: Json | None) -> bool:
    """Say whether an object has a condition that its completionstatus names.

    MCAD takes a condition for true whatever its status is; one that is "False" does not count here.
    """
    asked = words(item.completion)
    true = (each for each in _conditions(status) if at(each, ("status",)) != "False")
    types = [str(at(each, ("type",))).lower() for each in true]
    return any(word in kind for word in asked for kind in types)


def ended(item: Item, status: Json | None) -> Completion:
    """Say how an object ended by its own status; of kinds that never end it runs."""
    group, kind, _name = item.key
    if (group, kind) == ("", "Pod"):
        return _said(at(status, ("phase",)), "Succeeded", "Failed")
    if (group, kind) == ("ray.io", "RayJob"):
        return _ray_job(status)
    words = _ENDS.get((group, kind))
    if words is None:
        return Completion.RUNNING
    true = {
        str(at(each, ("type",))) for each in _conditions(status) if at(each, ("status",)) == "True"
    }
    if words[1] in true:
        return Completion.FAILED
    return Completion.SUCCEEDED if words[0] in true else Completion.RUNNING


def _ray_job(status: Json | None) -> Completion:
    """A try that failed is not the end while KubeRay makes another."""
    job, deployment = at(status, ("jobStatus",)), at(status, ("jobDeploymentStatus",))
    if deployment == "Failed":
        return Completion.FAILED
    if job == "SUCCEEDED":
        return Completion.SUCCEEDED
    ended = deployment == "Complete" and job in ("FAILED", "STOPPED")
    return Completion.FAILED if ended else Completion.RUNNING


def _said(word: Any, succeeded: str, failed: str) -> Completion:
    ends = {succeeded: Completion.SUCCEEDED, failed: Completion.FAILED}
    return ends.get(word, Completion.RUNNING) if isinstance(word, str) else Completion.RUNNING


def _conditions(status: Json | None) -> list[Any]:
    found = at(status, ("conditions",))
    return found if isinstance(found, list) else []


_ENDS = {
    ("batch", "Job"): ("Complete", "Failed"),
    ("jobset.x-k8s.io", "JobSet"): ("Completed", "Failed"),
    ("kubeflow.org", "PyTorchJob"): ("Succeeded", "Failed"),
}
"""The conditions by which objects say that they succeeded, or failed."""
