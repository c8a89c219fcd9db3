"""What becomes of gangs later on: services are upgraded, jobs retried, suspended and cleaned up.

The dashboards are played (`dashboards.py`).
"""

import pytest

from kube.objects import names
from tests.controlplane.conftest import cron_jobs
from tests.controlplane.dashboards import Dashboards
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.rayclusters import (
    GANG,
    Json,
    gang,
    group,
    ray_job,
    ray_service,
    requests,
)
from tests.controlplane.test_opt_in import (
    cluster_made_for,
    opt_in_namespace,
    wait_namespace_known,
)
from tests.controlplane.test_preemption import uids, with_queue
from tests.controlplane.test_submission_modes import Job

PENDING, ACTIVE = "pendingServiceStatus", "activeServiceStatus"


def version(plot: Plot, service: str, which: str) -> str:
    """The RayCluster of a version of a RayService; empty where there is none."""
    status = plot.get("RayService", service).get("status", {})
    return str(status.get(which, {}).get("rayClusterName", ""))


def test_the_next_version_of_a_rayservice_waits_in_its_place_and_takes_over(
    plot: Plot, dashboards: Dashboards
) -> None:
    """Both versions need room at once, and the one that waits says which one keeps its own."""
    dashboards.open(plot)
    plot.add_node(5)
    made = ray_service("serve", group(replicas=2), labels=GANG)
    made["spec"]["rayClusterDeletionDelaySeconds"] = 0
    plot.create(made)
    first = cluster_made_for(plot, "serve")
    serving = uids(plot, first) if plot.wait_running(first, 3) else set()
    plot.wait(lambda: version(plot, "serve", ACTIVE) == first, "the first version to serve")
    plot.create(gang("later", group(replicas=2)))
    plot.wait_phase("later", "Queued", "InsufficientResources")

    changed = {"headGroupSpec": {"rayStartParams": {"num-cpus": "1"}}}
    plot.patch("RayService", "serve", {"spec": {"rayClusterConfig": changed}})
    second = plot.wait(lambda: version(plot, "serve", PENDING), "the second version")
    said = f"RayService serve keeps RayCluster {first} until this version is ready"
    assert plot.wait_message(second, said)["reason"] == "InsufficientResources"
    plot.wait_event("serve", "InsufficientResources", said, kind="RayService")
    plot.wait(lambda: plot.status("later").get("position") == 2, "later to be behind it")
    assert all(is_held(pod) for pod in plot.wait_pods(second, 3))
    assert uids(plot, first) == serving

    plot.add_equal_nodes(1, cpus=1)
    plot.wait_running(second, 3)
    plot.wait_gone("RayCluster", first)
    plot.wait_running("later", 3)
    assert version(plot, "serve", ACTIVE) == second
    assert "RayService" not in plot.status(second)["message"]


def test_a_rayjob_that_its_user_suspends_and_one_that_is_retried_keep_their_places(
    plot: Plot, dashboards: Dashboards
) -> None:
    labels = with_queue(plot, 4)
    rests = Job(plot, dashboards, "HTTPMode", shutdownAfterJobFinishes=True)
    tries = Job(plot, dashboards, "HTTPMode", backoffLimit=1)
    for job in (rests, tries):
        job.wait_running()
    first = tries.cluster
    plot.create(gang("later", group(replicas=3), labels=labels))
    plot.wait_phase("later", "Queued")

    plot.patch("RayJob", rests.name, {"spec": {"suspend": True}})
    rests.wait_state("Suspended")
    assert rests.cluster == ""
    plot.patch_node("node", {"spec": {"unschedulable": True}})
    plot.patch("RayJob", rests.name, {"spec": {"suspend": False}})
    tries.fail()
    second = tries.wait_next_cluster(first)
    third = plot.wait(lambda: rests.cluster, "the RayCluster of the resumed job")
    plot.wait(
        lambda: places(plot, third, second, "later") == [1, 2, 3], "all to be in their places"
    )
    plot.patch_node("node", {"spec": {"unschedulable": False}})
    for job in (rests, tries):
        job.wait_running()
        job.end_well()
    assert plot.status("later")["phase"] == "Queued"


def places(plot: Plot, *gangs: str) -> list[int | None]:
    return [plot.status(name).get("position") for name in gangs]


def rule(policy: str, seconds: int) -> Json:
    """A deletion rule for a job that ended well."""
    return {"policy": policy, "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": seconds}}


@pytest.mark.variant
def test_the_room_of_a_rayjob_ends_as_its_deletion_rules_say(
    plot: Plot, dashboards: Dashboards
) -> None:
    """First that of the workers, then that of the head; nothing of it is kept as of lost pods."""
    labels = with_queue(plot, 3)
    rules = [rule("DeleteWorkers", 0), rule("DeleteCluster", 6)]
    job = Job(plot, dashboards, "HTTPMode", deletionStrategy={"deletionRules": rules})
    job.wait_running()
    cluster = job.cluster
    plot.create(gang("next", group(replicas=1), labels=labels))
    plot.create(gang("last", labels=labels))
    plot.wait_running("last", 1)
    plot.wait_phase("next", "Queued", "InsufficientResources")

    job.end_well()
    plot.wait(lambda: plot.status(cluster).get("ready") == "1/1", "the head alone to be left")
    assert "slot" not in plot.status(cluster)["message"]
    assert plot.status("next")["phase"] == "Queued"
    plot.wait_running("next", 2)
    plot.wait_no_gang(cluster)


