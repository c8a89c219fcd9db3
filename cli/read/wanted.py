"""Works out the RayCluster that a person asks for: from options, a file, or another RayCluster."""

from collections.abc import Sequence
from typing import Any

from cli.endings import Unusable
from cli.files import read_files
from cli.imports.outcome import Fault, Source
from cli.managing.cluster import changed, new_cluster
from cli.managing.copies import copy_of
from cli.managing.forms import ClusterForm, JobForm
from cli.managing.job import check_takes_jobs, new_job, waits_for
from cli.managing.values import check_name, part
from cli.read.ray.ray_object import placed, read_object
from cli.read.reader import Reader
from kube.api import resources
from kube.objects import names

Json = dict[str, Any]


async def like_another(
    reader: Reader, namespace: str, name: str, like: str, form: ClusterForm
) -> Json:
    """Return a copy of a RayCluster of the namespace, with what the form says."""
    place, source = placed(like, namespace, namespace)
    found = await read_object(reader, resources.RAY_CLUSTERS, place, source)
    return changed(copy_of(found, name), form)


async def on_cluster(reader: Reader, namespace: str, name: str, job: JobForm) -> tuple[Json, str]:
    """Return a job on a RayCluster that runs, and what it waits for; raises StandsInTheWay."""
    found = await read_object(reader, resources.RAY_CLUSTERS, namespace, job.cluster)
    check_takes_jobs(found)
    return new_job(name, namespace, job, None), waits_for(found)


def of_form(namespace: str, name: str, form: ClusterForm) -> Json:
    """Return a RayCluster that has what the form says, and the usual."""
    return new_cluster(name, namespace, form)


def of_file(path: str, namespace: str, name: str, usual: str, form: ClusterForm) -> Json:
    """Return the RayCluster of a file, with what the form says; raises Unusable."""
    body = _only(path, _sources(path))
    meta = {**part(body, "metadata")}
    there = str(meta.get("name") or "")
    if name and name != there:
        raise Unusable(f"{path}: metadata.name: {there}; allowed: {name}, as it is called for")
    meta["name"] = check_name(f"{path}: metadata.name", there)
    meta["namespace"] = _namespace(path, str(meta.get("namespace") or ""), namespace, usual)
    return changed({**body, "metadata": meta}, form)


def _sources(path: str) -> Sequence[Source]:
    try:
        return read_files([path])
    except Fault as fault:
        raise Unusable(str(fault)) from None


def one_object(path: str) -> Json:
    """Return the one object of a file, as it is written; raises Unusable."""
    sources = _sources(path)
    if len(sources) != 1:
        raise Unusable(f"{path}: {len(sources)} objects; allowed: one")
    return dict(sources[0].body)


def _only(path: str, sources: Sequence[Source]) -> Json:
    wanted = (names.RAY_API_VERSION.partition("/")[0], "RayCluster")
    kinds = [(each.group, each.kind) for each in sources]
    if kinds != [wanted]:
        there = ", ".join(kind for _, kind in kinds) or "nothing"
        raise Unusable(f"{path}: {there}; allowed: one RayCluster")
    body = dict(sources[0].body)
    if not part(body, "spec", "headGroupSpec"):
        raise Unusable(f"{path}: spec.headGroupSpec: absent; allowed: a head group")
    return body


def _namespace(path: str, there: str, asked: str, usual: str) -> str:
    if there and asked and there != asked:
        raise Unusable(f"{path}: metadata.namespace: {there}; allowed: {asked}, or none")
    return there or asked or usual
