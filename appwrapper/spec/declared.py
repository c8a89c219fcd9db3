"""Reads the pods that a user declares for an item: podSets, or sizes in custompodresources."""

from collections.abc import Iterator
from dataclasses import dataclass

from appwrapper.spec.faults import MOST_POD_SETS, MOST_PODS, Fault
from appwrapper.spec.kinds import PodsOfKind, Reading, replicas_and_template
from appwrapper.spec.paths import Path, is_pod_template, parse, pod_templates, written
from kube.objects.app_wrapper import CustomPodResources, DeclaredPodSet

COUNT = f"a whole number from 0 to {MOST_PODS}"


@dataclass(frozen=True, slots=True)
class Said:
    """What stands beside a wrapped object; `pod_sets` is None in MCAD's generation."""

    pod_sets: tuple[DeclaredPodSet, ...] | None
    sizes: tuple[CustomPodResources, ...]


def pods_of_unknown(said: Said, reading: Reading, notices: list[str]) -> list[PodsOfKind]:
    """Take what the user says of the pods, or what MCAD would see."""
    if said.pod_sets:
        return [*_declared(said.pod_sets, reading)]
    custom = said.sizes[:MOST_POD_SETS]
    if said.pod_sets is None and (pods := replicas_and_template(reading)) is not None:
        return [pods]
    templates = [*pod_templates(reading.found)]
    if custom:
        return [*_of_sizes(custom, templates)]
    if templates:
        kind, declare = (
            reading.at("kind"),
            "custompodresources" if said.pod_sets is None else "podSets",
        )
        notices.append(
            f"{reading.where}: how many pods a {kind} has is not known: name them in {declare}"
        )
    return []


def _declared(declared: tuple[DeclaredPodSet, ...], reading: Reading) -> Iterator[PodsOfKind]:
    seen: set[Path] = set()
    for index, each in enumerate(declared):
        path, count = parse(each.path), 1 if each.replicas is None else each.replicas
        field = f"podSets[{index}]"
        if path is None or not is_pod_template(reading.at(*path)) or path in seen:
            allowed = "the path of a pod template, such as template.spec.template, each once"
            reading.faults.append(Fault(reading.where, f"{field}.path", each.path, allowed))
        elif not 0 <= count <= MOST_PODS:
            reading.faults.append(Fault(reading.where, f"{field}.replicas", str(count), COUNT))
        else:
            yield PodsOfKind(path, count, count, "" if len(declared) == 1 else str(index))
        seen |= {path} if path is not None else set()


def _of_sizes(
    custom: tuple[CustomPodResources, ...], templates: list[Path]
) -> Iterator[PodsOfKind]:
    """Take one pod set for each entry; templates are theirs where there are as many."""
    paths: list[Path | None] = (
        [*templates] if len(templates) == len(custom) else [None] * len(custom)
    )
    for index, (each, path) in enumerate(zip(custom, paths, strict=True)):
        count = min(max(each.replicas, 0), MOST_PODS)
        yield PodsOfKind(path, count, count, "" if len(custom) == 1 else str(index))


def compare(said: Said, known: list[PodsOfKind], reading: Reading, notices: list[str]) -> None:
    """Hold what is declared against what the kind makes, which counts."""
    counts = {each.path: each.count for each in known}
    allowed = ", ".join(written(each.path) for each in known if each.path is not None)
    for index, each in enumerate(said.pod_sets or ()):
        path = parse(each.path)
        if path is None or path not in counts:
            field = f"podSets[{index}].path"
            fault = Fault(reading.where, field, each.path, allowed[:500] or "none of this kind")
            reading.faults.append(fault)
        elif each.replicas is not None and each.replicas != counts[path]:
            notices.append(
                f"{reading.where}: podSets[{index}].replicas: {each.replicas} differs from the "
                f"{counts[path]} pods that its {reading.at('kind')} makes, which count"
            )
