"""Stands in for PriorityClasses and RuntimeClasses that may not be read; they change nothing."""

from collections.abc import Callable, Collection, Iterable, Iterator

from cli.fitting.asked import Asked
from coordinator.messages.events import AdmissionRuleSeen, Event, PriorityClassSeen
from kube.objects.admission import RuntimeClass
from kube.objects.base import ObjectMeta
from kube.objects.core import PriorityClass
from kube.objects.pod_templates import TemplateSpec
from kube.ray.pod_templates import UnreadableTemplate, head_template, worker_template


def stand_ins(asked: Iterable[Asked], missing: Collection[str]) -> Iterator[Event]:
    """Yield classes of the kinds that are missing, of the names that templates have."""
    specs = [spec for each in asked for spec in _specs(each)]
    if "priorityclasses" in missing:
        for name in _names(specs, lambda spec: spec.priority_class_name):
            yield PriorityClassSeen(PriorityClass(metadata=ObjectMeta(name=name)))
    if "runtimeclasses" in missing:
        for name in _names(specs, lambda spec: spec.runtime_class_name or ""):
            yield AdmissionRuleSeen(RuntimeClass(metadata=ObjectMeta(name=name)))


def _names(specs: Iterable[TemplateSpec], of: Callable[[TemplateSpec], str]) -> list[str]:
    return sorted({of(each) for each in specs} - {""})


def _specs(asked: Asked) -> Iterator[TemplateSpec]:
    spec = asked.cluster.spec
    try:
        found = [head_template(spec), *map(worker_template, spec.worker_group_specs)]
    except UnreadableTemplate:
        return  # which is what is then said of it
    yield from (each.template.spec for each in found if each is not None)
