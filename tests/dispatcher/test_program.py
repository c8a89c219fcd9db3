"""The dispatcher on three control planes: a gang runs whole on one member, once."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import pytest

from kube.objects import names
from testbed import components
from testbed.errors import TestbedError
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group
from tests.dispatcher.site import LONG, PODS, QUEUE, QUEUES, Site, queue, started

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(1800)]

LOST_AFTER = 20
"""Seconds; the API server allows a queue no less than 300."""

_PREEMPTS = '{"spec": {"preemption": {"withinQueue": "LowerPriority"}}}'
_POLICIES = "/apis/admissionregistration.k8s.io/v1"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with started(tmp_path_factory.mktemp("clusters")) as found:
        found.manager.cluster.api.create(QUEUES, queue(clusters={}))
        yield found


@pytest.fixture
def site(standing: Site) -> Iterator[Site]:
    """The clusters with a dispatcher, and nothing left when the test is over."""
    standing.start_dispatcher()
    standing.wait_connected()
    yield standing
    standing.clear()
    standing.kill_dispatchers()


def whole(site: Site, *gangs: str) -> list[str]:
    """Those that run whole, each on one member."""
    return [name for name in gangs if site.whole(name)]


def refusals(site: Site, name: str) -> dict[str, str]:
    found = site.dispatch(name).get("refusals", ())
    return {each["cluster"]: each.get("message", "") for each in found}


def test_of_three_gangs_two_run_and_the_third_says_why_for_each_and_follows(site: Site) -> None:
    gangs = ("one", "two", "three")
    for name in gangs:
        site.submit(name)
    wait_until(lambda: len(whole(site, *gangs)) == 2, "two gangs to run", seconds=LONG)
    (third,) = {*gangs} - {*whole(site, *gangs)}

    def says_why() -> bool:
        said = refusals(site, third)
        return {*said} == {"east", "west"} and all("fit" in each for each in said.values())

    wait_until(says_why, "the third to say why", seconds=LONG, seen=lambda: site.dispatch(third))
    first = next(name for name in gangs if name != third)
    where = site.whole(first)
    record = site.dispatch(first)
    assert (record["cluster"], record["phase"]) == (where, "Started")
    site.manager.wait_phase(first, "Running")
    site.manager.wait_phase(third, "QuotaReserved")

    copy = site.members[where].get("RayCluster", first)
    assert "managedBy" not in copy["spec"]
    (owner,) = copy["metadata"]["ownerReferences"]
    assert owner["kind"] == "GangOffer"

    def mirrored() -> bool:
        found = site.manager.get("RayCluster", first)
        said = {each["type"]: each for each in found.get("status", {}).get("conditions", ())}
        is_seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
        return is_seen and where in said["muster.dev/Dispatched"]["message"]

    wait_until(mirrored, "its status to come up", seconds=LONG)
    (pod, *_) = site.members[where].bound(first)
    site.warn(where, pod, "FailedMount", 'secret "data" not found')
    said = f'cluster {where}: Pod {pod}: secret "data" not found'
    wait_until(lambda: said in site.warnings(first), "the Warning to be told", seconds=LONG)
    site.manager.delete("RayCluster", first)
    wait_until(
        lambda: third in whole(site, third) and site.whole(third) == where,
        "the third to follow",
        seconds=LONG,
    )
    assert site.member_cluster(where)["status"]["uid"]


def test_a_dispatcher_that_dies_between_record_and_start_has_a_successor(site: Site) -> None:
    for plot in site.members.values():
        _refuse_acceptances(plot)
    site.submit("train")

    def recorded() -> str:
        return str(site.dispatch("train").get("cluster", ""))

    where = wait_until(recorded, "a member to be on record", seconds=LONG)
    site.kill_dispatchers()
    assert not any(plot.all("RayCluster") for plot in site.members.values())
    for plot in site.members.values():
        _allow_acceptances(plot)
    site.start_dispatcher()
    wait_until(lambda: whole(site, "train"), "the gang to run", seconds=LONG)
    record = site.dispatch("train")
    assert record["attempt"] > 1 or record["cluster"] == where
    assert len(site.running()) == 1


def test_a_member_that_hangs_delays_no_gang_and_what_went_meanwhile_is_withdrawn(
    site: Site,
) -> None:
    site.submit("first")
    wait_until(lambda: whole(site, "first"), "the first to run", seconds=LONG)
    away = site.whole("first")
    other = next(name for name in site.members if name != away)
    server = site.members[away].cluster.process(components.API_SERVER)
    with server.paused():
        site.submit("second")

        def runs() -> bool:
            return site.is_whole_on(other, "second")

        wait_until(runs, "the second to run elsewhere", seconds=LONG)
        wait_until(
            lambda: site.connected(away)["status"] == "False",
            "the member to be told lost",
            seconds=LONG,
        )
        site.manager.delete("RayCluster", "first")
    wait_until(
        lambda: not site.members[away].all("GangOffer"), "the first to be withdrawn", seconds=LONG
    )
    assert whole(site, "second") == ["second"]


def test_a_rayjob_is_tried_twice_on_its_member_and_its_end_is_for_good(site: Site) -> None:
    """No dashboard answers, so what would come of that is written to its status."""
    made = site.submit_job("job")
    assert made["spec"]["managedBy"] == names.MANAGED_ELSEWHERE
    first = wait_until(lambda: _whole_of_job(site), "the job to run", seconds=LONG)
    site.manager.wait_phase("rayjob.job", "Running")
    member = site.members[first[1]]
    assert "managedBy" not in member.get("RayJob", "job")["spec"]

    def shows(**status: str) -> bool:
        found: Json = site.manager.get("RayJob", "job").get("status", {})
        return status.items() <= found.items()

    wait_until(lambda: shows(rayClusterName=first[0]), "its status to come up", seconds=LONG)
    member.patch_status("RayJob", "job", {"jobDeploymentStatus": "Retrying", "failed": 1})

    def tried_again() -> tuple[str, str] | None:
        now = _whole_of_job(site)
        return now if now is not None and now[0] != first[0] else None

    second = wait_until(tried_again, "the second try to run", seconds=LONG)
    assert second[1] == first[1]
    assert site.dispatch("rayjob.job")["attempt"] == 1

    site.manager.patch("RayJob", "job", {"spec": {"suspend": True}})
    wait_until(lambda: not member.all("RayCluster"), "it to be suspended", seconds=LONG)
    site.manager.patch("RayJob", "job", {"spec": {"suspend": False}})
    wait_until(lambda: _whole_of_job(site), "it to run again", seconds=LONG)
    assert site.dispatch("rayjob.job")["attempt"] == 1

    now = datetime.now(UTC).isoformat(timespec="seconds")
    done = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "endTime": now}
    member.patch_status("RayJob", "job", done)
    wait_until(
        lambda: site.dispatch("rayjob.job").get("end") == "JobComplete",
        "its end to be on record",
        seconds=LONG,
        seen=lambda: (site.dispatch("rayjob.job"), member.all("GangOffer")),
    )
    site.manager.wait_phase("rayjob.job", "Finished")
    wait_until(lambda: shows(jobDeploymentStatus="Complete"), "its end to come up", seconds=LONG)
    assert not site.running()
    site.submit("next")
    wait_until(lambda: whole(site, "next"), "another to run", seconds=LONG)
    assert site.dispatch("rayjob.job")["attempt"] == 1
    assert not [each for each in site.running() if each != "next"]


def test_a_change_of_a_rayservice_goes_to_its_member_where_kuberay_upgrades_it(site: Site) -> None:
    site.submit_service("serve")
    _, where = wait_until(lambda: _one_pod(site), "the service to run", seconds=LONG)
    site.manager.wait_phase("rayservice.serve", "Running")
    member = site.members[where]
    assert "managedBy" not in member.get("RayService", "serve")["spec"]

    def shows() -> bool:
        found: Json = site.manager.get("RayService", "serve").get("status", {})
        said = {each["type"]: each for each in found.get("conditions", ())}
        return where in said.get("muster.dev/Dispatched", {}).get("message", "")

    wait_until(shows, "its status to come up", seconds=LONG)
    change = {"rayClusterConfig": {"rayVersion": "2.61.0"}}
    site.manager.patch("RayService", "serve", {"spec": change})

    def changed() -> bool:
        spec = member.get("RayService", "serve")["spec"]
        return bool(spec["rayClusterConfig"]["rayVersion"] == "2.61.0")

    wait_until(changed, "the change to go to its member", seconds=LONG, seen=site.running)
    assert site.dispatch("rayservice.serve")["attempt"] == 1


def test_what_a_gang_lacks_after_its_start_is_told_on_the_manager_until_it_is_whole(
    site: Site,
) -> None:
    site.submit("hurt")
    wait_until(lambda: whole(site, "hurt"), "it to run", seconds=LONG)
    site.manager.wait_phase("hurt", "Running", "Running")
    where = site.whole("hurt")
    member = site.members[where]
    worker = next(each for each in member.bound("hurt") if "worker" in each)
    member.patch_node("node", {"spec": {"unschedulable": True}})
    try:
        member.delete("Pod", worker)
        site.manager.wait_message("hurt", f"cluster {where}: ")
        lacks = site.manager.wait_phase("hurt", "Running", "NoFeasibleNode", "is cordoned")
        assert lacks["dispatch"]["phase"] == "Started"
    finally:
        member.patch_node("node", {"spec": {"unschedulable": None}})
    site.manager.wait_phase("hurt", "Running", "Running")
    assert whole(site, "hurt")
    assert site.dispatch("hurt")["attempt"] == 1


def test_a_gang_leaves_a_drained_member_for_another(site: Site) -> None:
    site.submit("moved")
    wait_until(lambda: whole(site, "moved"), "it to run", seconds=LONG)
    drained = site.whole("moved")
    site.drain(drained)
    try:
        other = next(name for name in site.members if name != drained)
        wait_until(lambda: site.whole("moved") == other, "it to run elsewhere", seconds=LONG)
        assert site.dispatch("moved")["attempt"] > 1
    finally:
        site.drain(drained, "Active")


def test_a_gang_leaves_a_lost_member_once_it_has_ended_there(site: Site) -> None:
    site.kill_dispatchers()
    site.start_dispatcher(LOST_AFTER=str(LOST_AFTER))
    site.wait_connected()
    site.write_queue(whenClusterLost="Requeue")
    site.submit("fenced")
    wait_until(lambda: whole(site, "fenced"), "it to run", seconds=LONG)
    lost = site.whole("fenced")
    (other,) = site.members.keys() - {lost}
    since = site.renewed(lost)
    renewed = partial(site.renewed, lost)
    wait_until(lambda: renewed() > since + LOST_AFTER, "it to be renewed", LONG, seen=renewed)
    assert site.whole("fenced") == lost
    site.cut_off(lost)
    try:
        wait_until(lambda: site.whole("fenced") == other, "it to run elsewhere", seconds=LONG)
        (offer,) = site.members[lost].all("GangOffer")
        assert offer["status"]["reason"] == "ManagerLost"
    finally:
        site.restore(lost)
        site.write_queue(whenClusterLost="Wait")
    wait_until(
        lambda: not site.members[lost].all("GangOffer"), "the first to be withdrawn", seconds=LONG
    )
    assert site.whole("fenced") == other


def test_where_none_has_room_one_member_stops_a_gang_and_no_other_does(site: Site) -> None:
    """`other` is as low as `low`, on the member that is not let."""
    high = {plot.add_priority_class("urgent", 7) for plot in (site.manager, *site.members.values())}
    for name, plot in (("low", site.members["east"]), ("other", site.members["west"])):
        plot.cluster.kubectl("patch", "gangqueue", QUEUE, "--type=merge", "-p", _PREEMPTS)
        plot.create(gang(name, group(replicas=PODS - 1), labels={names.QUEUE: QUEUE}))
        wait_until(partial(_holds, plot, name), f"{name} to run", seconds=LONG)
    try:
        site.submit("urgent", priority=high.pop())
        wait_until(lambda: whole(site, "urgent"), "the urgent one to run", seconds=LONG)
        site.manager.wait_phase("urgent", "Running")
        assert site.whole("urgent") == "east"
        assert site.dispatch("urgent")["stopsGangs"]["cluster"] == "east"
        assert not site.members["east"].bound("low")
        assert _holds(site.members["west"], "other")
        assert not site.members["west"].all("GangOffer")
    finally:
        site.members["east"].delete("RayCluster", "low")
        site.members["west"].delete("RayCluster", "other")


def _holds(plot: Plot, name: str) -> bool:
    return len(plot.bound(name)) == PODS


def _one_pod(site: Site) -> tuple[str, str] | None:
    """A RayCluster of which a pod has a node, and the member of that."""
    return next(((name, where[0]) for name, where in site.running().items()), None)


def _whole_of_job(site: Site) -> tuple[str, str] | None:
    """The RayCluster of the job that runs whole, and where; None where none does."""
    found = site.running()
    assert all(len(where) == 1 for where in found.values()), found
    runs = ((name, where[0]) for name, where in found.items())
    return next((each for each in runs if site.is_whole_on(each[1], each[0])), None)


# ---- a member that takes offers and refuses acceptances

_NAME = "test-no-acceptance"
_POLICY = {
    "metadata": {"name": _NAME},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [names.GROUP],
                    "apiVersions": ["*"],
                    "operations": ["UPDATE"],
                    "resources": ["gangoffers"],
                }
            ]
        },
        "validations": [{"expression": "!has(object.spec.acceptedBy)"}],
    },
}
_BINDING = {
    "metadata": {"name": _NAME},
    "spec": {"policyName": _NAME, "validationActions": ["Deny"]},
}


def _refuse_acceptances(plot: Plot) -> None:
    """Have the API server of a member refuse them, and wait until it does."""
    api = plot.cluster.api
    api.create(f"{_POLICIES}/validatingadmissionpolicies", _POLICY)
    api.create(f"{_POLICIES}/validatingadmissionpolicybindings", _BINDING)
    template = {"name": "asked", "spec": {}}
    asked = {"manager": "test", "uid": "test", "attempt": 1, "template": template}
    head = {"apiVersion": names.API_VERSION, "kind": "GangOffer", "metadata": {"name": "asked"}}
    plot.create({**head, "spec": asked})

    def refused() -> bool:
        try:
            plot.patch("GangOffer", "asked", {"spec": {"acceptedBy": 1}})
        except TestbedError:
            return True
        return False

    wait_until(refused, "acceptances to be refused", seconds=LONG)
    plot.delete("GangOffer", "asked")


def _allow_acceptances(plot: Plot) -> None:
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        plot.cluster.kubectl("delete", kind, _NAME)
