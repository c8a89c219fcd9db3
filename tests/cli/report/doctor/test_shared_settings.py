"""Doctor compares settings that several programs must have alike."""

from typing import Any

import pytest

from cli.report.doctor.checks import examine
from cli.report.doctor.findings import Finding, State
from cli.report.doctor.shared_settings import CHECK, SHARED
from coordinator.settings import Settings as CoordinatorSettings
from extender.settings import Settings as ExtenderSettings
from runtime.program import ProgramSettings
from tests.cli.report.doctor.clusters import Json, deployment, seen
from webhook.settings import Settings as WebhookSettings

PROGRAMS: dict[str, type[ProgramSettings]] = {
    "coordinator": CoordinatorSettings,
    "extender": ExtenderSettings,
    "webhook": WebhookSettings,
}
OF_EACH_PROCESS = {"kubeconfig", "listen_address", "listen_port", *ProgramSettings.model_fields}


def given(program: str, name: str, value: str | None) -> Json:
    variable = {"name": f"MUSTER_{program.upper()}_{name}", "value": value}
    return deployment(f"muster-{program}", env=[variable])


def found(check: str, *deployments: Json, **changed: Any) -> list[Finding]:
    findings = examine(seen(deployments=deployments, **changed)).findings
    return [each for each in findings if each.check == check]


def test_each_setting_of_coordinator_and_extender_is_compared() -> None:
    both = set(CoordinatorSettings.model_fields) & set(ExtenderSettings.model_fields)
    compared = {each.name.lower() for each in SHARED if "extender" in each.programs}
    assert both - OF_EACH_PROCESS == compared


@pytest.mark.parametrize("shared", SHARED)
def test_the_default_is_that_of_each_program(shared: Any) -> None:
    for program in shared.programs:
        kind, name = PROGRAMS[program], shared.name.lower()
        set_to_default = kind.model_validate({name: shared.default})
        assert getattr(set_to_default, name) == getattr(kind.model_validate({}), name)


@pytest.mark.parametrize(
    ("name", "other", "value", "shown", "default"),
    [
        ("FEATURE_GATES_OFF", "extender", '["B", "A"]', '["A", "B"]', "[]"),
        ("APP_WRAPPERS", "extender", "True", "true", "false"),
        ("DISPATCH", "webhook", "1", "true", "false"),
    ],
)
def test_both_values_are_told_where_they_differ(
    name: str, other: str, value: str, shown: str, default: str
) -> None:
    alone = given("coordinator", name, value), deployment(f"muster-{other}")
    (finding,) = found(name, *alone)
    assert finding.state is State.WARN
    assert f"MUSTER_COORDINATOR_{name} is {shown}" in finding.message
    assert f"MUSTER_{other.upper()}_{name} is {default}" in finding.message
    assert "docs/" in finding.remedy
    assert found(CHECK, *alone) == []
    alike = given("coordinator", name, value), given(other, name, shown)
    assert found(name, *alike) == []
    assert found(CHECK, *alike)[0].state is State.OK


def test_a_program_that_is_not_installed_is_not_compared() -> None:
    assert found("FEATURE_GATES_OFF", given("coordinator", "FEATURE_GATES_OFF", '["A"]')) == []


def test_an_extender_beside_kube_scheduler_in_its_pod_counts() -> None:
    containers = [{"image": "k:v1.37.2"}, {"name": "beside", "args": ["extender"]}]
    coordinator = given("coordinator", "FEATURE_GATES_OFF", '["A"]')
    (finding,) = found(
        "FEATURE_GATES_OFF", coordinator, schedulers=[{"spec": {"containers": containers}}]
    )
    assert finding.state is State.WARN


def test_a_value_that_stands_in_another_object_is_not_judged() -> None:
    coordinator = given("coordinator", "FEATURE_GATES_OFF", None)
    (finding,) = found("FEATURE_GATES_OFF", coordinator, deployment("muster-extender"))
    assert finding.state is State.UNKNOWN
    extender = deployment("muster-extender")
    extender["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"prefix": "MUSTER_"}]
    (finding,) = found("FEATURE_GATES_OFF", deployment("muster-coordinator"), extender)
    assert finding.state is State.UNKNOWN
    assert "MUSTER_EXTENDER_FEATURE_GATES_OFF" in finding.message


@pytest.mark.parametrize("written", ["7", "[[]]", "[", "", '[1, "a"]'])
def test_what_is_no_list_of_names_is_shown_as_it_is(written: str) -> None:
    extender = given("extender", "FEATURE_GATES_OFF", written)
    (finding,) = found("FEATURE_GATES_OFF", deployment("muster-coordinator"), extender)
    assert finding.message.endswith(f"MUSTER_EXTENDER_FEATURE_GATES_OFF is {written}")
