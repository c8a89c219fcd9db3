"""Works out how objects ended that Kubernetes may delete some time after their end.

An outcome that was read counts, and is written down for the next leader. If an object was gone
before it was read, its pods may show that it succeeded. They cannot show that it failed, because it
may have tried again.
"""

from collections.abc import Mapping

from appwrapper.completion import Completion, ended
from appwrapper.spec.paths import Json, at
from appwrapper.spec.wrapped import Item

_TTL = ("spec", "ttlSecondsAfterFinished")
_KINDS = {
    ("batch", "Job"): ("Complete", "Failed"),
    ("batch.volcano.sh", "Job"): ("Complete", "Failed"),
    ("jobset.x-k8s.io", "JobSet"): ("Completed", "Failed"),
}


def goes_by_itself(item: Item) -> bool:
    """Say whether an object is deleted once it has finished."""
    return item.key[:2] in _KINDS and at(item.found, _TTL) is not None


def outcome(
    item: Item, status: Json | None, noted: Completion | None, completed: Mapping[str, int]
) -> Completion | None:
    """Return how an object ended that goes by itself; None where it runs, or that is not known.

    `noted` is what was read of it before, `completed` counts pods that succeeded by pod set.
    """
    if not goes_by_itself(item):
        return None
    if status is not None:
        found = ended(item, status)
        return found if found is not Completion.RUNNING else None
    if noted is None and _have_all_succeeded(item, completed):
        return Completion.SUCCEEDED
    return noted


def status_of_end(item: Item, end: Completion) -> Json:
    """Return the status that an object had at its end, as far as that is judged."""
    kind = _KINDS[item.key[:2]][end is Completion.FAILED]
    return {"conditions": [{"type": kind, "status": "True"}]}


def _have_all_succeeded(item: Item, completed: Mapping[str, int]) -> bool:
    """Say whether as many pods have succeeded as are made in all."""
    asked = [(each.name, each.completions or each.count) for each in item.pod_sets]
    return bool(asked) and all(completed.get(name, 0) >= most for name, most in asked)
