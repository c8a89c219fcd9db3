"""Reads the objects to judge: each as the RayCluster, or the stand-in, of its gang."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from appwrapper.spec.wrapped import Item
from cli.fitting.manifests import Manifest, as_new, pods_of
from cli.fitting.wrapped import gang_of, is_app_wrapper, items_of, notes_of, pods_of_items
from cli.imports.outcome import Fault, Source
from coordinator.gang.source import source_of
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import ObjectMeta, OwnerReference
from kube.objects.ray import RayCluster, RayJob, RayJobStatus
from kube.ray.gang_terms import queue_named
from kube.ray.gpu_sharing import sharing_in_words
from kube.ray.ray_cluster import Answer, essential, opt_in, resumed
from kube.ray.ray_owner import essential_job

T = TypeVar("T")

RAY_GROUP: Final = "ray.io"
SPECS: Final[Mapping[str, tuple[str, ...]]] = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
}
"""Where an object of each kind has the spec of its RayCluster."""

JOB_SPECS: Final = {"RayJob": ("spec",), "RayCronJob": ("spec", "jobTemplate")}
"""Where an object of each kind has the spec of its RayJob."""

DRAWN: Final = "~"
"""In no name of an object: what is asked about is never taken for what exists."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One object of the input. Its RayCluster is suspended: its templates are kept, as of those.

    Of an AppWrapper it is the stand-in, named as its Gang is, and `wrapped` what is created once it
    starts. `notes` say where it is judged otherwise than as it stands in the input. `job` is the
    RayJob that makes the RayCluster, for its submitter needs room too. `manifest` is what its user
    would create, `pods` has one pod of each pod set. `waits` says that it waits already.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    cluster: RayCluster
    notes: tuple[str, ...] = ()
    wrapped: tuple[Item, ...] = ()
    job: RayJob | None = None
    manifest: Manifest = field(default_factory=dict)
    pods: Mapping[str, Manifest] = field(default_factory=dict)
    waits: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def mounts_claims(self) -> bool:
        """Whether a pod may mount a volume of a claim."""
        return self._names(b"persistentVolumeClaim")

    @property
    def claims_devices(self) -> bool:
        """Whether a pod may claim devices."""
        return self._names(b"resourceClaims")

    def asks_for(self, resources: Iterable[str]) -> bool:
        """Whether a pod may ask for one of these resources."""
        return any(self._names(each.encode()) for each in resources)

    def _names(self, field: bytes) -> bool:
        spec = self.cluster.spec
        templates = (spec.head_group_spec, *(each.template for each in spec.worker_group_specs))
        return any(field in bytes(each) for each in templates)


def read_asked(sources: Iterable[Source], namespace: str) -> tuple[list[Asked], list[str]]:
    """Return what is asked about, and remarks on what is not; raises Fault where nothing is."""
    found, places, runs_elsewhere = [], [], []
    others: dict[str, list[str]] = {}
    for number, each in enumerate(sources):
        places.append(each.place)
        if selected := _selected_cluster(each):
            runs_elsewhere.append(f"{each.place}: {each.kind}: {selected}")
        elif each.group == RAY_GROUP and each.kind in SPECS:
            found.append(_read(each, namespace, number))
        elif is_app_wrapper(each):
            found.append(_read_wrapper(each, namespace, number))
        else:
            others.setdefault(_kind(each), []).append(each.place)
    if not found and not runs_elsewhere:
        where = f"{places[0]}: " if places else ""
        raise Fault(f"{where}there is no object to judge; allowed: {_kinds()}")
    named = _told_apart(found)
    _check_names(named)
    return named, [*map(_not_judged, others, others.values()), *runs_elsewhere]


def _not_judged(kind: str, places: Sequence[str]) -> str:
    """Say it once of all objects of a kind."""
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{places[0]}: {kind}{more}: not judged: only {_kinds()} are"


def namespaces_of(asked: Iterable[Asked]) -> Sequence[str]:
    """Return the namespaces that objects are in, by name."""
    return sorted({each.namespace for each in asked})


def queues_of(asked: Iterable[Asked]) -> set[str]:
    """Return the queues that objects name; the empty name is of those that name none."""
    return {queue_named(each.cluster.metadata) for each in asked}


def _kinds() -> str:
    return f"{', '.join(SPECS)} of {RAY_GROUP}, and AppWrapper"


def _kind(source: Source) -> str:
    return f"{source.kind}.{source.group}" if source.group else source.kind


