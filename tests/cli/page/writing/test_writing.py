"""What forms send: said first, done once it is agreed to, and nothing lost to another tab."""

from typing import Any

import pytest

from kube.objects import names
from tests.cli.page.people import ADA, BEN, People, Tab

CLUSTERS = "/api/manage/clusters/team"
TRAIN = f"{CLUSTERS}/train"
JOBS = "/api/manage/jobs/team"
GROUP = {"name": "workers", "replicas": 2, "gpus": 8, "cpus": "32"}


def groups(people: People, name: str = "train") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = people.get("rayclusters", name, "team")["spec"][
        "workerGroupSpecs"
    ]
    return found


async def state(who: Tab, path: str = TRAIN) -> str:
    found: str = (await who.get(path))[1]["state"]
    return found


async def test_a_cluster_is_shown_as_yaml_and_then_created(people: People, ada: Tab) -> None:
    body = {"form": {"queue": "research", "groups": [GROUP]}}
    status, told = await ada.post(f"{CLUSTERS}/new/create", body)
    assert status == 200
    assert "kind: RayCluster\nmetadata:\n  name: new\n  namespace: team\n" in told["yaml"]
    assert "muster.dev/queue: research" in told["yaml"]
    assert (told["asks"], told["refused"], told["nothing"]) == ("", "", False)
    assert [each for each in told["notes"] if "not known whether it would start now" in each]
    assert people.writes == []
    assert await ada.post(f"{CLUSTERS}/new/create", {**body, "agreed": ""}) == (
        200,
        {"done": "RayCluster team/new created"},
    )
    assert groups(people, "new")[0]["replicas"] == 2
    status, found = await ada.post(f"{CLUSTERS}/new/create", {**body, "agreed": ""})
    assert (status, found["fault"]) == (
        409,
        "RayCluster team/new exists already, and nothing was changed",
    )


async def test_a_cluster_is_created_like_another(people: People, ada: Tab) -> None:
    assert (await ada.agreed(f"{CLUSTERS}/train-2/create", like="train"))[0] == 200
    assert groups(people, "train-2") == groups(people)


async def test_a_form_begins_with_what_the_cluster_has(ada: Tab) -> None:
    found = (await ada.get(TRAIN))[1]
    assert (found["form"]["gang"], found["owner"], found["suspended"]) == (True, "", False)
    (group,) = found["form"]["groups"]
    assert (group["name"], group["replicas"], group["max"]) == ("workers", 2, 4)


async def test_each_change_is_said_before_it_is_made(people: People, ada: Tab) -> None:
    body = {
        "state": await state(ada),
        "form": {"groups": [{"name": "workers", "max": 9, "cpus": "2"}]},
    }
    status, told = await ada.post(f"{TRAIN}/edit", body)
    assert status == 200
    assert [each.split()[0] for each in told["said"]] == ["now", "later"]
    assert people.writes == []
    assert await ada.post(f"{TRAIN}/edit", {**body, "agreed": ""}) == (
        200,
        {"done": "RayCluster team/train changed"},
    )
    assert groups(people)[0]["maxReplicas"] == 9


async def test_what_kuberay_would_not_do_is_refused_whole(people: People, ada: Tab) -> None:
    body = {"state": await state(ada), "form": {"withoutGroups": ["workers"], "queue": "q"}}
    status, told = await ada.post(f"{TRAIN}/edit", body)
    assert (status, "KubeRay would leave its pods running" in told["refused"]) == (200, True)
    status, found = await ada.post(f"{TRAIN}/edit", {**body, "agreed": told["asks"]})
    assert (status, found["fault"]) == (422, told["refused"])
    assert people.writes == []


async def test_of_two_tabs_that_edit_one_cluster_the_later_is_told(
    people: People, ada: Tab, ben: Tab
) -> None:
    seen = await state(ada)
    edit = {"state": seen, "form": {"groups": [{"name": "workers", "max": 9}]}, "agreed": ""}
    assert (await ada.post(f"{TRAIN}/edit", edit))[0] == 200
    other = {"state": seen, "form": {"groups": [{"name": "workers", "max": 7}]}}
    for body in (other, {**other, "agreed": ""}):
        status, found = await ben.post(f"{TRAIN}/edit", body)
        assert status == 409
        assert "was changed by others meanwhile, and nothing was written" in found["fault"]
    assert groups(people)[0]["maxReplicas"] == 9
    again = {**other, "state": await state(ben), "agreed": ""}
    assert (await ben.post(f"{TRAIN}/edit", again))[0] == 200
    assert groups(people)[0]["maxReplicas"] == 7


