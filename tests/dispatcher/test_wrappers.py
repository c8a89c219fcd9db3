"""AppWrappers are sent whole; their status and their end come up, in the words of MCAD too."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from appwrapper.status.mcad_states import NO_CLUSTER, NO_QUOTA
from appwrapper.status.sent import Waits
from dispatcher.copies import copy_body, offer_body, wishes_patch
from dispatcher.messages import (
    HERE,
    CreateCopy,
    Gone,
    MirrorStatus,
    Seen,
    TellWarning,
    WithdrawOffer,
    WriteRecord,
)
from dispatcher.reading import RayObject, Warned, copy_of, original_of, turn_of
from kube.gang.sent import APP_WRAPPER, MCAD_APP_WRAPPER
from kube.objects import names
from kube.objects.clusters.dispatch import CLOSED
from kube.objects.gang import Gang
from tests.dispatcher.objects import app_wrapper, meta, original
from tests.dispatcher.test_jobs import ANSWER, EAST_FIRST
from tests.dispatcher.world import World

KINDS = pytest.mark.parametrize("kind", [APP_WRAPPER, MCAD_APP_WRAPPER])


def runs(kind: str = APP_WRAPPER) -> World:
    world = World(EAST_FIRST, east=1, west=1)
    world.submit("train", kind=kind)
    world.settle(3.0)
    assert world.runs() == {"train": ["east"]}
    return world


def ends(world: World, reason: str) -> None:
    """Have the member close what it has of the gang; a copy that ended stays."""
    copies = dict(world.members["east"].copies)
    world.close("east", "train", reason)
    world.members["east"].copies = copies


@pytest.mark.parametrize(
    ("kind", "version"),
    [(APP_WRAPPER, names.CODEFLARE_V1BETA2), (MCAD_APP_WRAPPER, names.MCAD_V1BETA1)],
)
def test_a_copy_is_as_its_user_wrote_it_and_says_what_it_is_made_for(
    kind: str, version: str
) -> None:
    found = original("train", kind)
    template = offer_body(found, 1, "m", 0)["spec"]["template"]
    body = copy_body(found, ANSWER, "m")
    for each in (template, body):
        assert (each["apiVersion"], each["kind"]) == (version, "AppWrapper")
        assert each["spec"] == msgspec.json.decode(found.spec)
    notes = body["metadata"]["annotations"]
    assert notes[names.MADE_FOR] == "offer/uid-offer"
    assert notes["by"] == "ann"
    assert not notes.keys() & {names.DISPATCHED, names.CREATED_BY}
    assert template["annotations"] == {"by": "ann"}


def test_one_without_the_notes_of_the_webhook_runs_on_the_manager() -> None:
    found = app_wrapper("train")
    for key in (names.DISPATCHED, names.CREATED_BY):
        less = {each: said for each, said in found.metadata.annotations.items() if each != key}
        metadata = msgspec.structs.replace(found.metadata, annotations=less)
        assert original_of(RayObject(metadata, found.spec), APP_WRAPPER) is None


def test_suspend_goes_down_once() -> None:
    before = original("train", APP_WRAPPER)
    body = copy_body(before, ANSWER, "m")
    body["metadata"] |= {"uid": "uid-copy", "resourceVersion": "7"}
    copy = copy_of(msgspec.json.decode(msgspec.json.encode(body), type=RayObject), APP_WRAPPER)
    assert wishes_patch(before, copy) == []
    suspended = original("train", APP_WRAPPER, suspend=True)
    (_, change, noted) = wishes_patch(suspended, copy)
    assert (change["path"], change["value"]) == ("/spec/suspend", True)
    assert wishes_patch(suspended, replace(copy, sent=noted["value"])) == []


@KINDS
def test_its_status_is_that_of_its_copy(kind: str) -> None:
    world = runs(kind)
    status: dict[str, Any] = {"phase": "Running", "transitionCount": 2, "conditions": [{"a": 1}]}
    world.report("east", "train", **status)
    world.settle(1.0)
    assert world.statuses["train"] == status


@KINDS
@pytest.mark.parametrize("reason", ["JobComplete", "JobFailed", "JobGone"])
def test_one_that_ended_is_never_sent_again(kind: str, reason: str) -> None:
    world = runs(kind)
    world.report("east", "train", phase="Succeeded")
    ends(world, reason)
    world.settle(100.0)
    record = world.dispatch("train")
    assert (record.phase, record.end, record.attempt) == (CLOSED, reason, 1)
    assert not [each for each in world.written(WithdrawOffer) if each.member == "east"]
    world.lead()
    world.settle(100.0)
    assert len(world.written(CreateCopy)) == 1
    assert world.statuses["train"]["phase"] == "Succeeded"
    world.delete("train")
    world.settle(3.0)
    assert not world.members["east"].answers


@KINDS
@pytest.mark.parametrize(
    ("reason", "phase"),
    [("JobComplete", "Succeeded"), ("JobFailed", "Failed"), ("JobGone", "Failed")],
)
def test_of_one_whose_copy_is_gone_the_member_tells_the_end(
    kind: str, reason: str, phase: str
) -> None:
    world = runs(kind)
    world.report("east", "train", phase="Running")
    copy = world.members["east"].copies["uid-train"]
    world.close("east", "train", reason)
    world.tell(Gone("east", copy))
    world.settle(3.0)
    assert world.statuses["train"]["phase"] == phase
    assert reason in world.statuses["train"]["message"]
    count = len(world.written(MirrorStatus))
    world.settle(30.0)
    assert len(world.written(MirrorStatus)) == count


QUOTA = Waits("QuotaExceeded", "8 nvidia.com/gpu are free")


def test_before_its_turn_its_status_says_why_its_gang_waits_in_its_own_words() -> None:
    """As that of one that runs on this cluster."""
    said = {}
    for kind in (APP_WRAPPER, MCAD_APP_WRAPPER):
        world = World(east=1)
        world.submit("train", kind=kind, waits=QUOTA)
        world.settle(3.0)
        said[kind] = world.statuses["train"]
        assert not world.written(WriteRecord)
        assert (said[kind]["phase"], said[kind]["reason"]) == ("Suspended", "QuotaExceeded")
    (quota,) = (e for e in said[APP_WRAPPER]["conditions"] if e["type"] == "QuotaReserved")
    assert (quota["status"], quota["message"]) == ("False", QUOTA.message)
    of_mcad = said[MCAD_APP_WRAPPER]
    assert (of_mcad["state"], of_mcad["queuejobstate"]) == ("Pending", "Backoff")
    assert of_mcad["conditions"][-1]["message"] == NO_QUOTA


@KINDS
def test_that_is_written_anew_for_another_reason_at_once_and_for_other_numbers_at_times(
    kind: str,
) -> None:
    world = World(east=1)
    world.submit("train", kind=kind, waits=QUOTA)
    world.settle(1.0)
    world.write_turn("train", waits=Waits("QuotaExceeded", "9 are free"))
    world.settle(1.0)
    assert world.statuses["train"]["message"] == QUOTA.message
    world.settle(40.0, each=5.0)
    assert world.statuses["train"]["message"] == "9 are free"
    world.write_turn("train", waits=Waits("Suspended", "it is suspended"))
    assert world.statuses["train"]["reason"] == "Suspended"
    world.write_turn("train", waits=None, is_its_turn=True)
    world.settle(5.0)
    assert world.runs() == {"train": ["east"]}


def test_one_that_was_stopped_says_why_it_waits_in_its_old_place() -> None:
    world = runs()
    world.report("east", "train", phase="Running")
    world.write_turn("train", is_its_turn=False, is_to_end=True)
    world.settle(3.0)
    world.write_turn("train", waits=QUOTA, is_its_turn=False)
    assert world.statuses["train"]["reason"] == "QuotaExceeded"


def gang_that_waits(name: str, phase: str, **status: Any) -> Gang:
    found = {"metadata": {"name": name}, "spec": {"rayClusterUid": "u"}}
    return msgspec.convert({**found, "status": {"phase": phase, **status}}, Gang)


def test_of_gangs_that_wait_those_of_appwrappers_are_kept() -> None:
    waits = {"reason": "QuotaExceeded", "message": "it waits"}
    assert turn_of(gang_that_waits("train", "Queued", **waits)) is None
    kept = turn_of(gang_that_waits("appwrapper.train", "Queued", **waits))
    assert kept is not None
    assert kept.waits == Waits("QuotaExceeded", "it waits")
    record = {"attempt": 1, "term": 1, "phase": "Closed"}
    for phase, expected in (("Queued", True), ("QuotaReserved", False)):
        kept = turn_of(gang_that_waits("appwrapper-mcad.t", phase, dispatch=record, **waits))
        assert kept is not None
        assert bool(kept.waits) is expected
    over = turn_of(
        gang_that_waits("appwrapper.t", "Finished", dispatch={**record, "end": "JobComplete"})
    )
    assert over is not None
    assert over.waits is None


def full(kind: str) -> World:
    """Two members without room, which have said so."""
    world = World(EAST_FIRST, east=0, west=0)
    world.submit("train", kind=kind)
    world.settle(10.0)
    assert world.dispatch("train").refusals
    return world


def test_mcads_message_is_said_while_no_cluster_offers() -> None:
    world = full(MCAD_APP_WRAPPER)
    status = world.statuses["train"]
    assert (status["state"], status["message"]) == ("Pending", NO_CLUSTER)
    last = status["conditions"][-1]
    assert (last["type"], last["reason"]) == ("Backoff", "AppWrapperNotRunnable.")
    assert last["message"] == NO_CLUSTER
    count = len(world.written(MirrorStatus))
    world.settle(300.0)
    assert len(world.written(MirrorStatus)) == count
    world.members["west"].room = 1
    world.settle(5.0)
    assert world.runs() == {"train": ["west"]}
    world.report("west", "train", phase="Running", state="Running")
    world.settle(1.0)
    assert world.statuses["train"] == {"phase": "Running", "state": "Running"}


def test_so_it_is_in_the_conditions_of_codeflares_generation() -> None:
    status = full(APP_WRAPPER).statuses["train"]
    (quota,) = (each for each in status["conditions"] if each["type"] == "QuotaReserved")
    assert (status["phase"], quota["status"], quota["message"]) == (
        "Suspended",
        "False",
        NO_CLUSTER,
    )


@KINDS
def test_one_that_its_member_stopped_goes_on_elsewhere(kind: str) -> None:
    world = runs(kind)
    world.report("east", "train", phase="Running")
    world.members["west"].room = 0
    world.close("east", "train", "Stopped")
    world.settle(1.0)
    assert world.statuses["train"]["phase"] == "Suspended"
    world.members["west"].room = 1
    world.settle(5.0)
    assert world.runs() == {"train": ["west"]}


def test_one_of_the_other_group_that_says_it_is_the_copy_is_not_believed() -> None:
    world = runs()
    true = world.members["east"].copies["uid-train"]
    forged = replace(true, kind=MCAD_APP_WRAPPER, status=b'{"phase": "Succeeded"}')
    written = len(world.written(MirrorStatus))
    world.tell(Seen("east", forged))
    assert len(world.written(MirrorStatus)) == written


@KINDS
@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("AppWrapper", "train"),
        ("Job", "trains-work"),
        ("Pod", "trains-work-x7b2k"),
        ("ReplicaSet", "trains-work-5d8f"),
    ],
)
def test_a_warning_about_its_copy_or_what_it_wraps_is_told(kind: str, what: str, name: str) -> None:
    world = runs(kind)
    world.tell(Seen("east", Warned(meta("e"), what, name, "FailedMount", "it failed", "")))
    (told,) = world.written(TellWarning)
    assert told.message == f"cluster east: {what} {name}: it failed"


@KINDS
@pytest.mark.parametrize("name", ["trains-worker", "trains", "work"])
def test_one_about_another_object_is_not(kind: str, name: str) -> None:
    world = runs(kind)
    world.tell(Seen("east", Warned(meta("e"), "Pod", name, "FailedMount", "it failed", "")))
    assert not world.written(TellWarning)


def test_a_gang_that_was_deleted_by_hand_gets_the_record_of_its_end_back() -> None:
    world = runs()
    ends(world, "JobFailed")
    world.settle(1.0)
    world.tell(Gone(HERE, world.turns.pop("train")))
    world.write_turn("train", is_its_turn=True)
    world.settle(5.0)
    assert (world.dispatch("train").phase, world.dispatch("train").end) == (CLOSED, "JobFailed")
    assert len(world.written(CreateCopy)) == 1