def _told_apart(found: Sequence[Asked]) -> list[Asked]:
    """Number those that are to get the same generated name, as they get different ones."""
    seen = Counter[str]()
    told = []
    for each in found:
        seen[str(each)] += 1
        again = each.name.endswith(DRAWN) and seen[str(each)] > 1
        told.append(_numbered(each, seen[str(each)]) if again else each)
    return told


def _numbered(asked: Asked, number: int) -> Asked:
    cluster, name = asked.cluster, f"{asked.name}{number}"
    ours = cluster.metadata.name.replace(asked.name, name)
    named = replace(cluster, metadata=replace(cluster.metadata, name=ours))
    return dataclasses.replace(asked, name=name, cluster=named)


def _check_names(found: Sequence[Asked]) -> None:
    seen = set()
    for each in found:
        if str(each) in seen:
            raise Fault(f"{each}: there are two of it; allowed: each object once")
        seen.add(str(each))


def _read(source: Source, namespace: str, number: int) -> Asked:
    meta = _part(source, source.body, ("metadata",))
    spec = _part(source, source.body, SPECS[source.kind])
    body = {"metadata": _passed_on(source, meta), "spec": {**spec, "suspend": True}}
    cluster = _decoded(source, body, RayCluster)
    if not cluster.spec.head_group_spec or bytes(cluster.spec.head_group_spec) == b"null":
        where = ".".join(SPECS[source.kind])
        raise Fault(f"{source.place}: {source.kind}: {where}.headGroupSpec: absent")
    placed = _placed(cluster.metadata, meta, namespace, number)
    job = _job(source, placed) if source.kind in JOB_SPECS else None
    owners = (_controlled_by(job),) if job is not None else ()
    found = essential(replace(cluster, metadata=replace(placed, owner_references=owners)))
    version = str(source.body["apiVersion"])
    sharing = sharing_in_words(found.spec.gpu_sharing)
    notes = tuple(each for each in (*_notes(source), sharing) if each)
    asked = Asked(version, source.kind, placed.namespace, placed.name, found, notes, job=job)
    owner = (placed.name.removesuffix(DRAWN) or source.kind.lower()).rstrip("-")
    return _to_be_created(asked, source, pods_of(spec, owner, placed.namespace))


def _selected_cluster(source: Source) -> str:
    """Say which RayCluster a job runs on that makes none; empty of all others."""
    if source.group != RAY_GROUP or source.kind not in JOB_SPECS:
        return ""
    path = (*JOB_SPECS[source.kind], "clusterSelector")
    selector = _part(source, source.body, path[:-1]).get(path[-1])
    if not selector:
        return ""
    said = selector.get(names.RAY_CLUSTER) if isinstance(selector, Mapping) else None
    return (
        f"nothing to judge: {'.'.join(path)} has it run on RayCluster {said or '(not named)'} and "
        "make none of its own; its submitter is a pod beside that one, and waits for no gang"
    )


