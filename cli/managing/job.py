"""Writes RayJobs: on a RayCluster that runs, or on one of their own."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from cli.endings import StandsInTheWay, Unusable
from cli.managing.forms import JobForm
from cli.managing.values import LONGEST_JOB, check_count, check_name, part
from kube.objects import names

Json = dict[str, Any]

_SUSPENDED = "it is suspended, and a job would wait for nothing: muster resume"


def new_job(name: str, namespace: str, form: JobForm, cluster: Json | None) -> Json:
    """Return a RayJob: `cluster` is the RayCluster that it makes, None where one runs already."""
    if not form.entrypoint.strip():
        raise Unusable("COMMAND: absent; allowed: -- and a command, as in: -- python train.py")
    metadata: Json = {"name": check_name("NAME", name, LONGEST_JOB), "namespace": namespace}
    spec: Json = {"entrypoint": as_entrypoint(form.entrypoint), **_options(form)}
    if cluster is None:
        spec["clusterSelector"] = {names.RAY_CLUSTER: form.cluster}
        _check_selecting(form)
    else:
        for key in ("labels", "annotations"):
            if cluster["metadata"].get(key):
                metadata[key] = cluster["metadata"][key]
        spec |= {"rayClusterSpec": cluster["spec"], **_ending(form)}
    return {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayJob",
        "metadata": metadata,
        "spec": spec,
    }


def command_of(words: Sequence[str]) -> str:
    """Return the command as a shell has to read it; one word is a line of shell already."""
    return words[0] if len(words) == 1 else shlex.join(words)


def as_entrypoint(line: str) -> str:
    """Return what KubeRay has to be given for Ray to run a line of shell as it stands.

    KubeRay puts it into a line of its submitter's shell: what follows `&&` would run there. Ray
    then joins the words that are left, and its older releases quote only those with blanks.
    """
    line = line.strip()
    return line if _reaches_ray(line) else shlex.join(("sh", "-c", line))


def _reaches_ray(line: str) -> bool:
    """Whether a line is nothing but words, and Ray quotes those that a shell would change."""
    try:
        words = shlex.split(line)
    except ValueError:  # a quotation without an end
        return False
    kept = all(shlex.quote(word) == word or " " in word or "\t" in word for word in words)
    return kept and shlex.join(words) == line


def _options(form: JobForm) -> Json:
    found: Json = {}
    if form.runtime_env:
        found["runtimeEnvYAML"] = form.runtime_env
    for key, value in (
        ("entrypointNumCpus", form.entrypoint_cpus),
        ("entrypointNumGpus", form.entrypoint_gpus),
    ):
        if value is not None:
            found[key] = value
    return found


def _ending(form: JobForm) -> Json:
    """Have the RayCluster go with the job, after as many tries."""
    found: Json = {"shutdownAfterJobFinishes": True}
    if form.retries is not None:
        found["backoffLimit"] = check_count("retries", form.retries)
    if form.keep_seconds is not None:
        found["ttlSecondsAfterFinished"] = check_count("keep", form.keep_seconds)
    return found


def _check_selecting(form: JobForm) -> None:
    """Refuse what KubeRay refuses beside clusterSelector."""
    check_name("cluster", form.cluster)
    for field, value in (("retries", form.retries), ("keep", form.keep_seconds)):
        if value:
            raise Unusable(f"{field}: {value}; allowed without --cluster alone, which stays")


def check_takes_jobs(cluster: Mapping[str, Any]) -> None:
    """Refuse a RayCluster on which a job would wait for ever; raises StandsInTheWay."""
    meta = cluster["metadata"]
    name = f"{meta.get('namespace')}/{meta['name']}"
    if meta.get("deletionTimestamp"):
        raise StandsInTheWay(f"RayCluster {name}: it is being deleted; nothing was submitted")
    if cluster["spec"].get("suspend"):
        raise StandsInTheWay(f"RayCluster {name}: {_SUSPENDED} {name}; nothing was submitted")


def waits_for(cluster: Mapping[str, Any]) -> str:
    """Say what a job on this RayCluster waits for; empty where that is ready."""
    if part(cluster, "status").get("state") == "ready":
        return ""
    return f"RayCluster {cluster['metadata']['name']} is not ready: the job waits until it is"
