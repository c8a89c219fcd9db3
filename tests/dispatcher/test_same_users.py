"""Three control planes with the same users: a gang goes where its creator may create it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kube.objects import names
from testbed import fleet
from testbed.api import Api
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.waiting import wait_until
from tests.controlplane.rayclusters import gang, group
from tests.dispatcher.site import LONG, PODS, QUEUE, QUEUES, TEAM, Site, queue, started

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(1800)]

ANN = "ann"
FORGED = '{"username":"system:admin","groups":["system:masters"]}'
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with started(tmp_path_factory.mktemp("clusters")) as found:
        found.manager.cluster.api.create(QUEUES, queue(clusters={"order": ["east", "west"]}))
        for name, plot in found.members.items():
            bind(plot.cluster, f"{fleet.ACCOUNT}-users", account=True)
            found.change_member(name, users="Same")
        found.start_dispatcher()
        found.wait_connected()
        yield found
        found.clear()


def bind(cluster: Cluster, role: str, *, account: bool) -> None:
    """Give a ClusterRole to the dispatcher's account, or to the user in one namespace."""
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role}
    if account:
        subject = {"kind": "ServiceAccount", "name": fleet.ACCOUNT, "namespace": "muster-system"}
        path = f"{_RBAC}/clusterrolebindings"
    else:
        subject = {"kind": "User", "name": ANN, "apiGroup": _GROUP}
        path = f"{_RBAC}/namespaces/{TEAM}/rolebindings"
    body = {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}
    cluster.api.create(path, body)


def as_ann(cluster: Cluster) -> Api:
    return replace(cluster.api, impersonated=ANN)


def test_a_gang_goes_where_its_creator_may_and_who_that_is_cannot_be_forged(site: Site) -> None:
    manager, west = site.manager.cluster, site.members["west"].cluster
    for each in (manager, west):
        bind(each, "cluster-admin", account=False)
    made = gang("train", group(replicas=PODS - 1), labels={names.QUEUE: QUEUE})
    made["metadata"]["annotations"] = {names.CREATED_BY: FORGED}

    def created() -> bool:
        try:
            as_ann(manager).create(site.manager.path("RayCluster"), made)
        except TestbedError:  # the API server has not heard of the binding yet
            return False
        return True

    wait_until(created, "it to be created", seconds=LONG)
    found = site.manager.get("RayCluster", "train")
    assert '"username":"ann"' in found["metadata"]["annotations"][names.CREATED_BY]
    change = {"metadata": {"annotations": {names.CREATED_BY: FORGED}}}
    with pytest.raises(TestbedError, match="may not write the annotation"):
        site.manager.patch("RayCluster", "train", change)

    wait_until(lambda: site.whole("train") == "west", "it to run on the second", seconds=LONG)
    assert not site.members["east"].all("GangOffer")

    site.submit("next")  # by the administrator, who may do all on either
    wait_until(lambda: site.whole("next") == "east", "the next to run on the first", seconds=LONG)
