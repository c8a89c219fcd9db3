"""Items that are refused, or that Muster or their creator may not create."""

import pytest

from kube.objects import names
from tests.wrapper.fake_api import not_granted, refused
from tests.wrapper.journeys.worlds import running
from tests.wrapper.world import codeflare, config_map, job, mcad, with_wrapper


def test_an_item_that_is_refused_takes_the_others_back_and_names_itself() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["jobs"] = refused("spec.template: Invalid value")
    world.place()
    world.settle(10)
    assert world.phase == "Failed"
    assert world.items == []
    assert world.status["reason"] == "ItemCreationFailure"
    said = "spec.components[1] (Job work): spec.template: Invalid value"
    assert world.status["message"] == said
    assert [told.message for told in world.told][-1] == said


def test_what_comes_after_an_item_that_is_refused_is_never_created() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["configmaps"] = refused("data: Invalid value")
    world.place()
    world.settle(1)
    assert (world.phase, world.api.created) == ("Failed", [])
    assert world.status["message"] == (
        "spec.components[0] (ConfigMap settings): data: Invalid value"
    )


def test_mcads_generation_says_it_in_its_words() -> None:
    world = with_wrapper(mcad(config_map(), job()))
    world.api.refuse["jobs"] = refused("no")
    world.place()
    world.settle(10)
    assert world.status["state"] == "Failed"
    assert world.status["conditions"][-1]["reason"] == "ItemCreationFailure."


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ("deny", "user alice, the creator, may not create jobs.batch in namespace ns"),
        ("unreviewed", "admission of AppWrappers is not installed"),
        ("taken", "Job work exists and does not belong to the AppWrapper"),
    ],
)
def test_nothing_is_created_that_the_creator_may_not(spoil: str, says: str) -> None:
    world = with_wrapper(codeflare(job()))
    if spoil == "deny":
        world.api.deny = {"jobs"}
    elif spoil == "unreviewed":
        world.api.reviewed = False
    else:
        world.api.put("jobs", job())
    world.place()
    world.settle(5)
    assert world.api.created == []
    assert says in world.status["message"]
    assert spoil != "taken" or world.items == ["work"]


def test_an_object_of_an_earlier_app_wrapper_of_the_name_is_waited_for() -> None:
    world = with_wrapper(codeflare(job()))
    owner = {"kind": "AppWrapper", "name": "aw", "uid": "earlier", "controller": True}
    earlier = {"name": "work", "ownerReferences": [owner]}
    world.api.put("jobs", {**job(), "metadata": earlier})
    world.place()
    world.settle(5)
    assert (world.phase, world.api.created) == ("Resuming", [])
    assert "still being deleted" in world.status["message"]
    world.api.remove("jobs", "work")
    world.settle(30)
    assert world.phase == "Running"


def test_an_item_that_is_deleted_by_hand_is_not_created_again() -> None:
    world = running(codeflare(config_map(), job()))
    world.api.remove("configmaps", "settings")
    world.settle(60)
    assert (world.phase, world.items) == ("Failed", [])
    assert "ConfigMap settings was deleted while the AppWrapper ran" in world.status["message"]


def test_a_kind_that_muster_itself_may_not_create_is_not_tried_again() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["jobs"] = not_granted()
    world.place()
    world.settle(5)
    assert (world.phase, world.status["reason"]) == ("Failed", "ItemCreationFailure")
    assert f"label {names.WRAPPED_OBJECTS}" in world.status["message"]


def test_an_api_server_that_does_not_know_all_roles_yet_is_asked_again() -> None:
    world = with_wrapper(codeflare(config_map(), job()))
    world.api.refuse["jobs"] = not_granted(': RBAC: clusterrole "x" not found')
    world.place()
    world.settle(5)
    assert world.phase == "Resuming"
    world.api.refuse.clear()
    world.settle(10)
    assert world.phase == "Running"
