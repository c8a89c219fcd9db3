"""Admits a pod that does not exist yet, as a stock API server and Muster's webhook admit it.

The order is that of the API server: defaults of the pod itself, LimitRange, Priority,
DefaultTolerationSeconds, RuntimeClass, the webhook's gate, the keys that selectors match, and then
the checks. Webhooks of others and plugins that are off by default are not known here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from kube.codec.fields import ByResource, InvalidObject, quantity, read_amounts
from kube.foreseen.amounts import (
    Side,
    all_containers,
    container_amounts,
    container_total,
    pod_total,
)
from kube.foreseen.limit_ranges import refusal, with_defaults
from kube.objects import names
from kube.objects.admission import LimitRange, RuntimeClass, RuntimeScheduling
from kube.objects.base import Labels, LabelSelector, Quantities, SelectorRequirement
from kube.objects.core import PriorityClass, SchedulingGate
from kube.objects.pod_templates import (
    TemplateAffinity,
    TemplateAffinityTerm,
    TemplateContainer,
    TemplatePod,
    TemplatePodAffinity,
    TemplatePort,
    TemplateResources,
    TemplateSpec,
    TemplateToleration,
)
from scheduling.model.amounts import CPU, MEMORY

_EVICTING = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_NO_EXECUTE = "NoExecute"
_SECONDS = 300


class NotAdmitted(ValueError):  # noqa: N818 - the noun of what happens to the pod
    """The API server would refuse the pod, and why."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What the pods of a namespace are admitted by; classes by name."""

    limit_ranges: tuple[LimitRange, ...] = ()
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict)
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)


def admitted(pod: TemplatePod, by: Admission) -> TemplatePod:
    """Return a pod as it is once admitted; raise NotAdmitted, or InvalidObject for an amount."""
    spec = with_defaults(_pod_defaults(pod.spec), by.limit_ranges)
    spec = _with_priority(spec, by.priority_classes)
    spec = replace(spec, tolerations=(*spec.tolerations, *_usual_tolerations(spec.tolerations)))
    spec = _gated(_with_runtime(spec, by.runtime_classes))
    spec = replace(spec, affinity=_with_label_keys(spec.affinity, pod.metadata.labels))
    _check_limits(spec)
    if fault := refusal(spec, by.limit_ranges):
        raise NotAdmitted(fault)
    return replace(pod, spec=spec)


# ---- defaults of a pod


def _pod_defaults(spec: TemplateSpec) -> TemplateSpec:
    spec = replace(
        spec,
        containers=tuple(_container(each, spec) for each in spec.containers),
        init_containers=tuple(_container(each, spec) for each in spec.init_containers),
    )
    whole = spec.resources
    return spec if whole is None else replace(spec, resources=_pod_level(spec, whole))


def _container(found: TemplateContainer, spec: TemplateSpec) -> TemplateContainer:
    """Take limits for the requests that are absent, and ports of the host where they are shared."""
    own = found.resources
    asked = replace(own, requests={**own.limits, **own.requests})
    return replace(found, resources=asked, ports=tuple(_port(p, spec) for p in found.ports))


def _port(found: TemplatePort, spec: TemplateSpec) -> TemplatePort:
    on_host = found.host_port or (found.container_port if spec.host_network else 0)
    return replace(found, host_port=on_host, protocol=found.protocol or "TCP")


def _pod_level(spec: TemplateSpec, whole: TemplateResources) -> TemplateResources:
    """Fill in the pod's own requests where it has limits: from its containers, else from those."""
    if not whole.limits:
        return whole
    sums = container_total(spec, Side.REQUESTS).items()
    asked = {name: quantity(name, n) for name, n in sums if name in (CPU, MEMORY)}
    of_limits = {name: n for name, n in whole.limits.items() if _is_pod_level(name)}
    return replace(whole, requests={**of_limits, **asked, **whole.requests})


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


# ---- admission plugins


def _with_priority(spec: TemplateSpec, classes: Mapping[str, PriorityClass]) -> TemplateSpec:
    name = spec.priority_class_name or _default_class(classes)
    if name and name not in classes:
        raise NotAdmitted(f'priorityClassName: there is no PriorityClass "{name}"')
    value = classes[name].value if name else 0
    if spec.priority not in (None, value):
        of_class = f"{value}, as priorityClassName has it"
        raise NotAdmitted(f"priority: {spec.priority} is not valid; allowed: {of_class}, or none")
    return replace(spec, priority_class_name=name, priority=value)


def _default_class(classes: Mapping[str, PriorityClass]) -> str:
    """Name the class of pods that name none; of several the lowest counts."""
    usual = [(each.value, name) for name, each in classes.items() if each.global_default]
    return min(usual)[1] if usual else ""


def _usual_tolerations(found: Iterable[TemplateToleration]) -> Iterator[TemplateToleration]:
    """Let a pod stay for a time on a node that is not ready, unless it says something of that."""
    present = [(each.key, each.effect) for each in found]
    for key in _EVICTING:
        if not any(k in ("", key) and e in ("", _NO_EXECUTE) for k, e in present):
            yield TemplateToleration(key, "Exists", "", _NO_EXECUTE, _SECONDS)


