"""The certificates and the two-container form work with the rights of their manifests.

All but the containers: the objects are applied to a real API server, the certificates are made by
the commands of their Deployments under their accounts, and a second kube-scheduler and the extender
run under theirs, with a leader election.
"""

from __future__ import annotations

import base64
import itertools
import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import yaml

from certs import rolling
from certs.chain import (
    Pair,
    ServerNames,
    certificates_in,
    expires_at,
    issue_client,
    issue_leaf,
    new_authority,
    service_names,
)
from certs.files import write_client, write_pair
from certs.held import OWNER, OWNER_LABEL, SERVED_SINCE, Held, data_of, read_held
from certs.plan import Step
from testbed.audit import asked
from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.manifests import apply, built, combination
from testbed.muster import BASE, NAMESPACE, ROOT, Extender, start_extender
from testbed.pytest_plugin import FolderCluster
from testbed.waiting import wait_until
from tests.extender.plot import BY_HAND, QUICK, Plot, plotted
from tests.extender.worlds import Json, pod
from tests.manifests.base import documents

pytestmark = pytest.mark.controlplane

EXTENDER = ROOT / "manifests" / "extender"
CERTS = EXTENDER / "certs.yaml"
SECOND = ROOT / "manifests" / "scheduler" / "second-scheduler.yaml"
SECRET = "muster-extender-tls"
NAME = "muster-scheduler"
NUMBERS = itertools.count()
FILES = ("ca.crt", "tls.crt", "tls.key", "client.crt", "client.key")
APP_WRAPPER = ROOT / "manifests" / "app-wrapper"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
MUTATING_PATHS = [
    f"{CONFIGURATIONS}/mutatingwebhookconfigurations/{name}"
    for name in ("muster-webhook", "muster-app-wrapper")
]
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
WEBHOOK_NAME = "muster-webhook"
WEBHOOK_SECRET = "muster-webhook-tls"
WEBHOOK = rolling.Wanted(f"{WEBHOOK_SECRET}-ca", service_names(WEBHOOK_NAME, NAMESPACE))


@pytest.fixture(scope="module")
def cluster(folder_cluster: FolderCluster) -> Iterator[Cluster]:
    """The cluster of the folder with all of it applied; what would run as pods does not.

    What calls a webhook or makes pods is gone again before the other files here begin.
    """
    cluster = folder_cluster(BY_HAND)
    cluster.kubectl("apply", "-f", str(BASE / "namespace.yaml"))
    for path in (EXTENDER / "rbac.yaml", CERTS, SECOND):
        # The namespace warns of pods that it would not admit.
        cluster.kubectl("apply", "--warnings-as-errors", "-f", str(path))
    yield cluster
    called = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    cluster.kubectl("delete", called, "--all")
    cluster.kubectl("delete", "-n", NAMESPACE, "deployments", "--all", "--cascade=foreground")