async def test_what_is_changed_between_reading_and_writing_is_not_lost(
    people: People, ada: Tab
) -> None:
    """The API server itself says so, by the version that was read."""
    body = {"state": await state(ada), "form": {"queue": "other"}, "agreed": ""}

    def another(what: str) -> None:
        if what.endswith("rayclusters/train"):
            people.behind = lambda _: None
            found = people.get("rayclusters", "train", "team")
            found["metadata"]["resourceVersion"] = "7"
            found["spec"] = {**found["spec"], "rayVersion": "2.99.0"}

    people.behind = another
    status, found = await ada.post(f"{TRAIN}/edit", body)
    assert (status, "changed by others" in found["fault"]) == (409, True)
    assert people.get("rayclusters", "train", "team")["spec"]["rayVersion"] == "2.99.0"


async def test_what_rays_autoscaler_writes_is_no_other_tab(people: People, ada: Tab) -> None:
    found = people.get("rayclusters", "train", "team")
    found["spec"]["enableInTreeAutoscaling"] = True
    seen = await state(ada)
    groups(people)[0]["replicas"] = 3
    body = {"state": seen, "targets": ["workers=1..5"], "agreed": ""}
    assert (await ada.post(f"{TRAIN}/scale", body))[0] == 200
    assert groups(people)[0]["replicas"] == 3


async def test_fewer_replicas_are_asked_about_and_what_was_agreed_to_is_what_is_done(
    people: People, ada: Tab
) -> None:
    body = {"state": await state(ada), "targets": ["workers=1"]}
    told = (await ada.post(f"{TRAIN}/scale", body))[1]
    assert told["asks"].startswith("KubeRay deletes 1 worker pod of its own choice")
    status, found = await ada.post(f"{TRAIN}/scale", {**body, "agreed": ""})
    assert (status, told["asks"] in found["fault"]) == (409, True)
    assert people.writes == []
    assert (await ada.post(f"{TRAIN}/scale", {**body, "agreed": told["asks"]}))[0] == 200
    assert groups(people)[0]["replicas"] == 1


async def test_a_cluster_is_suspended_and_resumed(people: People, ada: Tab) -> None:
    assert "suspended; muster resume" in (await ada.agreed(f"{TRAIN}/suspend"))[1]["done"]
    assert people.get("rayclusters", "train", "team")["spec"]["suspend"] is True
    told = (await ada.post(f"{TRAIN}/suspend"))[1]
    assert (told["nothing"], told["said"]) == (True, ["RayCluster team/train is suspended already"])
    assert (await ada.agreed(f"{TRAIN}/resume"))[0] == 200
    assert people.get("rayclusters", "train", "team")["spec"]["suspend"] is False


async def test_what_goes_with_a_cluster_is_said_before_it_is_deleted(
    people: People, ada: Tab
) -> None:
    labels = {names.RAY_CLUSTER: "train", names.RAY_NODE_TYPE: "worker"}
    people.add("pods", "train-w-1", "team", labels=labels)
    told = (await ada.post(f"{TRAIN}/delete"))[1]
    assert told["said"][0].startswith("1 pod, with all that runs on them")
    assert told["asks"] == "Delete RayCluster team/train?"
    assert people.writes == []
    assert (await ada.agreed(f"{TRAIN}/delete"))[1] == {"done": "RayCluster team/train deleted"}
    assert (await ada.post(f"{TRAIN}/delete"))[0] == 404


async def test_what_belongs_to_a_rayjob_is_left_alone(people: People, ada: Tab) -> None:
    seen = await state(ada)
    meta = people.get("rayclusters", "train", "team")["metadata"]
    meta["ownerReferences"] = [{"kind": "RayJob", "name": "nightly", "controller": True}]
    assert (await ada.get(TRAIN))[1]["owner"] == "RayJob nightly"
    for verb in ("edit", "scale", "suspend", "resume", "delete"):
        status, found = await ada.post(f"{TRAIN}/{verb}", {"state": seen})
        assert (status, "belongs to RayJob nightly" in found["fault"]) == (422, True), verb


