"""`muster doctor`: each fault is found, and nothing in a cluster that is well."""

import base64
import copy
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cli.endings import CannotRead, NotAllowed
from cli.read.home import AccountBinding
from cli.report.doctor.checks import examine
from cli.report.doctor.examined import (
    ConfigMap,
    Deployment,
    EndpointSlice,
    Examined,
    Lease,
    PolicyBinding,
    RayObject,
    SchedulerPod,
    ServerVersion,
    TlsSecret,
    WebhookConfiguration,
)
from cli.report.doctor.findings import State
from cli.report.doctor.kubernetes import READ, TESTED
from cli.report.snapshot import Unread
from kube.objects import names
from kube.objects.core import Namespace
from kube.objects.crds.definition import Definition
from kube.objects.crds.muster import gang_crd, gang_queue_crd
from kube.objects.queues.queue import GangQueue
from tests.cli.fake_reader import FakeReader, run

Json = dict[str, Any]
NOW = datetime(2026, 6, 1, tzinfo=UTC)
NAMESPACE = "muster-system"
CONFIGURATION = "kind: KubeSchedulerConfiguration\nextenders:\n- urlPrefix: https://muster-extender"


def secret(data: Json, name: str = "muster-webhook-tls", made_by: str = "muster") -> Json:
    labels = {"app.kubernetes.io/part-of": made_by} if made_by else {}
    return {"metadata": {"name": name, "labels": labels}, "data": data}


def certificate(begins: datetime, ends: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "muster")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


GOOD = certificate(NOW - timedelta(days=1), NOW + timedelta(days=300))
AGED = certificate(NOW - timedelta(days=300), NOW + timedelta(days=9))
ENDED = certificate(NOW - timedelta(days=300), NOW - timedelta(days=1))
EARLY = certificate(NOW + timedelta(hours=1), NOW + timedelta(days=300))


def deployment(
    name: str, *, namespace: str = NAMESPACE, available: int = 2, image: str = "muster:0.1.0"
) -> Json:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"image": image}]}}},
        "status": {"availableReplicas": available},
    }


def slice_of(service: str, *, ready: bool = True) -> Json:
    return {
        "metadata": {
            "name": f"{service}-abc",
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": service},
        },
        "endpoints": [{"conditions": {"ready": ready}}],
    }


def webhook(
    name: str, policy: str, bundle: str = GOOD, alone: Sequence[str] = ("kube-system", NAMESPACE)
) -> Json:
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": alone}
    return {
        "name": name,
        "failurePolicy": policy,
        "clientConfig": {"caBundle": bundle},
        "namespaceSelector": {"matchExpressions": [expression]},
    }


def established(definition: Json) -> Json:
    status = {"conditions": [{"type": "Established", "status": "True"}]}
    return {**copy.deepcopy(definition), "status": status}


def lease(age: float, holder: str = "one") -> Json:
    renewed = (NOW - timedelta(seconds=age)).isoformat()
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"metadata": {"name": "muster-coordinator", "namespace": NAMESPACE}, "spec": spec}


def gang_queue(name: str, quota: Json, team: str = "team") -> Json:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": team}}
    return {"metadata": {"name": name}, "spec": {"quota": quota, "namespaceSelector": selector}}


def namespace(name: str, **labels: str) -> Json:
    named = {"kubernetes.io/metadata.name": name}
    return {"metadata": {"name": name, "labels": {**named, **labels}}}


def ray_object(name: str, within: str, **meta: Json) -> Json:
    return {"metadata": {"name": name, "namespace": within, **meta}}


