"""Finds unknown keys below muster.dev/, and the known key that is nearest.

A key with a typing error would be ignored in silence, and a gang would start with another minimum
than its owner asked for. Tenants write these keys, so messages about them are bounded.
"""

from difflib import get_close_matches
from heapq import nsmallest

from kube.objects import names
from kube.objects.base import Labels

PREFIX = f"{names.GROUP}/"

ANYWHERE = frozenset((names.OPT_IN, names.QUEUE, names.PRIORITY_CLASS))
"""Keys that are read as a label and as an annotation."""

ANNOTATIONS = frozenset(
    (
        names.MIN_REPLICAS,
        names.TOPOLOGY_REQUIRED,
        names.TOPOLOGY_PREFERRED,
        names.REPLICA_TOPOLOGY_REQUIRED,
        names.EXPECTED_DURATION,
        names.LAST_CHECKPOINT,
        names.CREATE_PODS,
        names.GROWTH,
        names.RETRY,
        names.TOGETHER,
        names.TOGETHER_SIZE,
        names.TOGETHER_END,
        names.TOGETHER_TOPOLOGY,
    )
)
"""Keys that are read as an annotation only: their values need not be valid as those of labels."""

LABELS = frozenset((names.HEAD_FAULT_TOLERANCE,))
"""Keys that are read as a label only: rules of the API server select by them."""

OF_COPIES = frozenset((names.MADE_FOR, names.MANAGER, names.ORIGIN, names.SENT))
"""Keys that the dispatcher writes on what it creates on another cluster."""

WRITTEN = OF_COPIES | frozenset(
    (
        names.FENCE,
        names.RELEASED,
        names.SUSPENDED_FOR,
        names.TOLD,
        names.HELD,
        names.WOKEN,
        names.NODES_FOR,
        names.NODES_ASKED,
        names.NODES_ATTEMPT,
    )
)
"""Keys that Muster writes itself."""

WRAPPED = frozenset(
    (
        names.APP_WRAPPER,
        names.APP_WRAPPER_UID,
        names.APP_WRAPPER_GROUP,
        names.POD_SET,
        names.CREATED_BY,
        names.DISPATCHED,
    )
)
"""Keys of AppWrappers, and of what is made for them."""

KNOWN = ANYWHERE | ANNOTATIONS | LABELS | WRITTEN | WRAPPED

OF_KUBERAY = frozenset((names.RAY_NO_OTHER_HEAD,))
"""Keys of KubeRay that say what it does with pods."""

KEYS_NAMED = 3
LONGEST_KEY = 80


def keys_of_use(written: Labels) -> list[str]:
    """Name the labels or annotations to keep: known keys, and unknown ones for a message.

    Keys by which KubeRay decides about pods are kept too, and one unknown key more than a message
    names, so that it can say that there are more.
    """
    ours = [key for key in written if key.startswith(PREFIX)]
    unknown = nsmallest(KEYS_NAMED + 1, (key for key in ours if key not in KNOWN))
    of_kuberay = (key for key in written if key in OF_KUBERAY)
    return [*(key for key in ours if key in KNOWN), *unknown, *of_kuberay]


def unknown_keys(labels: Labels, annotations: Labels) -> str:
    """Say which keys are not understood, the first few by name; empty where all are."""
    stray = {key for key in labels if key in ANNOTATIONS}
    stray |= {key for key in annotations if key in LABELS}
    unknown = {key for key in (*labels, *annotations) if key.startswith(PREFIX)} - KNOWN
    first = nsmallest(KEYS_NAMED, stray | unknown)
    said = [_misplaced(key) if key in stray else _unknown(key) for key in first]
    if any(key not in stray and not _near(key) for key in first):
        said.append(f"those are {PREFIX} and {', '.join(_WRITTEN_BY_USERS)}")
    more = len(stray | unknown) > len(first)
    return "; ".join([*said, *(["and more"] if more else [])])


def _misplaced(key: str) -> str:
    if key in LABELS:
        return f"the annotation {key} is not read; write it as a label"
    return f"the label {key} is not read; write it as an annotation"


def _unknown(key: str) -> str:
    near = _near(key)
    said = f"{_shown(key)} is not a key of Muster"
    return f"{said}; did you mean {PREFIX}{near[0]}?" if near else said


def _near(key: str) -> list[str]:
    """Return the key that a typing error may have been made in."""
    return get_close_matches(_shown(key).removeprefix(PREFIX), _WRITTEN_BY_USERS, n=1)


def _shown(key: str) -> str:
    return key if len(key) <= LONGEST_KEY else f"{key[:LONGEST_KEY]}..."


_WRITTEN_BY_USERS = sorted(key.removeprefix(PREFIX) for key in ANYWHERE | ANNOTATIONS | LABELS)