async def test_a_job_runs_on_a_cluster_or_gets_its_own(people: People, ada: Tab) -> None:
    job = {"entrypoint": "python a.py", "cluster": "train"}
    assert (await ada.agreed(f"{JOBS}/nightly/submit", job=job))[1] == {
        "done": "RayJob team/nightly created"
    }
    spec = people.get("rayjobs", "nightly", "team")["spec"]
    assert spec["clusterSelector"] == {names.RAY_CLUSTER: "train"}
    own = {"job": {"entrypoint": "python a.py"}, "form": {"groups": [GROUP]}}
    assert (await ada.agreed(f"{JOBS}/own/submit", **own))[0] == 200
    spec = people.get("rayjobs", "own", "team")["spec"]
    assert spec["rayClusterSpec"]["workerGroupSpecs"][0]["groupName"] == "workers"
    people.get("rayjobs", "own", "team")["kind"] = "RayJob"
    assert (await ada.agreed(f"{JOBS}/own/delete"))[0] == 200
    status, found = await ada.post(f"{JOBS}/x/submit", {"job": job, "like": "train"})
    assert (status, "one that runs" in found["fault"]) == (400, True)


async def test_a_queue_is_created_and_changed(people: People, ada: Tab) -> None:
    queue = {"quota": {"cpu": "4"}, "namespaces": ["team"]}
    told = (await ada.post("/api/manage/queues/new/create", {"queue": queue}))[1]
    assert "kind: GangQueue" in told["yaml"]
    assert (await ada.agreed("/api/manage/queues/new/create", queue=queue))[0] == 200
    shown = (await ada.get("/api/manage/queues/research"))[1]
    assert shown["form"]["quota"] == {"cpu": "8"}
    body = {"queue": {"quota": {"cpu": "9"}}, "state": shown["state"]}
    path = "/api/manage/queues/research/edit"
    assert "cpu: '9'" in (await ada.post(path, body))[1]["yaml"]
    assert (await ada.agreed(path, **body))[1] == {"done": "GangQueue research changed"}
    assert (await ada.post(path, body))[0] == 409


async def test_forms_offer_what_may_be_listed(people: People, ada: Tab) -> None:
    path = "/api/manage/choices/team"
    assert (await ada.get(path))[1] == {"queues": ["research"], "clusters": ["train"]}
    people.denied.append((ADA, "gangqueues"))
    assert (await ada.get(path))[1] == {"queues": [], "clusters": ["train"]}


async def test_a_refusal_of_kubernetes_is_one_line_with_its_status(
    people: People, ben: Tab
) -> None:
    seen = await state(ben)
    people.denied += [(BEN, "PATCH"), (BEN, "DELETE"), (BEN, "POST")]
    asked = {
        f"{TRAIN}/edit": {"state": seen, "form": {"queue": "q"}},
        f"{TRAIN}/scale": {"state": seen, "targets": ["workers=3"]},
        f"{CLUSTERS}/new/create": {"agreed": ""},
        f"{TRAIN}/delete": {"agreed": "Delete RayCluster team/train?"},
    }
    for path, body in asked.items():
        status, found = await ben.post(path, body)
        assert status == 403, path
        assert "ben may not patch rayclusters.ray.io in namespace team" in found["fault"]
        assert "\n" not in found["fault"]
    assert people.writes == []


async def test_an_api_server_that_answers_not_at_all_is_told(people: People, ada: Tab) -> None:
    people.lost += ["GET .*train"] * 4
    status, found = await ada.post(f"{TRAIN}/delete")
    assert (status, "cannot be read" in found["fault"]) == (502, True)


BAD = [
    ({"form": {"head": {"gpus": "many"}}}, "$.form.head.gpus"),
    ({"forms": {}}, "unknown field"),
    ({"form": {"groups": [{"name": "Workers"}]}}, 'group: "Workers"; allowed'),
    ({"form": {"groups": [{"name": "w", "gpus": -1}]}}, 'gpus: "-1"; allowed'),
    ({"form": {"groups": [{"name": "w", "memory": "much"}]}}, 'memory: "much"; allowed'),
]


@pytest.mark.parametrize(("body", "said"), BAD)
async def test_what_a_form_cannot_say_is_named(ada: Tab, body: dict[str, Any], said: str) -> None:
    status, found = await ada.post(f"{CLUSTERS}/new/create", body)
    assert (status, said in found["fault"]) == (400, True), found


async def test_no_json_is_no_form(ada: Tab) -> None:
    headers = {**ada.headers, "Origin": ada.origin, "X-Muster-Write": "1"}
    for body in (b"{", b"[]", b"\xff", b"[" * 100_000):
        async with ada.http.post(
            f"{TRAIN}/edit",
            data=body,
            headers={**headers, "Content-Type": "application/json"},
        ) as answer:
            assert answer.status == 400