def _with_runtime(spec: TemplateSpec, classes: Mapping[str, RuntimeClass]) -> TemplateSpec:
    runtime = classes.get(spec.runtime_class_name or "")
    if spec.runtime_class_name is not None and runtime is None:
        raise NotAdmitted(f'runtimeClassName: there is no RuntimeClass "{spec.runtime_class_name}"')
    overhead = runtime.overhead.pod_fixed if runtime and runtime.overhead else {}
    if spec.overhead and _read(spec.overhead) != _read(overhead):
        raise NotAdmitted("overhead: allowed is what the RuntimeClass says, or none")
    spec = replace(spec, overhead=overhead)
    scheduling = runtime.scheduling if runtime else None
    return spec if scheduling is None else _with_runtime_terms(spec, scheduling)


def _read(overhead: Quantities) -> ByResource:
    return read_amounts(overhead, "spec.overhead")


def _with_runtime_terms(spec: TemplateSpec, added: RuntimeScheduling) -> TemplateSpec:
    for key, value in added.node_selector.items():
        if spec.node_selector.get(key, value) != value:
            allowed = f'"{value}", as the RuntimeClass has it'
            said = f'"{spec.node_selector[key]}" is not valid; allowed: {allowed}'
            raise NotAdmitted(f"nodeSelector[{key}]: {said}")
    return replace(
        spec,
        node_selector={**spec.node_selector, **added.node_selector},
        tolerations=_merged((*spec.tolerations, *added.tolerations)),
    )


def _merged(found: tuple[TemplateToleration, ...]) -> tuple[TemplateToleration, ...]:
    """Leave out each toleration that another covers; of equal ones the first stays."""
    kept: list[TemplateToleration] = []
    for at, each in enumerate(found):
        wider = (other for other in found[at + 1 :] if other != each)
        if not any(_covers(other, each) for other in (*kept, *wider)):
            kept.append(each)
    return tuple(kept)


def _covers(wide: TemplateToleration, narrow: TemplateToleration) -> bool:
    if wide == narrow:
        return True
    any_key = not wide.key and wide.operator == "Exists"
    if (wide.key != narrow.key and not any_key) or wide.effect not in ("", narrow.effect):
        return False
    return _lasts(wide, narrow) and _same_values(wide, narrow)


def _lasts(wide: TemplateToleration, narrow: TemplateToleration) -> bool:
    most, asked = wide.toleration_seconds, narrow.toleration_seconds
    if wide.effect != _NO_EXECUTE or most is None:
        return True
    return asked is not None and asked <= most


def _same_values(wide: TemplateToleration, narrow: TemplateToleration) -> bool:
    if wide.operator in ("", "Equal"):
        return narrow.operator == "Equal" and narrow.value == wide.value
    return wide.operator == "Exists"


def _gated(spec: TemplateSpec) -> TemplateSpec:
    if any(gate.name == names.GATE for gate in spec.scheduling_gates):
        return spec
    return replace(spec, scheduling_gates=(*spec.scheduling_gates, SchedulingGate(names.GATE)))


# ---- what the API server merges and checks at the end


def _with_label_keys(found: TemplateAffinity | None, labels: Labels) -> TemplateAffinity | None:
    if found is None:
        return None
    return replace(
        found,
        pod_affinity=_with_keys(found.pod_affinity, labels),
        pod_anti_affinity=_with_keys(found.pod_anti_affinity, labels),
    )


def _with_keys(found: TemplatePodAffinity | None, labels: Labels) -> TemplatePodAffinity | None:
    if found is None:
        return None
    return replace(found, required=tuple(_term(each, labels) for each in found.required))


def _term(found: TemplateAffinityTerm, labels: Labels) -> TemplateAffinityTerm:
    """Add to a selector the pod's own values of the keys that it is to match, or not."""
    selector = found.label_selector
    if selector is None:
        return found
    both = ((found.match_label_keys, "In"), (found.mismatch_label_keys, "NotIn"))
    added = tuple(
        SelectorRequirement(key, operator, (labels[key],))
        for keys, operator in both
        for key in keys
        if key in labels
    )
    expressions = (*selector.match_expressions, *added)
    return replace(found, label_selector=LabelSelector(selector.match_labels, expressions))


def _check_limits(spec: TemplateSpec) -> None:
    """Refuse amounts that are none, and requests above a limit, also one of a LimitRange."""
    for side in Side:
        pod_total(spec, side)
    for each, where in all_containers(spec):
        most = container_amounts(each, Side.LIMITS, where)
        for name, asked in container_amounts(each, Side.REQUESTS, where).items():
            if asked > most.get(name, asked):
                named = f"{where}[{each.name}].resources.requests[{name}]"
                limit = f"at most {quantity(name, most[name])}, the limit"
                raise InvalidObject(named, quantity(name, asked), limit)