@pytest.mark.variant
def test_a_rayjob_that_its_deadline_ends_while_it_waits_was_warned_and_takes_no_room(
    plot: Plot, dashboards: Dashboards
) -> None:
    """Nothing of it is left, or its RayCluster, which KubeRay does not delete by itself."""
    with_queue(plot, 1)
    limit = {"activeDeadlineSeconds": 16}
    whole = Job(plot, dashboards, "HTTPMode", shutdownAfterJobFinishes=True, **limit)
    left = Job(plot, dashboards, "HTTPMode", **limit)
    clusters = [waiting_cluster(plot, job) for job in (whole, left)]
    for job, cluster in zip((whole, left), clusters, strict=True):
        plot.wait_message(cluster, f"KubeRay ends RayJob {job.name} at")
    for job in (whole, left):
        plot.wait_event(job.name, "DeadlineNear", "activeDeadlineSeconds of 16 s", kind="RayJob")
        job.wait_state("Failed")
    plot.wait_no_gang(clusters[0])
    plot.wait_phase(clusters[1], "Finished", "JobEnded", f"RayJob {left.name} has ended (Failed)")
    plot.add_equal_nodes(1, cpus=2)
    plot.create(gang("next", group(replicas=2), labels={names.QUEUE: plot.queue("team")}))
    plot.wait_running("next", 3)
    assert all(is_held(pod) for pod in plot.wait_pods(clusters[1], 2))


def waiting_cluster(plot: Plot, job: Job) -> str:
    return plot.wait(lambda: job.cluster, f"the RayCluster of {job.name}")


def cron_job(name: str, *groups: Json, schedule: str) -> Json:
    """A RayCronJob; its template has no metadata."""
    template = ray_job(name, *groups, submissionMode="HTTPMode")["spec"]
    del template["submitterPodTemplate"]
    return {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCronJob",
        "metadata": {"name": name, "labels": GANG},
        "spec": {"schedule": schedule, "jobTemplate": template},
    }


@pytest.mark.variant
@pytest.mark.skipif(not cron_jobs(), reason="this release of KubeRay has no RayCronJobs")
def test_the_rayjobs_of_a_raycronjob_are_gangs_where_their_namespace_says_so(
    plot: Plot, dashboards: Dashboards
) -> None:
    """KubeRay copies no label of it, so its namespace has to: its own label means nothing."""
    dashboards.open(plot)
    plot.add_node(1)
    opt_in_namespace(plot, "true")
    wait_namespace_known(plot)
    plot.create(cron_job("nightly", group(replicas=1), schedule="@every 1s"))
    plot.wait(lambda: plot.all("RayJob"), "the first RayJob")
    plot.patch("RayCronJob", "nightly", {"spec": {"suspend": True}})
    job = plot.all("RayJob")[0]["metadata"]
    assert names.OPT_IN not in job["labels"]
    cluster = cluster_made_for(plot, job["name"])
    plot.wait_phase(cluster, "Queued", "NeverFits")
    assert all(is_held(pod) for pod in plot.wait_pods(cluster, 2))


@pytest.mark.variant
def test_a_worker_that_is_named_to_be_deleted_leaves_its_room_to_others(plot: Plot) -> None:
    """As a person or Ray's autoscaler asks for it: no replacement comes, so no slot is kept."""
    plot.add_equal_nodes(3, cpus=1)
    plot.create(gang("shrinks", group(replicas=2)))
    plot.wait_running("shrinks", 3)
    plot.create(gang("next"))
    plot.wait_phase("next", "Queued", "InsufficientResources")
    named, node = min(plot.bound("shrinks", "worker").items())
    plot.scale("shrinks", replicas=1, scaleStrategy={"workersToDelete": [named]})
    plot.wait_running("next", 1)
    assert list(plot.bound("next").values()) == [node]
    plot.wait_running("shrinks", 2)
    assert "slot" not in plot.status("shrinks")["message"]


@pytest.mark.variant
def test_a_gang_whose_template_is_changed_is_recreated_whole(plot: Plot) -> None:
    """Also where it is changed once more before that; what waits for its room gets none of it."""
    plot.add_node(4)
    recreate = {"upgradeStrategy": {"type": "Recreate"}}
    plot.create(gang("changes", group(replicas=2), **recreate))
    plot.wait_running("changes", 3)
    before = uids(plot, "changes")
    larger = group(replicas=2, resources=requests(cpu="1600m"))
    plot.scale("changes", template=larger["template"])
    plot.wait_message("changes", "the gang needs 4200m cpu in all")
    between = plot.wait_pods("changes", 3)
    assert all(is_held(pod) for pod in between)

    fits = group(replicas=2, resources=requests(cpu="1500m"))
    plot.scale("changes", template=fits["template"])
    pods = plot.wait_running("changes", 3)
    assert not uids(plot, "changes") & (before | {pod["metadata"]["uid"] for pod in between})
    assert sorted(map(cpu, pods)) == ["1", "1500m", "1500m"]


def cpu(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
