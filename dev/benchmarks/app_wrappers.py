"""Makes the AppWrappers and Jobs of the benchmarks, and the control plane on which they run.

Four nodes, as in the stress test of MCAD. Without Muster none of its programs runs. What is left
then are its CRDs and the rules of its webhook, which match nothing that plain Kubernetes makes.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.gangs import NAMESPACE
from benchmarks.plane import LEASE, usual_options
from kube.api.reviewed import HEARD, NAME
from kube.objects import names
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.muster import start_muster, with_app_wrappers
from testbed.nodes import NodeSpec, copies
from testbed.options import SLOW_JOB_STAGES, lasting
from testbed.waiting import wait_until

NODES = copies(NodeSpec("node", cpus=32, memory="256Gi"), 4)
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
APP_WRAPPERS = f"/apis/{names.CODEFLARE_V1BETA2}/namespaces/{NAMESPACE}/appwrappers"
_RULES = "/apis/admissionregistration.k8s.io/v1"
_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def job(name: str, cpu: str, seconds: float) -> Json:
    """One Job of one pod that runs for so long."""
    requests = {"cpu": cpu, "memory": "50M"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"annotations": lasting(seconds)}, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template},
    }


def wrapped(item: Json) -> Json:
    """The AppWrapper of an object, of the same name."""
    return {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": names.APP_WRAPPER_KIND,
        "metadata": {"name": item["metadata"]["name"]},
        "spec": {"components": [{"template": item}]},
    }


class WrapperPlane:
    """A control plane, and Muster on it, which works on AppWrappers when it is switched on."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        settings = {**LEASE, "APP_WRAPPERS": "true"}
        self.muster = start_muster(cluster, settings=settings, app_wrappers="All")
        self.muster.start_wrapper(settings=LEASE)
        wait_until(self._is_trusted, "the rules of the webhook to be trusted")
        self._wait_working()

    def switch(self, *, on: bool) -> None:
        """Have all programs of Muster run, or none."""
        programs = (self.muster.webhook, *self.muster.coordinators, *self.muster.wrappers)
        for program in programs:
            if on and not program.running:
                program.restart()
            elif not on:
                program.stop()
        if on:
            self._wait_working()

    def _is_trusted(self) -> bool:
        """Whether what is created from now on is younger than the rules, as the wrapper asks."""
        found = [self.cluster.api.get(f"{_RULES}/{kind}/{NAME}") for kind in _KINDS]
        stamps = [datetime.fromisoformat(each["metadata"]["creationTimestamp"]) for each in found]
        return datetime.now(UTC) > max(stamps) + HEARD

    def _wait_working(self) -> None:
        self.muster.wait_ready()
        self.muster.wait_led()
        self.muster.wait_led("wrapper")
        probe = wrapped(job("probe", "1", 1))
        wait_until(
            lambda: self.cluster.api.would_create(APP_WRAPPERS, probe),
            "the API server to call the webhook",
        )


@contextlib.contextmanager
def wrapper_plane(*apiserver_args: str) -> Iterator[WrapperPlane]:
    """A control plane of four nodes; logs stay when something went wrong."""
    directory = Path(tempfile.mkdtemp(prefix="muster-bench-"))
    options = usual_options(apiserver_args=apiserver_args, kwok_stages=SLOW_JOB_STAGES)
    with Cluster.start(directory / "cluster", with_app_wrappers(options)) as cluster:
        cluster.add_nodes(NODES)
        try:
            yield WrapperPlane(cluster)
        except BaseException as error:
            error.add_note(f"The logs are in {cluster.logs}")
            raise
    shutil.rmtree(directory, ignore_errors=True)


def encoded(objects: list[Json]) -> list[bytes]:
    """Encode objects beforehand, so that creating them is sending only."""
    return [json.dumps(each).encode() for each in objects]