def _passed_on(source: Source, meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata that reaches the RayCluster; KubeRay passes on none of a RayCronJob."""
    kept = _bare(meta)
    if source.kind != "RayCronJob":
        return kept
    return {key: kept[key] for key in ("name", "namespace") if key in kept}


def _job(source: Source, placed: ObjectMeta) -> RayJob:
    spec = _part(source, source.body, JOB_SPECS[source.kind])
    job = _decoded(source, {"spec": spec}, RayJob)
    return essential_job(replace(job, metadata=replace(placed, uid=f"{placed.uid}-job")))


def _controlled_by(job: RayJob) -> OwnerReference:
    meta = job.metadata
    return OwnerReference(names.RAY_API_VERSION, "RayJob", meta.name, meta.uid, controller=True)


def _read_wrapper(source: Source, namespace: str, number: int) -> Asked:
    meta, spec = _part(source, source.body, ("metadata",)), _part(source, source.body, ("spec",))
    body = {"apiVersion": source.body["apiVersion"], "metadata": _bare(meta), "spec": spec}
    found = _decoded(source, body, AppWrapper)
    placed = replace(found, metadata=_placed(found.metadata, meta, namespace, number))
    put = placed.metadata
    gang, notes, wrapped = gang_of(placed), notes_of(placed), items_of(placed)
    version = str(source.body["apiVersion"])
    asked = Asked(version, source.kind, put.namespace, put.name, gang, notes, wrapped)
    return _to_be_created(asked, source, pods_of_items(wrapped, put.namespace))


def _to_be_created(asked: Asked, source: Source, pods: Mapping[str, Manifest]) -> Asked:
    manifest = as_new(source.body, asked.namespace)
    return dataclasses.replace(asked, manifest=manifest, pods=pods)


def _placed(found: ObjectMeta, meta: Mapping[str, Any], namespace: str, number: int) -> ObjectMeta:
    """Give an object the namespace that it leaves open, and a uid that is of no other."""
    name = found.name or f"{meta.get('generateName') or ''}{DRAWN}"
    return replace(found, name=name, namespace=found.namespace or namespace, uid=f"{DRAWN}{number}")


def _bare(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out what only an object that exists has: it is asked about as one that is new."""
    kept = ("name", "namespace", "labels", "annotations")
    return {key: meta[key] for key in kept if key in meta}


def _part(source: Source, body: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    found: Any = body
    for key in path:
        found = found.get(key)
        if not isinstance(found, Mapping):
            said = "absent" if found is None else type(found).__name__
            where = ".".join(path)
            raise Fault(f"{source.place}: {source.kind}: {where}: {said}; allowed: an object")
    part: Mapping[str, Any] = found
    return part


def _decoded(source: Source, body: Mapping[str, Any], as_: type[T]) -> T:
    try:
        return msgspec.json.decode(msgspec.json.encode(body), type=as_)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as fault:
        said = " ".join(str(fault).split())
        raise Fault(f"{source.place}: {source.kind}: cannot be read: {said}") from None


def _notes(source: Source) -> Iterator[str]:
    body = source.body
    if source.kind == "RayCronJob":
        yield "the RayJob of one time of its schedule is judged, as if that were now"
        if names.OPT_IN in (body["metadata"].get("labels") or {}):
            yield f"KubeRay gives its RayJobs no label {names.OPT_IN}: set it on their namespace"
    if source.kind in ("RayCluster", "RayCronJob") and body["spec"].get("suspend"):
        yield "spec.suspend is true: judged as if it were resumed"


def as_gang(asked: Asked, namespace_labels: Mapping[str, str]) -> Asked:
    """Return it as a gang; where nothing opts it in, with a note that it would be none."""
    meta = asked.cluster.metadata
    said = opt_in(meta.labels, meta.annotations, namespace_labels)
    if said.answer is not Answer.NO:
        return asked
    opted_in = replace(meta, labels={**meta.labels, names.OPT_IN: "true"})
    note = f'{names.OPT_IN} is not "true": it would be no gang; judged as if it were one'
    cluster = replace(asked.cluster, metadata=opted_in)
    return dataclasses.replace(asked, cluster=cluster, notes=(*asked.notes, note))


def beside(asked: Asked) -> Asked:
    """Return it under a name of its own, for a RayCluster of its name exists."""
    meta = asked.cluster.metadata
    cluster = replace(asked.cluster, metadata=replace(meta, name=f"{meta.name}{DRAWN}"))
    return dataclasses.replace(asked, cluster=cluster, notes=(*asked.notes, exists(asked)))


def exists(asked: Asked) -> str:
    """Say that there is such an object, which is not the one that is judged."""
    return f"{asked} exists: judged as another one beside it"


def in_place(asked: Asked, reason: str, created: str) -> Asked:
    """Return it as old as the gang is that it is, and that waits."""
    meta = replace(asked.cluster.metadata, creation_timestamp=created)
    why = f" ({reason})" if reason else ""
    job, note = asked.job, f"{asked} waits{why}: judged in its place"
    if job is not None:
        job = replace(job, metadata=replace(job.metadata, creation_timestamp=created))
    cluster, notes = replace(asked.cluster, metadata=meta), (*asked.notes, note)
    return dataclasses.replace(asked, cluster=cluster, job=job, notes=notes, waits=True)


def job_as_created(job: RayJob, cluster: RayCluster, stamp: str) -> RayJob:
    """Return a RayJob as if it were created now, unless it was, and had made this RayCluster."""
    status = RayJobStatus(ray_cluster_name=cluster.metadata.name)
    created = job.metadata.creation_timestamp or stamp
    meta = replace(job.metadata, creation_timestamp=created)
    return replace(job, metadata=meta, status=status)


def as_created(cluster: RayCluster, stamp: str) -> RayCluster:
    """Return the RayCluster as if it were created now, unless it was, and nothing suspends it.

    An AppWrapper waits with no object of it created, which is what its stand-in says already.
    """
    since = cluster.metadata.creation_timestamp or stamp
    meta = replace(cluster.metadata, creation_timestamp=since, generation=1)
    created = replace(cluster, metadata=meta)
    resumable = source_of(created).resumable
    return created if resumable is None else essential(resumed(resumable))
