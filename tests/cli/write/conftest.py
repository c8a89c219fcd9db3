"""A cluster with Muster and gangs that wait, and how commands are run against it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.__main__ import main
from cli.write import opting_out, pacing, releasing, standstill, uninstalling, writer
from kube.objects import names
from tests.cli.api_server import reached_by_kubeconfig
from tests.cli.write.cluster import LABEL, Double, Json

HOME = "muster-system"
Run = Callable[..., Awaitable[Result]]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here takes time but what a test waits for."""
    monkeypatch.setattr(releasing, "HEARD", 0.0)
    monkeypatch.setattr(pacing, "ROUND_SECONDS", 0.001)
    monkeypatch.setattr(pacing, "PATIENCE", 1.0)
    monkeypatch.setattr(writer, "PAUSE", 0.001)
    monkeypatch.setattr(standstill, "GRACE", 0.0)
    monkeypatch.setattr(standstill, "PROMISED", 0)
    monkeypatch.setattr(uninstalling, "GONE", 0.0)
    monkeypatch.setattr(opting_out, "PATIENCE", 0.0)


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Double]:
    """Muster installed, whose coordinator is dead; a gang of three that waits, and a held one."""
    double = Double()
    installed(double)
    waiting(double, "train", 3)
    held(double, "later")
    async with reached_by_kubeconfig(double.handle, tmp_path, monkeypatch):
        yield double


@pytest.fixture
def muster() -> Run:
    async def run(*arguments: str, answer: str | None = None) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, main, arguments, input=answer)

    return run


def installed(double: Double) -> None:
    double.add("namespaces", HOME, labels=LABEL)
    account = {"kind": "ServiceAccount", "name": "muster-coordinator", "namespace": HOME}
    double.add("clusterrolebindings", "muster-coordinator", labels=LABEL, subjects=[account])
    double.add("namespaces", "team")
    for name in ("muster-coordinator", "muster-webhook"):
        double.add("deployments", name, HOME, labels=LABEL, spec={"replicas": 2})
    double.add("secrets", "muster-webhook-tls", HOME)
    double.add("clusterroles", "muster-coordinator", labels=LABEL)
    double.add("rolebindings", "muster-scheduler-authentication", "kube-system", labels=LABEL)
    double.add("mutatingwebhookconfigurations", "muster-webhook", labels=LABEL)
    double.add("mutatingwebhookconfigurations", "of-others")
    double.add("validatingadmissionpolicybindings", "muster-gates", labels=LABEL)
    double.add("validatingadmissionpolicybindings", "of-others")
    for name in ("gangs.muster.dev", "gangqueues.muster.dev"):
        double.add("customresourcedefinitions", name, labels=LABEL)
    double.add(
        *("gangqueues", "research"), finalizers=["of.others/one", names.QUEUE_FINALIZER], spec={}
    )


def lease(double: Double, holder: str, seconds: int = 1) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 4}
    double.add("leases", "muster-coordinator", HOME, spec=spec)


def ray_cluster(double: Double, name: str, **fields: object) -> Json:
    return double.add("rayclusters", name, "team", **{"spec": {}, **fields})


def gang(double: Double, name: str, uid: str, **status: object) -> None:
    double.add("gangs", name, "team", spec={"rayClusterUid": uid}, status=status)


def waiting(double: Double, name: str, pods: int) -> None:
    """A gang of gated pods, of which every second has a gate of others before Muster's."""
    made = ray_cluster(double, name)
    uid = made["metadata"]["uid"]
    gang(double, name, uid, phase="Queued")
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": uid}
    for number in range(pods):
        gates = [{"name": names.GATE}]
        gates = [{"name": "of.others/gate"}, *gates] if number % 2 else gates
        double.add(
            *("pods", f"{name}-{number}", "team"),
            owners=[{**owner, "controller": True}],
            spec={"schedulingGates": gates},
        )


def held(double: Double, name: str) -> None:
    made = ray_cluster(double, name, spec={"suspend": True}, annotations={names.HELD: "true"})
    gang(double, name, made["metadata"]["uid"], phase="Queued", held={"phase": "Waiting"})


def suspended_job(double: Double, name: str, state: str) -> Json:
    """A RayJob that Muster suspended."""
    made = double.add(
        *("rayjobs", name, "team"), spec={"suspend": True}, status={"jobDeploymentStatus": state}
    )
    note = f"team/x {made['metadata']['uid']}"
    made["metadata"]["annotations"] = {names.SUSPENDED_FOR: note}
    return made


def moved(double: Double, home: str) -> None:
    """All of Muster is in another namespace."""
    for key in [each for each in double.objects if each[1] == HOME]:
        found = double.objects.pop(key)
        found["metadata"]["namespace"] = home
        double.objects[key[0], home, key[2]] = found
    double.objects.pop(("namespaces", "", HOME))
    double.add("namespaces", home, labels=LABEL)
    double.get("clusterrolebindings", "muster-coordinator")["subjects"][0]["namespace"] = home


def gated(double: Double) -> list[str]:
    return [
        each["metadata"]["name"]
        for each in double.all("pods")
        if {"name": names.GATE} in each["spec"].get("schedulingGates", [])
    ]
