"""Doctor's checks of a cluster, and what they make of rights."""

from typing import Any

import msgspec
import pytest

from cli.endings import CannotRead, NotAllowed
from cli.read.home import AccountBinding
from cli.report.doctor.checks import examine
from cli.report.doctor.findings import State
from cli.report.doctor.kubernetes import READ, TESTED
from cli.report.snapshot import Unread
from tests.cli.fake_reader import FakeReader, run
from tests.cli.report.doctor.clusters import (
    HOLD,
    NAMESPACE,
    WELL,
    Json,
    deployment,
    seen,
    states,
    webhook,
    webhooks,
)


def test_a_cluster_that_is_well_has_nothing_to_mend() -> None:
    report = examine(seen())
    assert {each.state for each in report.findings} == {State.OK}
    assert not any(each.remedy for each in report.findings)
    assert len(report.findings) == 19
    assert not report.failed


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
