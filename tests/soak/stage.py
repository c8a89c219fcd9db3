"""The control plane of a soak: nodes, queues, KubeRay and all of Muster, behind proxies."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kube.objects import names
from testbed.api import Json
from testbed.cluster import Cluster, prepare
from testbed.components import SCHEDULER
from testbed.muster import Extender, Muster, start_extender, start_muster, with_app_wrappers
from testbed.nodes import NodeSpec, copies
from testbed.options import FAST_STAGES, Options
from testbed.processes import Process
from tests.controlplane.dashboards import Dashboards
from tests.faults.crew import Crew, account_of
from tests.soak.plan import TEAMS

BIND_PATIENCE, TORN_PATIENCE, SLOT_PATIENCE = 10.0, 20.0, 30.0
"""Seconds; an installation's are 30, 300 and 600."""
_ELECTION = {"LEASE_DURATION": "6", "RENEW_DEADLINE": "4.5", "RETRY_PERIOD": "0.75"}
"""Seconds; a request of the election that is delayed must still be answered in time."""
GPUS = 8
NOT_READY = "soak.muster.dev/not-ready"
"""The annotation of nodes that kwok is not to make ready again."""
PRIORITY = "soak-high"
QUEUES = "/apis/muster.dev/v1alpha1/gangqueues"
QUOTED = TEAMS[:2]
_ORG = "org"


@dataclass
class Stage:
    """All that runs, and what of it is out of order on purpose at the moment."""

    cluster: Cluster
    muster: Muster
    crew: Crew
    extender: Extender
    dashboards: Dashboards
    out: set[str] = field(default_factory=set)
    """Servers that hang or are being restarted, so that nothing can be expected."""
    busy: set[str] = field(default_factory=set)
    """Programs that a fault has in hand."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def programs(self) -> dict[str, Process]:
        """Muster's programs."""
        coordinators = {f"coordinator-{m.number}": m.process for m in self.crew.members}
        return {
            **coordinators,
            "webhook": self.muster.webhook,
            "wrapper": self.muster.wrappers[0],
            "extender": self.extender.process,
        }

    @property
    def is_out(self) -> bool:
        """Whether nothing can be expected at the moment."""
        return bool(self.out)

    @contextlib.contextmanager
    def having(self, program: str) -> Iterator[None]:
        """Keep others from restarting a program that a fault has in hand."""
        with self.lock:
            self.busy.add(program)
        try:
            yield
        finally:
            with self.lock:
                self.busy.discard(program)

    def revive(self) -> list[str]:
        """Start what has ended by itself again, as a kubelet does; returns what it was."""
        found = []
        with self.lock:
            every = {**self.cluster.processes, **self.programs}
            for name, process in every.items():
                if name in _ONCE or name in self.busy or process.running:
                    continue
                found.append(f"{name} ended with {process.returncode}: {process.log_tail()}")
                process.restart()
        return found


_ONCE = ("certs", "extender-certs")


@contextlib.contextmanager
def staged(directory: Path, nodes: int, seed: int) -> Iterator[Stage]:
    """Start everything, and end it."""
    with contextlib.ExitStack() as stack:
        dashboards = stack.enter_context(Dashboards())
        options = with_app_wrappers(_options(dashboards, directory))
        cluster = stack.enter_context(Cluster.start(directory / "root", options))
        for team in TEAMS:
            cluster.create_namespace(team, {names.OPT_IN: "true"})
        muster = start_muster(cluster, coordinators=0, app_wrappers="All")
        cluster.create_priority_class({"name": PRIORITY}, 10)
        _add_queues(cluster, nodes)
        _add_nodes(cluster, nodes)
        extender = start_extender(cluster)
        cluster.start_scheduler(extender.scheduler_config())
        cluster.wait_healthy(SCHEDULER)
        muster.start_wrapper()
        crew = stack.enter_context(Crew(muster, account_of(muster)))
        for number in range(2):
            recording = str(directory / f"coordinator-{number}.jsonl")
            crew.start(1, {**_settings(seed), "RECORD": recording})
        crew.wait_leader()
        yield Stage(cluster, muster, crew, extender, dashboards)


def _settings(seed: int) -> dict[str, str]:
    """Short patience, and with each seed another guard of reserved room."""
    return {
        **_ELECTION,
        "BIND_PATIENCE": str(BIND_PATIENCE),
        "TORN_PATIENCE": str(TORN_PATIENCE),
        "SLOT_PATIENCE": str(SLOT_PATIENCE),
        "REFUSAL_MEMORY": "20",
        "APP_WRAPPERS": "true",
        "GUARD": ("Extender", "Nomination")[seed % 2],
    }


def _options(dashboards: Dashboards, directory: Path) -> Options:
    directory.mkdir(parents=True, exist_ok=True)
    stages = (str(_initialize(directory)), *FAST_STAGES[1:])
    return Options(
        scheduler=False,
        kwok_stages=stages,
        # An API server that was just restarted refuses what it has not read the roles of yet.
        refusals_expected=True,
        kuberay_args=("--reconcile-concurrency=4",),
        kuberay_env=dashboards.environment,
    )


def _initialize(directory: Path) -> Path:
    """kwok's stage that makes nodes ready, but for those that are not to be."""
    programs, _ = prepare(lambda _: None)
    stage = yaml.safe_load((programs.stages / FAST_STAGES[0]).read_text())
    rule = {"key": f'.metadata.annotations["{NOT_READY}"]', "operator": "DoesNotExist"}
    stage["spec"]["selector"]["matchExpressions"].append(rule)
    path = directory.resolve() / "node-initialize.yaml"
    path.write_text(yaml.safe_dump(stage))
    return path


def node_specs(count: int) -> list[NodeSpec]:
    """Equal nodes with GPUs."""
    return copies(NodeSpec("n", cpus=64, memory="256Gi", gpus=GPUS, pods=20), count)


def _add_nodes(cluster: Cluster, count: int) -> None:
    cluster.add_nodes(node_specs(count))


def _add_queues(cluster: Cluster, nodes: int) -> None:
    """Two queues that lend to each other a quarter of the GPUs each; the third team has none."""
    _queue(cluster, _ORG, {})
    for team in QUOTED:
        selector = {"matchLabels": {"kubernetes.io/metadata.name": team}}
        quota = {"nvidia.com/gpu": quota_of(nodes)}
        preemption = {"withinQueue": "LowerPriority", "reclaim": "Any"}
        spec: Json = {"parent": _ORG, "namespaceSelector": selector, "quota": quota}
        _queue(cluster, team, {**spec, "preemption": {**preemption, "jobsMayBeLost": True}})


def quota_of(nodes: int) -> int:
    """GPUs of each of the two queues."""
    return nodes * GPUS // 4


def _queue(cluster: Cluster, name: str, spec: Json) -> None:
    body = {"apiVersion": names.API_VERSION, "kind": "GangQueue"}
    cluster.api.create(QUEUES, {**body, "metadata": {"name": name}, "spec": spec})