RAY: Json = {
    "metadata": {"name": "rayclusters.ray.io"},
    "spec": {"versions": [{"name": "v1", "served": True}]},
}
WELL: Mapping[str, tuple[type[Any], list[Json]]] = {
    "version": (ServerVersion, [{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}]),
    "definitions": (
        Definition,
        [RAY, established(gang_crd()), established(gang_queue_crd())],
    ),
    "configurations": (
        WebhookConfiguration,
        [
            {
                "metadata": {"name": "muster-webhook"},
                "webhooks": [
                    webhook("gate.muster.dev", "Fail"),
                    webhook("hold.muster.dev", "Ignore"),
                ],
            }
        ],
    ),
    "bindings": (PolicyBinding, []),
    "endpoints": (EndpointSlice, [slice_of("muster-webhook"), slice_of("muster-extender")]),
    "secrets": (
        TlsSecret,
        [secret({"tls.crt": GOOD})],
    ),
    "leases": (Lease, [lease(3)]),
    "deployments": (
        Deployment,
        [deployment(f"muster-{name}") for name in ("coordinator", "webhook", "certs", "extender")],
    ),
    "queues": (GangQueue, [gang_queue("research", {"nvidia.com/gpu": 80})]),
    "namespaces": (
        Namespace,
        [namespace("team"), namespace("kube-system"), namespace(NAMESPACE)],
    ),
    "ray_clusters": (RayObject, [ray_object("train", "team")]),
    "schedulers": (
        SchedulerPod,
        [{"spec": {"containers": [{"image": "kube-scheduler:v1.37.2"}]}}],
    ),
    "config_maps": (
        ConfigMap,
        [{"metadata": {"name": "scheduler"}, "data": {"config.yaml": CONFIGURATION}}],
    ),
}


def seen(**changed: Any) -> Examined:
    """A cluster that is well, but for what is given: objects as JSON, or what could not be read."""
    found: dict[str, Any] = {
        name: changed[name]
        if isinstance(changed.get(name), Unread)
        else tuple(msgspec.convert(each, kind) for each in changed.get(name, objects))
        for name, (kind, objects) in WELL.items()
    }
    others = {"pod_groups": changed.get("pod_groups", False)}
    return Examined(now=NOW.timestamp(), release="0.1.0", namespace=NAMESPACE, **found, **others)


def states(examined: Examined) -> dict[str, State]:
    findings = examine(examined).findings
    found = {each.check: each.state for each in findings}
    assert len(found) == len(findings), "two findings of one name"
    return found


def test_a_cluster_that_is_well_has_nothing_to_mend() -> None:
    report = examine(seen())
    assert {each.state for each in report.findings} == {State.OK}
    assert not any(each.remedy for each in report.findings)
    assert len(report.findings) == 18
    assert not report.failed


QUOTA = {"nvidia.com/gpu": 80}
OPTED_IN = [namespace("team", **{names.OPT_IN: "true"})]
NO_GANG = {names.OPT_IN: "false"}


@pytest.mark.parametrize(
    ("changed", "check", "said"),
    [
        ({"namespaces": [namespace("team"), namespace("b")]}, "quota", "namespace b is selected"),
        (
            {"namespaces": [namespace(f"n{each}") for each in range(7)]},
            "quota",
            "namespaces n0, n1, n2, n3, n4 and 2 more are selected by no GangQueue: no quota",
        ),
        (
            {
                "namespaces": [namespace("b")],
                "queues": [gang_queue("default", {}), gang_queue("q", QUOTA)],
            },
            "quota",
            "namespace b is selected by no GangQueue",
        ),
        (
            {"namespaces": OPTED_IN, "ray_clusters": [ray_object("a", "team", labels=NO_GANG)]},
            "opted out",
            "RayCluster team/a is opted out of its namespace, and in no queue: no quota bounds",
        ),
        (
            {
                "namespaces": OPTED_IN,
                "ray_clusters": [ray_object("a", "team", annotations=NO_GANG)],
            },
            "opted out",
            "RayCluster team/a is opted out",
        ),
    ],
)
def test_what_escapes_all_quota_is_named(changed: Json, check: str, said: str) -> None:
    (found,) = (each for each in examine(seen(**changed)).findings if each.check == check)
    assert found.state is State.WARN
    assert found.message.startswith(said)
    assert "docs/queues.md" in found.remedy


