"""The certificates and the two-container form work with the rights of their manifests.

All but the containers: the objects are applied to a real API server, the certificates are made by
the commands of their Deployments under their accounts, and a second kube-scheduler and the extender
run under theirs, with a leader election.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.muster import BASE, NAMESPACE, ROOT, Extender, start_extender, with_muster
from testbed.options import Options
from tests.extender.plot import QUICK, Plot
from tests.extender.worlds import Json, pod

pytestmark = pytest.mark.controlplane

EXTENDER = ROOT / "manifests" / "extender"
CERTS = EXTENDER / "certs.yaml"
SECOND = ROOT / "manifests" / "scheduler" / "second-scheduler.yaml"
SECRET = "muster-extender-tls"
NAME = "muster-scheduler"
FILES = ("ca.crt", "tls.crt", "tls.key", "client.crt", "client.key")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster in which all of it is applied; what would run as pods does not."""
    directory = tmp_path_factory.mktemp("installed") / "root"
    options = with_muster(Options(scheduler=False, kuberay=False))
    with Cluster.start(directory, options) as cluster:
        cluster.kubectl("apply", "-f", str(BASE / "namespace.yaml"))
        for path in (EXTENDER / "rbac.yaml", CERTS, SECOND):
            # The namespace warns of pods that it would not admit.
            cluster.kubectl("apply", "--warnings-as-errors", "-f", str(path))
        yield cluster


def run_certs(cluster: Cluster, path: Path) -> str:
    """Run a Deployment's command under its account; what it says until it has looked once."""
    (deployment,) = [each for each in documents(path) if each["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    own = cluster.service_account_kubeconfig(NAMESPACE, spec["serviceAccountName"])
    command = [sys.executable, "-m", *container["args"], "--kubeconfig", str(own)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        said: bytes = process.stdout.read(1 << 16)  # all that it says after its first look
        process.terminate()
        said += process.communicate(timeout=120)[0]
    assert process.returncode == 0
    return said.decode()


def documents(path: Path) -> list[Json]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


@pytest.fixture(scope="module")
def certificates(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a pod finds in its volume, taken from the Secret as the documentation says."""
    assert run_certs(cluster, CERTS) == f"Secret {NAMESPACE}/{SECRET} created\n"
    directory = tmp_path_factory.mktemp("tls")
    for name in FILES:
        template = f'go-template={{{{index .data "{name}" | base64decode}}}}'
        content = cluster.kubectl("-n", NAMESPACE, "get", "secret", SECRET, "-o", template)
        (directory / name).write_text(content)
    return directory


def test_certificates_are_made_once(cluster: Cluster, certificates: Path) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"
    before = cluster.api.get(path)["data"]
    assert {*before} == {*FILES}
    assert run_certs(cluster, CERTS) == f"Secret {NAMESPACE}/{SECRET} kept\n"
    assert cluster.api.get(path)["data"] == before


def test_the_webhooks_authority_gets_into_its_configuration(cluster: Cluster) -> None:
    for name in ("certs-rbac.yaml", "webhook-configuration.yaml", "certs.yaml"):
        cluster.kubectl("apply", "--warnings-as-errors", "-f", str(BASE / name))
    secret = f"{NAMESPACE}/muster-webhook-tls"
    webhooks = ("gate.muster.dev", "hold.muster.dev")
    made_anew = [f"Secret {secret} created", *(f"caBundle of webhook {w} set" for w in webhooks)]
    assert run_certs(cluster, BASE / "certs.yaml").splitlines() == made_anew
    # Renewal, as README.md has it.
    cluster.kubectl("-n", NAMESPACE, "delete", "secret/muster-webhook-tls")
    assert run_certs(cluster, BASE / "certs.yaml").splitlines() == made_anew
    made = cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/muster-webhook-tls")
    found = cluster.api.get(
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster-webhook"
    )
    bundles = {each["clientConfig"]["caBundle"] for each in found["webhooks"]}
    assert bundles == {made["data"]["ca.crt"]}
    assert run_certs(cluster, BASE / "certs.yaml") == f"Secret {secret} kept\n"


@pytest.fixture
def plot(cluster: Cluster, certificates: Path) -> Iterator[Plot]:
    """The two programs of the pod under its one account, and a node of which room is reserved."""
    own = cluster.service_account_kubeconfig(NAMESPACE, NAME)
    extender = start_extender(cluster, kubeconfig=own, settings=QUICK, certificates=certificates)
    cluster.start_scheduler(_configuration(extender), kubeconfig=own)
    plot = Plot(cluster, extender, "second")
    (node,) = plot.add_nodes(1)
    plot.place("train", {node: 1}, cpu=90)
    yield plot
    cluster.process(SCHEDULER).kill()


def _configuration(extender: Extender) -> Json:
    """The one of the manifest; the server is called by the name that it has there."""
    tls = extender.scheduler_config()["extenders"][0]["tlsConfig"]
    named = {**tls, "serverName": f"muster-extender.{NAMESPACE}.svc"}
    return extender.scheduler_config("second-scheduler", tlsConfig=named)


def test_the_second_scheduler_leads_and_guards_its_own_pods(plot: Plot) -> None:
    plot.create(pod("ours", cpu=20, schedulerName=NAME))
    plot.create(pod("small", cpu=2, schedulerName=NAME))
    plot.create(pod("theirs", cpu=1))
    plot.wait_refused("ours", "reserved for a gang")
    plot.wait_bound("small")
    plot.end("train")
    plot.wait_bound("ours")  # the extender may wake the scheduler
    assert "theirs" not in plot.bound()
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
    assert plot.cluster.api.get(path)["spec"]["holderIdentity"]
    assert "forbidden" not in (plot.cluster.logs / f"{SCHEDULER}.log").read_text()
