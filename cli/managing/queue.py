"""Writes GangQueues, new ones and existing ones, with what a form asks for."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from cli.endings import Unusable
from cli.managing.forms import QueueForm
from cli.managing.values import check_amount, check_one_of, check_queue, part
from kube.objects import names

Json = dict[str, Any]

NAMESPACE: Final = "kubernetes.io/metadata.name"
_AMOUNTS: Final = {
    "quota": "quota",
    "borrowing_limit": "borrowingLimit",
    "lending_limit": "lendingLimit",
}
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "ordering": ("Priority", "FIFO"),
    "whenBlocked": ("Strict", "BestEffort", "Backfill"),
    "stop": ("None", "Hold", "HoldAndDrain"),
    "createPods": ("Always", "WhenAdmitted"),
}
_STOPS: Final[Mapping[str, tuple[str, ...]]] = {
    "withinQueue": ("Never", "LowerPriority"),
    "reclaim": ("Never", "LowerPriority", "Any"),
    "whileBorrowing": ("Never", "LowerPriority"),
}


def new_queue(name: str, form: QueueForm) -> Json:
    """Return a GangQueue with what a form asks for."""
    bare = {
        "apiVersion": names.API_VERSION,
        "kind": "GangQueue",
        "metadata": {"name": check_queue("NAME", name)},
        "spec": {},
    }
    return changed_queue(bare, form)


def changed_queue(queue: Mapping[str, Any], form: QueueForm) -> Json:
    """Return a GangQueue with what a form asks for; raises Unusable for what cannot be."""
    found: Json = copy.deepcopy(dict(queue))
    spec: Json = found.setdefault("spec", {})
    if form.parent:
        spec["parent"] = check_queue("parent", form.parent)
    elif form.parent is not None:
        spec.pop("parent", None)
    for field, key in _AMOUNTS.items():
        _set_amounts(spec, key, getattr(form, field))
    _set_labels(spec, "nodeSelector", form.node_labels)
    _select(spec, form)
    _choose(spec, form)
    if spec.get("parent") == found["metadata"]["name"]:
        raise Unusable(f"parent: {spec['parent']}; allowed: another queue")
    return found


def _set_amounts(spec: Json, key: str, amounts: Mapping[str, str]) -> None:
    checked = {
        resource: check_amount(f"{key}: {resource}", resource, text) if text else ""
        for resource, text in amounts.items()
    }
    _set_labels(spec, key, checked)


def _set_labels(spec: Json, key: str, said: Mapping[str, str]) -> None:
    """Set what has a text, and take away what has none."""
    if said:
        both = {**part(spec, key), **said}
        spec[key] = {name: value for name, value in both.items() if value != ""}


def _select(spec: Json, form: QueueForm) -> None:
    """Say which namespaces may use the queue: by name, by label, or by both."""
    selector = part(spec, "namespaceSelector")
    if form.namespaces is not None:
        others = [
            each for each in selector.get("matchExpressions") or () if each["key"] != NAMESPACE
        ]
        mine = {"key": NAMESPACE, "operator": "In", "values": [*form.namespaces]}
        selector = {**selector, "matchExpressions": [*others, mine]}
    if form.namespace_labels:
        _set_labels(selector, "matchLabels", form.namespace_labels)
    if form.namespaces is not None or form.namespace_labels:
        spec["namespaceSelector"] = selector


def _choose(spec: Json, form: QueueForm) -> None:
    said = {
        "ordering": form.ordering,
        "whenBlocked": form.when_blocked,
        "stop": form.stop,
        "createPods": form.create_pods,
    }
    for key, value in said.items():
        if value is not None:
            spec[key] = check_one_of(key, value, _CHOICES[key])
    stops = {
        "withinQueue": form.within_queue,
        "reclaim": form.reclaim,
        "whileBorrowing": form.while_borrowing,
    }
    for key, value in stops.items():
        if value is not None:
            chosen = check_one_of(key, value, _STOPS[key])
            spec["preemption"] = {**part(spec, "preemption"), key: chosen}
