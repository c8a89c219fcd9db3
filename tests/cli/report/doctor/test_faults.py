"""Doctor finds each fault."""

from datetime import timedelta

import pytest

from cli.report.doctor.checks import examine
from cli.report.doctor.findings import State
from cli.report.snapshot import Unread
from kube.objects import names
from tests.cli.report.doctor.clusters import (
    AGED,
    ENDED,
    GOOD,
    HOLD,
    NOW,
    WELL,
    Json,
    certificate,
    definitions,
    deployment,
    lease,
    secret,
    seen,
    slice_of,
    states,
    webhook,
    webhooks,
    without,
)

EARLY = certificate(NOW + timedelta(hours=1), NOW + timedelta(days=300))


def asked(words: tuple[str, ...]) -> Json:
    """A container with these arguments, as a command where there is one and else as arguments."""
    return {"command": ["kube-scheduler", *words]} if len(words) == 1 else {"args": [*words]}


def for_volcano() -> Json:
    """KubeRay's operator with the flag that has it set the name of another scheduler."""
    found = deployment("kuberay-operator", namespace="ray")
    found["spec"]["template"]["spec"]["containers"][0]["args"] = ["--batch-scheduler=volcano"]
    return found


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