@pytest.mark.parametrize("kind", ["ResourcesLimited", "UsageCounted"])
def test_a_queue_of_which_a_rule_does_nothing_is_named(kind: str) -> None:
    """A resource that is unlimited in it alone, or usage that does not count."""
    told = {"type": kind, "status": "False", "message": "spec.quota: cpu is ..."}
    queue = {**gang_queue("q", QUOTA), "status": {"conditions": [told]}}
    (found,) = (e for e in examine(seen(queues=[queue])).findings if e.check == "quota")
    assert (found.state, found.message) == (State.WARN, "GangQueue q: spec.quota: cpu is ...")


@pytest.mark.parametrize(
    "changed",
    [
        {"queues": []},
        {"queues": [gang_queue("q", {}, team="other")]},
        {
            "namespaces": [namespace("b")],
            "queues": [gang_queue("q", QUOTA), gang_queue("default", {"cpu": 0}, team="none")],
        },
        {"ray_clusters": [ray_object("a", "team", labels=NO_GANG)]},
        {"namespaces": OPTED_IN, "ray_clusters": [ray_object("a", "team")]},
    ],
)
def test_where_nothing_escapes_quota_nothing_is_said(changed: Json) -> None:
    assert states(seen(**changed))["quota"] is State.OK


def on_loopback(name: str, policy: str) -> Json:
    found = webhook(name, policy)
    found["clientConfig"]["url"] = "https://127.0.0.1:31443/gate"
    return found


def test_on_a_testbed_no_deployment_service_or_secret_is_missing() -> None:
    """The API server asks the webhook on loopback, which no pod of a cluster can answer."""
    here = webhooks(
        on_loopback("gate.muster.dev", "Fail"), on_loopback("hold.muster.dev", "Ignore")
    )
    bare: Json = {"deployments": [], "endpoints": [], "secrets": []}
    found = states(seen(configurations=here, **bare))
    assert set(found.values()) == {State.OK}
    assert found.keys() >= {"programs", "certificate authority"}
    mixed = webhooks(on_loopback("gate.muster.dev", "Fail"), HOLD)
    assert states(seen(configurations=mixed, **bare))["muster-coordinator"] is State.FAIL


def without(name: str, at: int) -> list[Json]:
    found = copy.deepcopy(WELL[name][1])
    del found[at]
    return found


def definitions(change: str) -> list[Json]:
    found = copy.deepcopy(WELL["definitions"][1])
    if change == "schema":
        version = found[1]["spec"]["versions"][0]
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["queue"]
    elif change == "newer":
        version = found[1]["spec"]["versions"][0]
        properties = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["future"] = {"type": "string"}
    elif change == "established":
        found[1]["status"] = {"conditions": [{"type": "Established", "status": "False"}]}
    else:
        found[0 if change == "ray" else 1]["spec"]["versions"][0]["served"] = False
    return found


def webhooks(*found: Json) -> list[Json]:
    return [{"metadata": {"name": "muster-webhook"}, "webhooks": list(found)}]


def asked(words: tuple[str, ...]) -> Json:
    """A container with these arguments, as a command where there is one and else as arguments."""
    return {"command": ["kube-scheduler", *words]} if len(words) == 1 else {"args": [*words]}


def for_volcano() -> Json:
    """KubeRay's operator with the flag that has it set the name of another scheduler."""
    found = deployment("kuberay-operator", namespace="ray")
    found["spec"]["template"]["spec"]["containers"][0]["args"] = ["--batch-scheduler=volcano"]
    return found


