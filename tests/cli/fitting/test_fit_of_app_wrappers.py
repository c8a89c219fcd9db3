"""`muster fit` of AppWrappers."""

import copy

import pytest

from cli.endings import FINE, NO
from kube.objects import names
from tests.cli.fitting.asked import TENANT, queue, room
from tests.cli.fitting.reader import MemoryReader, answer, answers, fit, reader_of
from tests.coordinator.app_wrappers import app_wrapper, config_map, job
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    node,
)
from tests.coordinator.world import World

# ---- AppWrappers


def mcad(name: str, *objects: Json) -> Json:
    """One of MCAD's generation."""
    items = [{"replicas": 1, "generictemplate": each} for each in objects]
    return {
        "apiVersion": "mcad.ibm.com/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"resources": {"GenericItems": items}},
    }


def created_by_none(wrapper: Json) -> Json:
    """As it stands in a file, before the webhook has noted its creator."""
    bare = copy.deepcopy(wrapper)
    del bare["metadata"]["annotations"]
    return bare


@pytest.mark.parametrize("pods", [3, 5])
@pytest.mark.parametrize("kind", ["job", "raycluster", "mcad"])
def test_an_app_wrapper_is_judged_as_it_is_decided_once_it_is_created(kind: str, pods: int) -> None:
    world = World(node("a", cpu=4), queue("q", quota={"cpu": 9}))
    wrapped = gang_of("inner", pods - 1, labels={}) if kind == "raycluster" else job("inner", pods)
    wrapped.get("metadata", {}).pop("namespace", None)
    made = mcad("w", wrapped) if kind == "mcad" else app_wrapper("w", wrapped)
    asked = made if kind == "mcad" else created_by_none(made)
    before = len(world.api.history)
    found = answer(world, asked)
    assert len(world.api.history) == before
    assert (found["kind"], found["name"], found["queue"]) == ("AppWrapper", "w", "q")
    assert found["fits"] == ("Yes" if pods == 3 else "No"), found
    if pods == 3:
        assert sum(each["pods"] for each in found["placement"]) == 3
        return
    assert [each["fit"] for each in found["largestThatFit"]][-1] == (
        3 if kind == "raycluster" else 4
    )
    made["metadata"]["annotations"] = {names.CREATED_BY: '{"username": "ann"}'}
    world.create(made)
    world.settle(seconds=30)
    status = world.status("appwrapper-mcad.w" if kind == "mcad" else "appwrapper.w")
    assert (found["reason"], found["message"]) == (status["reason"], status["message"])


def test_app_wrappers_and_ray_clusters_of_one_file_are_judged_together() -> None:
    world = World(node("a", cpu=8))
    both = fit(reader_of(world), app_wrapper("w", job("j", 5)), gang_of("train", 4))
    assert [each["fits"] for each in answers(both)] == ["Yes", "No"]


DRAWN = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]


@pytest.mark.parametrize(
    ("wrapper", "fits", "reason", "said"),
    [
        (app_wrapper("w", config_map("c")), "Yes", "NotRequired", "no wrapped object has pods"),
        (app_wrapper("w", {"kind": "Job"}), "No", "PodsRefused", "apiVersion"),
        (app_wrapper("w", job("j", 9, nodeName="a")), "No", "PodsRefused", "spec.nodeName"),
        (app_wrapper("w", job("j", 1, volumes=DRAWN)), "Unknown", "", "is made for a pod that"),
        ({**app_wrapper("w"), "spec": {"components": 7}}, "No", "PodsRefused", "components"),
    ],
)
def test_what_of_an_app_wrapper_cannot_be_read_or_foreseen_is_said(
    wrapper: Json, fits: str, reason: str, said: str
) -> None:
    found = answer(World(node("a")), wrapper)
    assert (found["fits"], found["reason"]) == (fits, reason), found["message"]
    assert said in found["message"]


def test_a_suspended_app_wrapper_is_judged_with_a_note_and_one_that_exists_beside_itself() -> None:
    world = World(node("a", cpu=4))
    found = answer(world, app_wrapper("w", job("j", 2), suspend=True))
    assert found["fits"] == "Yes"
    assert found["notes"] == ["spec.suspend is true: judged as if it were resumed"]
    world.create(app_wrapper("w", job("j", 3)))
    world.settle(seconds=20)
    found = answer(world, app_wrapper("w", job("j", 2)))
    assert (found["fits"], found["reason"]) == ("No", "InsufficientResources")
    assert found["notes"] == ["AppWrapper team/w exists: judged as another one beside it"]