def command_of(cluster: Cluster, path: Path) -> list[str]:
    """The command of a Deployment, under its account."""
    (deployment,) = [each for each in documents(path) if each["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    own = cluster.service_account_kubeconfig(NAMESPACE, spec["serviceAccountName"])
    return [sys.executable, "-m", *container["args"], "--kubeconfig", str(own)]


def run_certs(cluster: Cluster, path: Path) -> str:
    """Have a Deployment's command look once; what it says."""
    command = command_of(cluster, path)
    at = command.index("--every")
    once = [*command[:at], *command[at + 4 :]]  # without --every and --health-port
    done = subprocess.run(once, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    assert {*before} == {*FILES, "ca.key"}
    assert run_certs(cluster, CERTS) == f"Secret {NAMESPACE}/{SECRET} kept\n"
    assert cluster.api.get(path)["data"] == before


@pytest.mark.variant
def test_a_certificate_that_is_lost_is_made_anew(cluster: Cluster, certificates: Path) -> None:
    """By the one that holds the Lease."""
    path = f"{SECRETS}/{SECRET}"
    before = cluster.api.get(path)["data"]
    assert (certificates / "client.crt").read_bytes() == base64.b64decode(before["client.crt"])
    lost = json.dumps({"data": {"client.crt": None}})
    cluster.kubectl("-n", NAMESPACE, "patch", "secret", SECRET, "--type=merge", "-p", lost)
    command = staying(cluster, command_of(cluster, CERTS))
    process = cluster.spawn("extender-certs", command, {"PYTHONPATH": str(ROOT)})
    wait_until(lambda: "client.crt" in cluster.api.get(path)["data"], "another certificate")
    after = cluster.api.get(path)["data"]
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/muster-extender-certs"
    # The first of its writes creates the Lease, and what follows is a right of its own: patch.
    created = cluster.api.get(lease)["metadata"]["resourceVersion"]
    wait_until(
        lambda: cluster.api.get(lease)["metadata"]["resourceVersion"] != created,
        "its Lease to be renewed",
    )
    process.kill()
    assert {name: after[name] for name in ("ca.crt", "tls.crt")} == {
        name: before[name] for name in ("ca.crt", "tls.crt")
    }


def test_the_webhooks_authority_gets_into_its_configuration(cluster: Cluster) -> None:
    for name in ("certs-rbac.yaml", "webhook-configuration.yaml", "certs.yaml"):
        cluster.kubectl("apply", "--warnings-as-errors", "-f", str(BASE / name))
    secret = f"{NAMESPACE}/muster-webhook-tls"
    webhooks = ("gate.muster.dev", "hold.muster.dev")
    made_anew = [f"Secret {secret} created", *(f"caBundle of webhook {w} set" for w in webhooks)]
    assert run_certs(cluster, BASE / "certs.yaml").splitlines() == made_anew
    # What was deleted is made anew; the authority before stays trusted for a while.
    cluster.kubectl("-n", NAMESPACE, "delete", "secret/muster-webhook-tls")
    assert run_certs(cluster, BASE / "certs.yaml").splitlines() == made_anew
    made = cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/muster-webhook-tls")
    found = cluster.api.get(
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster-webhook"
    )
    bundles = {each["clientConfig"]["caBundle"] for each in found["webhooks"]}
    assert bundles == {made["data"]["ca.crt"]}
    assert run_certs(cluster, BASE / "certs.yaml") == f"Secret {secret} kept\n"


@pytest.mark.variant
def test_it_gets_into_those_for_appwrappers_too(cluster: Cluster, tmp_path: Path) -> None:
    """With the command that the component gives muster-certs."""
    objects = built(cluster, combination(tmp_path / "overlay", ["app-wrapper"]))
    kinds = ("Role", "Binding", "ServiceAccount", "WebhookConfiguration")
    apply(cluster, (each for each in objects if each["kind"].endswith(kinds)))
    (program,) = (
        each
        for each in objects
        if (each["kind"], each["metadata"]["name"]) == ("Deployment", "muster-certs")
    )
    (tmp_path / "certs.yaml").write_text(json.dumps(program))
    said = run_certs(cluster, tmp_path / "certs.yaml")
    assert "caBundle of webhook wrapped.muster.dev set" in said
    assert "caBundle of webhook judge.muster.dev set" in said


class Rolled:
    """A webhook that the API server calls by its Service, while its certificate is replaced."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.port, self.health = cluster.ports.allocate(), cluster.ports.allocate()
        self.created = 0
        cluster.create_namespace("rolled")

    def install(self) -> None:
        """With a certificate that is due, and a Service that leads to loopback."""
        for path in (BASE / "certs-rbac.yaml", APP_WRAPPER / "certs-rbac.yaml"):
            put(self.cluster, *documents(path))
        put(self.cluster, *documents(BASE / "webhook-rbac.yaml"))
        made = datetime.now(UTC) - timedelta(days=61)
        held = rolling.changed(Step.CREATE, None, (), WEBHOOK, made)
        data = {name: text for name, text in data_of(held).items() if text is not None}
        metadata = {"name": WEBHOOK_SECRET, "labels": {OWNER_LABEL: OWNER}}
        kind = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
        self._remove_secret()
        self.cluster.api.create(SECRETS, {**kind, "metadata": metadata, "data": data})
        spec = {"type": "ExternalName", "externalName": "localhost"}
        service = {"apiVersion": "v1", "kind": "Service", "spec": spec}
        put(self.cluster, {**service, "metadata": {"name": WEBHOOK_NAME, "namespace": NAMESPACE}})
        self._register()
        self.mount()

    def _remove_secret(self) -> None:
        self.cluster.kubectl(
            "-n", NAMESPACE, "delete", "--ignore-not-found", f"secret/{WEBHOOK_SECRET}"
        )

    def _register(self) -> None:
        for folder in (BASE, APP_WRAPPER):
            for configuration in documents(folder / "webhook-configuration.yaml"):
                for webhook in configuration["webhooks"]:
                    webhook["clientConfig"]["service"]["port"] = self.port
                put(self.cluster, configuration)

    def held(self) -> Held:
        found = self.cluster.api.get(f"{SECRETS}/{WEBHOOK_SECRET}")
        meta = found["metadata"]
        return read_held(found["data"], meta["labels"], meta.get("annotations") or {})

    def mount(self) -> Held:
        """What the kubelet does."""
        held = self.held()
        assert held.served is not None
        write_pair(self.directory, held.served, b"".join(held.authorities))
        return held

    def start(self) -> None:
        """Start the webhook and muster-certs, both under their accounts."""
        own = self.cluster.service_account_kubeconfig(NAMESPACE, WEBHOOK_NAME)
        settings = {
            "KUBECONFIG": str(own),
            "LISTEN_PORT": str(self.port),
            "HEALTH_PORT": str(self.health),
            "CERTIFICATE_FILE": str(self.directory / "tls.crt"),
            "KEY_FILE": str(self.directory / "tls.key"),
        }
        environment = {f"MUSTER_WEBHOOK_{name}": value for name, value in settings.items()}
        paths = {"PYTHONPATH": str(ROOT)}
        webhook = [sys.executable, "-m", "webhook"]
        self.cluster.spawn("rolled-webhook", webhook, environment | paths)
        own = self.cluster.service_account_kubeconfig(NAMESPACE, "muster-certs")
        certs = [sys.executable, "-m", *args_with_app_wrappers(), "--kubeconfig", str(own)]
        self.cluster.spawn("rolled-certs", staying(self.cluster, certs), paths)

    def bundles(self) -> set[str]:
        """What is in caBundle of all configurations."""
        paths = [
            *MUTATING_PATHS,
            f"{CONFIGURATIONS}/validatingwebhookconfigurations/muster-app-wrapper",
        ]
        found = [self.cluster.api.get(path) for path in paths]
        return {hook["clientConfig"]["caBundle"] for each in found for hook in each["webhooks"]}

    def create_pod(self) -> bool:
        """Tell whether the API server takes a pod of Ray."""
        container = {"name": "c", "image": "x"}
        pod = {
            "metadata": {"name": "worker", "labels": {"ray.io/node-type": "worker"}},
            "spec": {"containers": [container]},
        }
        self.created += 1
        path = "/api/v1/namespaces/rolled/pods"
        return self.cluster.api.would_create(path, {"apiVersion": "v1", "kind": "Pod", **pod})

    def calls(self) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/metrics", timeout=60) as page:
            text: str = page.read().decode()
        lines = [
            each for each in text.splitlines() if each.startswith("muster_webhook_reviews_total")
        ]
        return sum(float(each.rpartition(" ")[2]) for each in lines)

    def shows(self, held: Held) -> bool:
        """Tell whether the webhook has read what the Secret holds."""
        assert held.served is not None
        shown = ssl.get_server_certificate(("127.0.0.1", self.port)).encode()
        return certificates_in(shown) == certificates_in(held.served.certificate)

    def note_as_long_ago(self) -> None:
        """Two hours in one second: the end of the roll-over is not waited for."""
        moment = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
        note = f"{SERVED_SINCE}={moment}"
        names = ("secret", WEBHOOK_SECRET)
        self.cluster.kubectl("-n", NAMESPACE, "annotate", "--overwrite", *names, note)


def args_with_app_wrappers() -> list[str]:
    """The arguments of muster-certs with the component for AppWrappers."""
    (patch,) = [
        each
        for each in documents(APP_WRAPPER / "settings.yaml")
        if each["metadata"]["name"] == "muster-certs"
    ]
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    args: list[str] = container["args"]
    return args


def staying(cluster: Cluster, command: list[str]) -> list[str]:
    """The same with a port of its own, and a look every second."""
    changed = list(command)
    changed[command.index("--health-port") + 1] = str(cluster.ports.allocate())
    changed[command.index("--every") + 1] = "1"
    return changed


def put(cluster: Cluster, *objects: Json) -> None:
    for each in objects:
        cluster.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(each)
        )


@pytest.mark.variant
def test_no_pod_is_refused_while_the_webhooks_certificate_is_rolled_over(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A new Secret is brought as the kubelet does; the API server has its 30 s to hear."""
    rolled = Rolled(cluster, tmp_path / "tls")
    rolled.install()
    first = rolled.held()
    rolled.start()
    wait_until(rolled.create_pod, "the webhook to be called and trusted")
    before, begun = rolled.calls(), rolled.created

    def over() -> bool:
        assert rolled.create_pod(), rolled.held()
        held = rolled.mount()
        if held.served != first.served and not noted and rolled.shows(held):
            noted.append(True)
            rolled.note_as_long_ago()
        return held.served != first.served and len(held.authorities) == 1

    noted: list[bool] = []
    wait_until(over, "the roll-over to end")
    for _ in range(20):
        assert rolled.create_pod()
    assert rolled.calls() - before == rolled.created - begun > 20
    assert rolled.bundles() == {cluster.api.get(f"{SECRETS}/{WEBHOOK_SECRET}")["data"]["ca.crt"]}
    for name in ("rolled-certs", "rolled-webhook"):
        cluster.process(name).kill()


@pytest.fixture
def plot(cluster: Cluster, certificates: Path) -> Iterator[Plot]:
    """The two programs of the pod under its one account, and a node of which room is reserved."""
    own = cluster.service_account_kubeconfig(NAMESPACE, NAME)
    extender = start_extender(cluster, kubeconfig=own, settings=QUICK, certificates=certificates)
    cluster.start_scheduler(_configuration(extender), kubeconfig=own)
    with plotted(cluster, extender, f"second-{next(NUMBERS)}") as plot:
        (node,) = plot.add_nodes(1)
        plot.place("train", {node: 1}, cpu=90)
        yield plot
    cluster.process(SCHEDULER).kill()
    plot.extender.process.kill()


def _configuration(extender: Extender) -> Json:
    """The one of the manifest; the server is called by the name that it has there."""
    tls = extender.scheduler_config()["extenders"][0]["tlsConfig"]
    found = extender.scheduler_config("second-scheduler", tlsConfig={**tls, **_called()})
    # As its Deployment says on the command line.
    found["leaderElection"]["resourceNamespace"] = NAMESPACE
    return found


def _called() -> Json:
    (text,) = (each["data"]["configuration.yaml"] for each in _second("ConfigMap"))
    (entry,) = yaml.safe_load(text)["extenders"]
    return {"serverName": entry["tlsConfig"]["serverName"]}


def _second(kind: str) -> list[Json]:
    found = yaml.safe_load_all(SECOND.read_text(encoding="utf-8"))
    return [each for each in found if each["kind"] == kind]


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
    claim = {"name": "gpu", "resourceClaimTemplateName": "none"}
    plot.create(pod("claims", cpu=1, schedulerName=NAME, resourceClaims=[claim]))
    wait_until(lambda: watches(plot, "resourceclaimtemplates"), "devices to be watched")


def watches(plot: Plot, resource: str) -> bool:
    """Whether the account was let watch a resource."""
    found = (each for each in asked(plot.cluster.directory) if each.resource == resource)
    return any(each.verb == "watch" and each.allowed for each in found)


CALLER_ENDS = "muster_extender_caller_certificate_expiry_timestamp_seconds"


def restarted(plot: Plot, certificates: Path, name: str) -> Extender:
    """An extender in the place of the one before: kube-scheduler has to connect anew."""
    plot.extender.process.kill()
    own = plot.cluster.service_account_kubeconfig(NAMESPACE, NAME)
    settings = {**QUICK, "LISTEN_PORT": str(plot.extender.port)}
    return start_extender(
        plot.cluster, name=name, kubeconfig=own, settings=settings, certificates=certificates
    )


def reissue(authority: Pair, trusted: bytes, directory: Path) -> float:
    """Write new pairs of both sides; returns when that of the scheduler ends."""
    now = datetime.now(UTC)
    names = ServerNames(service_names("muster-extender", NAMESPACE).dns, (ip_address("127.0.0.1"),))
    write_pair(directory, issue_leaf(authority, names, now), trusted)
    client = issue_client(authority, "system:kube-scheduler", now, timedelta(days=100))
    write_client(directory, client)
    return int(expires_at(client.certificate).timestamp())


@pytest.mark.long
def test_a_scheduler_that_runs_shows_a_renewed_certificate_and_trusts_one_of_its_authority(
    cluster: Cluster, plot: Plot, certificates: Path
) -> None:
    plot.create(pod("before", cpu=1, schedulerName=NAME))
    plot.wait_bound("before")
    key = base64.b64decode(cluster.api.get(f"{SECRETS}/{SECRET}")["data"]["ca.key"])
    trusted = (certificates / "ca.crt").read_bytes()
    ends = reissue(Pair(trusted, key), trusted, certificates)
    assert plot.extender.metric(CALLER_ENDS) != ends
    extender = restarted(plot, certificates, "renewed")
    plot.create(pod("after", cpu=1, schedulerName=NAME))
    plot.wait_bound("after")
    assert extender.metric(CALLER_ENDS) == ends
    extender.process.kill()


@pytest.mark.long
def test_a_new_authority_is_trusted_by_a_scheduler_that_is_started_with_it(
    cluster: Cluster, plot: Plot, certificates: Path
) -> None:
    """Why the authority stands for ten years; a kube-scheduler that reads it anew fails this."""
    old = (certificates / "ca.crt").read_bytes()
    authority = new_authority("muster-extender-tls-ca", datetime.now(UTC))
    reissue(authority, old + authority.certificate, certificates)
    extender = restarted(plot, certificates, "succeeded")
    plot.create(pod("refused", cpu=1, schedulerName=NAME))
    log = cluster.logs / f"{SCHEDULER}.log"
    wait_until(lambda: "certificate signed by unknown authority" in log.read_text(), "a refusal")
    assert "refused" not in plot.bound()
    cluster.process(SCHEDULER).kill()
    own = cluster.service_account_kubeconfig(NAMESPACE, NAME)
    cluster.start_scheduler(_configuration(plot.extender), kubeconfig=own)
    plot.wait_bound("refused")
    extender.process.kill()