HOLD = webhook("hold.muster.dev", "Ignore")
FAULTS: dict[str, tuple[Json, str, State]] = {
    "an old Kubernetes": (
        {"version": [{"minor": "30", "gitVersion": "v1.30.1"}]},
        "Kubernetes",
        State.WARN,
    ),
    "a new Kubernetes": ({"version": [{"minor": "39+"}]}, "Kubernetes", State.WARN),
    "no KubeRay": ({"definitions": without("definitions", 0)}, "KubeRay", State.FAIL),
    "an old KubeRay": ({"definitions": definitions("ray")}, "KubeRay", State.FAIL),
    "a KubeRay without a pod": (
        {"deployments": [deployment("kuberay-operator", namespace="ray", available=0)]},
        "KubeRay",
        State.FAIL,
    ),
    "a KubeRay for Volcano": (
        {"deployments": [for_volcano()]},
        "KubeRay",
        State.WARN,
    ),
    "no coordinator": (
        {"deployments": without("deployments", 0)},
        "muster-coordinator",
        State.FAIL,
    ),
    "no pod of a program": (
        {"deployments": [deployment("muster-webhook", available=0)]},
        "muster-webhook",
        State.FAIL,
    ),
    "too few pods": (
        {"deployments": [deployment("muster-certs", available=1)]},
        "muster-certs",
        State.WARN,
    ),
    "two releases": (
        {"deployments": [*WELL["deployments"][1], deployment("muster-wrapper", image="m:0.0.9")]},
        "release",
        State.WARN,
    ),
    "another release than the command": (
        {"deployments": [deployment("muster-certs", image="muster:v0.0.9")]},
        "release",
        State.WARN,
    ),
    "no definition": (
        {"definitions": without("definitions", 1)},
        "gangs.muster.dev",
        State.FAIL,
    ),
    "an old definition": (
        {"definitions": definitions("schema")},
        "gangs.muster.dev",
        State.FAIL,
    ),
    "a newer definition": (
        {"definitions": definitions("newer")},
        "gangs.muster.dev",
        State.WARN,
    ),
    "a definition that is not established": (
        {"definitions": definitions("established")},
        "gangs.muster.dev",
        State.FAIL,
    ),
    "a version that is not served": (
        {"definitions": definitions("served")},
        "gangs.muster.dev",
        State.FAIL,
    ),
    "no webhooks": ({"configurations": []}, "webhooks", State.FAIL),
    "one webhook is missing": (
        {"configurations": webhooks(HOLD)},
        "gate.muster.dev",
        State.FAIL,
    ),
    "no CA bundle": (
        {"configurations": webhooks(webhook("gate.muster.dev", "Fail", ""), HOLD)},
        "gate.muster.dev",
        State.FAIL,
    ),
    "another failurePolicy": (
        {"configurations": webhooks(webhook("gate.muster.dev", "Ignore"), HOLD)},
        "gate.muster.dev",
        State.WARN,
    ),
    "no pod behind the webhook": (
        {"endpoints": [slice_of("muster-webhook", ready=False)]},
        "webhook endpoints",
        State.FAIL,
    ),
    "no Secret": ({"secrets": []}, "certificate", State.FAIL),
    "a certificate that ends soon": (
        {"secrets": [secret({"tls.crt": AGED})]},
        "certificate",
        State.WARN,
    ),
    "a certificate that ended": (
        {"secrets": [secret({"tls.crt": ENDED})]},
        "certificate",
        State.FAIL,
    ),
    "a certificate of tomorrow": (
        {"secrets": [secret({"tls.crt": EARLY})]},
        "certificate",
        State.FAIL,
    ),
    "no certificate in the Secret": (
        {"secrets": [secret({"tls.crt": "!"})]},
        "certificate",
        State.FAIL,
    ),
    "no muster-certs": ({"deployments": without("deployments", 2)}, "muster-certs", State.FAIL),
    "an extender's certificate that ends soon": (
        {"secrets": [secret({"tls.crt": GOOD}), secret({"tls.crt": AGED}, "muster-extender-tls")]},
        "extender certificate",
        State.WARN,
    ),
    "a new authority of the extender": (
        {
            "secrets": [
                secret({"tls.crt": GOOD}),
                secret({"tls.crt": GOOD, "ca.crt": EARLY, "ca.key": "x"}, "muster-extender-tls"),
            ]
        },
        "extender authority",
        State.WARN,
    ),
    "an authority that ended": (
        {
            "secrets": Unread("secrets", "no"),
            "configurations": webhooks(webhook("gate.muster.dev", "Fail", ENDED), HOLD),
        },
        "certificate authority",
        State.FAIL,
    ),
    "no leader": ({"leases": []}, "leader", State.FAIL),
    "a lease that was given back": ({"leases": [lease(1, holder="")]}, "leader", State.FAIL),
    "coordinators that were stopped": (
        {"leases": [lease(0, holder=names.STOPPED)]},
        "leader",
        State.FAIL,
    ),
    "a leader that went silent": ({"leases": [lease(60)]}, "leader", State.FAIL),
    **{
        f"kube-scheduler with {' '.join(words)}": (
            {"schedulers": [{"spec": {"containers": [{"image": "k:v1.37.2", **asked(words)}]}}]},
            "kube-scheduler gates",
            State.WARN,
        )
        for words in (
            ("--feature-gates=A=false,InterPodAffinityHostnameFastPath=true",),
            ("--feature-gates", "InPlacePodVerticalScalingSchedulerPreemption=1"),
            ("--feature-gates=AllAlpha=true", "--v=2", "--feature-gates=SomeBeta=false"),
        )
    },
    "a scheduler that cannot be seen": ({"schedulers": []}, "kube-scheduler", State.UNKNOWN),
    "no pod of the extender": (
        {"endpoints": [slice_of("muster-webhook")]},
        "extender",
        State.FAIL,
    ),
    "a scheduler that is not told": (
        {"config_maps": [{"data": {"c": "kind: KubeSchedulerConfiguration"}}]},
        "extender configured",
        State.WARN,
    ),
    "a configuration that cannot be seen": (
        {"config_maps": []},
        "extender configured",
        State.UNKNOWN,
    ),
    "Kueue beside it": (
        {
            "deployments": [
                *WELL["deployments"][1],
                deployment("kueue-controller-manager", namespace="kueue-system"),
            ]
        },
        "other gang systems",
        State.WARN,
    ),
    "native PodGroups": ({"pod_groups": True}, "other gang systems", State.WARN),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(fault: str) -> None:
    changed, check, state = FAULTS[fault]
    examined = seen(**changed)
    assert states(examined)[check] is state
    (finding,) = [each for each in examine(examined).findings if each.check == check]
    assert finding.message
    assert finding.remedy
    assert examine(examined).failed is (State.FAIL in states(examined).values())


@pytest.mark.parametrize(
    "words",
    [
        ["kube-scheduler", "--config=InterPodAffinityHostnameFastPath=true"],
        ["--feature-gates=InterPodAffinityHostnameFastPath=false,OtherAlpha=true"],
        [f"--feature-gates=InterPodAffinityHostnameFastPath={on}" for on in ("true", "false")],
        ["--feature-gates=nonsense,=,InterPodAffinityHostnameFastPath", "--feature-gates"],
    ],
)
def test_gates_that_change_no_filter_are_not_told(words: list[str]) -> None:
    container = {"image": "kube-scheduler:v1.37.2", "command": words}
    examined = seen(schedulers=[{"spec": {"containers": [container]}}])
    assert "kube-scheduler gates" not in states(examined)


def test_a_gate_that_is_off_stays_off_beside_all_alpha_ones() -> None:
    words = "--feature-gates=AllAlpha=true,InterPodAffinityHostnameFastPath=false"
    container = {"image": "kube-scheduler:v1.37.2", "command": ["kube-scheduler", words]}
    found = examine(seen(schedulers=[{"spec": {"containers": [container]}}])).findings
    (finding,) = [each for each in found if each.check == "kube-scheduler gates"]
    assert finding.message.startswith("InPlacePodVerticalScalingSchedulerPreemption is on")


@pytest.mark.parametrize(
    ("minor", "said"),
    [
        (min(READ), "was read, and is not tested"),
        (max(READ), "was read, and is not tested"),
        (min(READ) - 1, "is not tested"),
        (max(TESTED) + 1, "is not tested"),
    ],
)
def test_it_is_said_how_a_version_is_known_that_was_not_run(minor: int, said: str) -> None:
    found = examine(seen(version=[{"minor": f"{minor}", "gitVersion": "v1"}])).findings[0]
    assert found.state is State.WARN
    assert found.message == f"v1 {said}"
    assert found.remedy == f"use Kubernetes 1.{min(TESTED)} to 1.{max(TESTED)}"


@pytest.mark.parametrize("minor", TESTED)
def test_each_version_that_was_run_is_well_and_named(minor: int) -> None:
    version = {"major": "1", "minor": f"{minor}+", "gitVersion": f"v1.{minor}.99-eks"}
    found = examine(seen(version=[version])).findings[0]
    assert found.state is State.OK
    assert found.message == f"v1.{minor}.99-eks; tested on {TESTED[minor]}"


@pytest.mark.parametrize("name", WELL)
def test_what_may_not_be_read_is_not_known(name: str) -> None:
    examined = seen(**{name: Unread(name, f"not allowed to list {name}")})
    found = [each for each in examine(examined).findings if each.state is not State.OK]
    if name in ("secrets", "bindings"):
        assert not found, "the authority is judged instead, and a webhook is enough"
        return
    assert found
    assert {each.state for each in found} == {State.UNKNOWN}
    assert all(each.message == f"not allowed to list {name}" for each in found)


def test_binder_is_kai_in_its_own_namespace_alone() -> None:
    for namespace, found in (("others", State.OK), ("kai-scheduler", State.WARN)):
        more = [*WELL["deployments"][1], deployment("binder", namespace=namespace)]
        assert states(seen(deployments=more))["other gang systems"] is found


def test_the_older_authority_of_a_bundle_does_not_count() -> None:
    both = base64.b64encode(base64.b64decode(ENDED) + base64.b64decode(GOOD)).decode()
    bundle = webhooks(webhook("gate.muster.dev", "Fail", both), HOLD)
    examined = seen(configurations=bundle, secrets=Unread("secrets", "no"))
    assert states(examined)["certificate authority"] is State.OK


def test_without_a_webhook_a_policy_is_enough() -> None:
    bound = {"metadata": {"name": "muster-gate"}, "spec": {"policyName": "muster-gate"}}
    alone = [deployment("muster-coordinator")]
    changed: dict[str, Any] = {"configurations": [], "deployments": alone, "secrets": []}
    found = states(seen(**changed, bindings=[bound]))
    assert {*found.values()} == {State.OK}
    assert found["gates"] is State.OK
    others = {"metadata": {"name": "other"}, "spec": {"policyName": "other"}}
    for bindings in ([], [others], Unread("mutatingadmissionpolicybindings", "no")):
        found = states(seen(**changed, bindings=bindings))
        assert (found["webhooks"], found["muster-webhook"]) == (State.FAIL, State.FAIL)


def test_a_webhook_beside_a_policy_is_judged() -> None:
    """Left over from an installation with one, it would be in the way of pods."""
    bound = {"metadata": {"name": "muster-gate"}, "spec": {"policyName": "muster-gate"}}
    found = states(seen(bindings=[bound], endpoints=[]))
    assert found["webhook endpoints"] is State.FAIL


def test_cert_manager_takes_the_place_of_muster_certs() -> None:
    changed = webhooks(webhook("gate.muster.dev", "Fail"), HOLD)
    deployments = without("deployments", 2)
    assert states(seen(deployments=deployments))["muster-certs"] is State.FAIL
    injected = {"cert-manager.io/inject-ca-from": "muster-system/muster-webhook"}
    changed[0]["metadata"]["annotations"] = injected
    found = states(seen(configurations=changed, deployments=deployments))
    assert "muster-certs" not in found
    assert {*found.values()} == {State.OK}


def test_where_others_make_the_certificate_muster_certs_is_not_missed() -> None:
    found = seen(
        deployments=without("deployments", 2), secrets=[secret({"tls.crt": GOOD}, made_by="")]
    )
    assert "muster-certs" not in states(found)


@pytest.mark.parametrize(("content", "state"), [(GOOD, State.OK), (ENDED, State.FAIL)])
def test_a_certificate_that_cert_manager_writes_is_called_its(content: str, state: State) -> None:
    """It takes over a Secret of muster-certs with the labels that it has."""
    held = secret({"tls.crt": content})
    held["metadata"]["annotations"] = {"cert-manager.io/certificate-name": "theirs"}
    report = seen(deployments=without("deployments", 2), secrets=[held])
    assert "muster-certs" not in states(report)
    (found,) = [each for each in examine(report).findings if each.check == "certificate"]
    assert found.state is state
    assert "cert-manager writes it (Certificate theirs): muster-certs leaves it" in found.message
    asks = "kubectl -n muster-system describe certificate theirs"
    assert found.remedy == ("" if state is State.OK else asks)


def test_the_authority_that_serves_is_no_new_one() -> None:
    held = secret({"tls.crt": GOOD, "ca.crt": GOOD, "ca.key": "x"}, "muster-extender-tls")
    found = states(seen(secrets=[secret({"tls.crt": GOOD}), held]))
    assert found["extender certificate"] is State.OK
    assert "extender authority" not in found


def test_a_chain_lasts_as_long_as_its_link_that_ends_first() -> None:
    chain = base64.b64encode(base64.b64decode(GOOD) + base64.b64decode(AGED)).decode()
    assert states(seen(secrets=[secret({"tls.crt": chain})]))["certificate"] is State.WARN


# ---- the command

PLURALS = {
    "definitions": "customresourcedefinitions",
    "configurations": "mutatingwebhookconfigurations",
    "bindings": "mutatingadmissionpolicybindings",
    "endpoints": "endpointslices",
    "secrets": "secrets",
    "deployments": "deployments",
    "queues": "gangqueues",
    "namespaces": "namespaces",
    "ray_clusters": "rayclusters",
}


def test_the_command_fails_where_something_fails() -> None:
    examined = seen()
    lists = {plural: getattr(examined, name) for name, plural in PLURALS.items()}
    done = run(FakeReader(lists), "doctor")
    assert done.exit_code == 1, done.output
    assert "fail     leader" in done.stdout
    assert "kubectl -n muster-system logs deployment/muster-coordinator" in done.stdout


def test_it_looks_where_muster_is() -> None:
    """Where the account of its coordinator is, whatever else is called so."""
    examined = seen(deployments=[deployment("muster-coordinator")])
    account = {"kind": "ServiceAccount", "name": "muster-coordinator", "namespace": "gangs"}
    binding = {"metadata": {"name": "muster-coordinator"}, "subjects": [account]}
    lists = {plural: getattr(examined, name) for name, plural in PLURALS.items()}
    lists["clusterrolebindings"] = (msgspec.convert(binding, AccountBinding),)
    done = run(FakeReader(lists), "doctor")
    assert "there is no Deployment gangs/muster-coordinator" in done.stdout
    assert "it is asked about namespace gangs" in done.stdout


def test_without_any_right_all_is_unknown_and_nothing_fails() -> None:
    places = {
        (plural, namespace): NotAllowed(f"not allowed to list {plural}")
        for plural in (*PLURALS.values(), "leases", "pods", "configmaps", "podgroups", "version")
        for namespace in ("", NAMESPACE, "kube-system")
    }
    done = run(FakeReader({}, places), "doctor", "-o", "json")
    assert done.exit_code == 0, done.output
    assert {each["state"] for each in msgspec.json.decode(done.stdout)["findings"]} == {"unknown"}


def test_a_cluster_that_cannot_be_reached_is_one_line() -> None:
    done = run(FakeReader({}, {("", ""): CannotRead("the API server cannot be reached")}), "doctor")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == "Error: the API server cannot be reached\n"
