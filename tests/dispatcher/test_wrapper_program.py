"""AppWrappers on three control planes: one runs whole on a member, and its end comes up."""

from collections.abc import Iterator

import pytest

from appwrapper.status.mcad_states import NO_CLUSTER
from kube.objects import names
from testbed.errors import TestbedError
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, group, ray_cluster, requests
from tests.dispatcher.site import LONG, PODS, QUEUE, QUEUES, Site, queue, started

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(1800)]

WRAPPER = "AppWrapper"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with started(tmp_path_factory.mktemp("clusters"), app_wrappers="All") as found:
        found.manager.cluster.api.create(QUEUES, queue(clusters={}))
        found.start_dispatcher()
        found.wait_connected()
        yield found
        found.kill_dispatchers()


def submit(site: Site, name: str, *templates: Json) -> Json:
    """Create an AppWrapper of the queue with clusters."""
    body = {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": WRAPPER,
        "metadata": {"name": name, "labels": {names.QUEUE: QUEUE}},
        "spec": {"components": [{"template": each} for each in templates]},
    }
    return site.manager.create(body)


def wrapped_cluster(name: str) -> Json:
    return ray_cluster(name, group(replicas=PODS - 1))


def wrapped_job(name: str) -> Json:
    """A Job of one pod, which ends at once."""
    container = {"name": "main", "image": "none", "resources": requests()}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    spec = {"template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def status(site: Site, name: str) -> Json:
    found: Json = site.manager.get(WRAPPER, name).get("status") or {}
    return found


def says(site: Site, name: str, **fields: str) -> None:
    """Wait until an AppWrapper of the manager says so."""
    wait_until(
        lambda: fields.items() <= status(site, name).items(),
        f"{name} to say {fields}",
        LONG,
        seen=lambda: (status(site, name), site.dispatch(f"appwrapper.{name}")),
    )


def finished(site: Site, name: str, end: str) -> None:
    """Wait until its gang is over for good."""
    site.manager.wait_phase(f"appwrapper.{name}", "Finished")
    assert site.dispatch(f"appwrapper.{name}")["end"] == end


def gone(plot: Plot, name: str) -> bool:
    return not plot.all("GangOffer") and not plot.cluster.api.exists(plot.path(WRAPPER, name))


def test_one_with_a_raycluster_runs_where_there_is_room_and_its_end_comes_up(site: Site) -> None:
    site.submit("first")
    full = wait_until(lambda: site.whole("first"), "a RayCluster to run", seconds=LONG)
    (free,) = {*site.members} - {full}
    made = submit(site, "train", wrapped_cluster("train"))
    assert made["metadata"]["annotations"][names.DISPATCHED] == "true"
    wait_until(lambda: site.whole("train") == free, "it to run elsewhere", seconds=LONG)
    says(site, "train", phase="Running")
    copy = site.members[free].get(WRAPPER, "train")
    assert names.DISPATCHED not in copy["metadata"]["annotations"]
    assert "muster-dispatcher-member" in copy["metadata"]["annotations"][names.CREATED_BY]
    assert not site.manager.all("Pod")
    assert [each["metadata"]["name"] for each in site.manager.all("RayCluster")] == ["first"]

    submit(site, "third", wrapped_cluster("third"))
    says(site, "third", phase="Suspended", message=NO_CLUSTER)

    site.members[free].delete("RayCluster", "train")  # what is wrapped is not created again
    says(site, "train", phase="Failed")
    finished(site, "train", "JobFailed")
    wait_until(lambda: site.whole("third") == free, "the third to follow", seconds=LONG)
    for name in ("train", "third"):
        site.manager.delete(WRAPPER, name)
    wait_until(lambda: gone(site.members[free], "train"), "nothing to be left", seconds=LONG)
    assert not site.members[free].all("RayCluster")


def test_a_wrapped_job_succeeds_and_is_never_sent_again(site: Site) -> None:
    submit(site, "work", wrapped_job("work"))
    says(site, "work", phase="Succeeded")
    finished(site, "work", "JobComplete")
    assert site.dispatch("appwrapper.work")["attempt"] == 1
    where = site.dispatch("appwrapper.work")["cluster"]
    assert site.members[where].get(WRAPPER, "work")["status"]["phase"] == "Succeeded"
    site.manager.delete(WRAPPER, "work")
    wait_until(lambda: gone(site.members[where], "work"), "its copy to go", seconds=LONG)


def test_what_the_role_on_members_does_not_list_is_not_wrapped_there(site: Site) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}
    submit(site, "secret", secret, wrapped_job("secret"))

    def refused() -> bool:
        return "needs the right to create secrets" in str(site.dispatch("appwrapper.secret"))

    wait_until(
        refused, "the member to refuse it", LONG, seen=lambda: site.dispatch("appwrapper.secret")
    )
    assert not any(plot.all(WRAPPER) for plot in site.members.values())
    site.manager.delete(WRAPPER, "secret")


def test_who_may_edit_one_cannot_have_it_run_here(site: Site) -> None:
    submit(site, "edited", wrapped_job("edited"))
    with pytest.raises(TestbedError, match="it says which cluster runs it"):
        site.manager.patch(
            WRAPPER, "edited", {"metadata": {"annotations": {names.DISPATCHED: None}}}
        )
    site.manager.delete(WRAPPER, "edited")