def test_a_tenant_may_ask_about_an_app_wrapper() -> None:
    found = answer(room(), app_wrapper("w", job("j", 2, gpu=8)), forbidden=TENANT)
    assert (found["fits"], found["reason"]) == ("No", "InsufficientResources")
    assert found["largestThatFit"][0]["fit"] == 1
    world = World(node("a", cpu=8))
    forbidden = (*TENANT, "limitranges", "resourcequotas", "runtimeclasses")
    found = answer(world, app_wrapper("w", job("j", 2)), nowhere=forbidden)
    assert found["fits"] == "Unknown", found["message"]


# ---- whether it could be created


def switched(on: str) -> Json:
    """The coordinator's Deployment with AppWrappers switched on, or not."""
    env = [{"name": "MUSTER_COORDINATOR_APP_WRAPPERS", "value": on}]
    return {
        "kind": "Deployment",
        "metadata": {"name": "muster-coordinator", "namespace": "muster-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "coordinator", "env": env}]}}},
    }


def with_deployment(world: World, found: Json) -> MemoryReader:
    """A reader that sees a Deployment, which no coordinator of a world watches."""
    return MemoryReader(lambda kind: [found] if kind == "deployments" else world.api.all(kind))


WRAPS_A_JOB = app_wrapper("w", job("j", 2), config_map("c"))


def test_a_right_that_its_caller_lacks_is_a_note() -> None:
    """It is judged all the same: an admin may ask for one who has it, without it."""
    reader = reader_of(World(node("a")))
    reader.lacking = ("create jobs.batch in namespace team",)
    result = fit(reader, WRAPS_A_JOB, gang_of("train", 1))
    (wrapper, cluster), code = answers(result), result.exit_code
    said = "you may not create jobs.batch in namespace team"
    assert wrapper["notes"] == [f"{said}: judged as if another user created it who may"]
    assert (wrapper["fits"], cluster["notes"], code) == ("Yes", [], FINE)


def test_a_right_to_the_object_itself_counts_too() -> None:
    reader = reader_of(World(node("a")))
    reader.lacking = ("create rayclusters.ray.io in namespace team",)
    ((note,),) = (each["notes"] for each in answers(fit(reader, gang_of("train", 1))))
    assert note.startswith("you may not create rayclusters.ray.io in namespace team")


@pytest.mark.parametrize(
    ("unserved", "said"),
    [
        ("AppWrapper", "the cluster does not serve AppWrapper of workload.codeflare.dev/v1beta2"),
        ("Job", "spec.components[0] (Job j): the cluster does not serve Job of batch/v1"),
    ],
)
def test_what_is_not_served_cannot_be_created(unserved: str, said: str) -> None:
    """And it takes no room from what can."""
    reader = reader_of(World(node("a", cpu=2)))
    reader.unserved = (unserved,)
    result = fit(reader, WRAPS_A_JOB, gang_of("train", 1))
    wrapper, cluster = answers(result)
    assert (wrapper["fits"], wrapper["reason"], wrapper["message"]) == ("No", "PodsRefused", said)
    assert (cluster["fits"], result.exit_code) == ("Yes", NO)


def test_what_has_no_namespace_cannot_be_wrapped() -> None:
    wrapper = app_wrapper("w", {**config_map("c"), "kind": "ClusterRole", "apiVersion": "x.io/v1"})
    found = answer(World(node("a")), wrapper)
    where = "spec.components[0] (ClusterRole c)"
    said = f"{where}: ClusterRole of x.io/v1 has no namespace; allowed: a kind that has one"
    assert (found["fits"], found["message"]) == ("No", said)


@pytest.mark.parametrize(("on", "fits"), [("true", "Yes"), ("false", "No")])
def test_an_app_wrapper_waits_for_ever_where_they_are_switched_off(on: str, fits: str) -> None:
    reader = with_deployment(World(node("a")), switched(on))
    wrapper, cluster = answers(fit(reader, WRAPS_A_JOB, gang_of("train", 1)))
    assert (wrapper["fits"], cluster["fits"]) == (fits, "Yes")
    assert ("the component app-wrapper" in wrapper["message"]) is (fits == "No")


def test_where_rights_are_not_told_a_note_says_so_once_for_each_object() -> None:
    reader = reader_of(World(node("a")))
    reader.mute = True
    result = fit(reader, WRAPS_A_JOB)
    assert [each["fits"] for each in answers(result)] == ["Yes"]
    said = "it does not say: it is not judged whether AppWrapper team/w can be created"
    assert result.stderr.splitlines()[-1] == f"Note: {said}"
