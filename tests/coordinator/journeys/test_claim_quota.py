"""Gangs of a namespace whose ResourceQuota has not enough devices for the claims of all of them.

kube-scheduler makes these claims, of what pods ask for as extended resources, after the release.
"""

from tests.coordinator.builders import TEAM, Json, group, node, ray_cluster
from tests.coordinator.device_world import device_class, device_slice
from tests.coordinator.held import had_pods, held
from tests.coordinator.world import World
from tests.kube.devices.objects import GPU

RESOURCE = "example.com/gpu"
DEVICES = f"{GPU}.deviceclass.resource.k8s.io/devices"


class ClaimQuotaWorld(World):
    """A world with a ResourceQuota of devices by class: what claims ask for is counted late."""

    def __init__(self, hard: int, *start: Json) -> None:
        body = {"hard": {DEVICES: str(hard)}}
        meta = {"name": "devices", "namespace": TEAM}
        status = {**body, "used": {DEVICES: "0"}}
        quota = {"kind": "ResourceQuota", "metadata": meta, "spec": body, "status": status}
        super().__init__(*start, quota)

    def controllers(self) -> None:
        """Do everybody's work, also that of the controller of quotas."""
        super().controllers()
        for quota in list(self.api.all("resourcequotas")):
            self.api.change(quota, self._count)

    def _count(self, quota: Json) -> None:
        quota["status"]["used"] = {DEVICES: str(self.claimed())}

    def claimed(self) -> int:
        """How many devices all claims ask for."""
        claims = (each["spec"]["devices"]["requests"] for each in self.api.all("resourceclaims"))
        return sum(each["exactly"]["count"] for requests in claims for each in requests)


def by_resource(name: str, workers: int) -> Json:
    amounts = {"requests": {"cpu": "1", RESOURCE: "1"}, "limits": {RESOURCE: "1"}}
    container = {"name": "ray", "resources": amounts}
    return ray_cluster(name, group("w", workers, containers=[container]))


def giving(devices: int, *others: Json) -> list[Json]:
    return [node("n1", cpu=64), device_slice("n1", devices), device_class(GPU, RESOURCE), *others]


def test_of_two_gangs_of_one_cycle_the_one_that_quota_has_no_claims_for_keeps_its_gates() -> None:
    """There are devices for both, and the quota has room for either of them."""
    world = ClaimQuotaWorld(3, *giving(8))
    world.create(by_resource("a", 2), by_resource("b", 2))
    world.settle(seconds=20)
    assert (world.bound("a"), world.gated("b"), world.claimed()) == ({"n1": 3}, 3, 2)
    assert world.status("b")["reason"] == "GangIncomplete"
    assert f"of 3 {DEVICES} left" in world.status("b")["message"]
    world.delete("rayclusters", "a")
    world.settle(seconds=60)
    assert world.bound("b") == {"n1": 3}


def test_gangs_of_one_cycle_start_together_where_quota_has_claims_for_all() -> None:
    world = ClaimQuotaWorld(4, *giving(8))
    world.create(by_resource("a", 2), by_resource("b", 2))
    world.settle(seconds=20)
    assert (world.bound("a"), world.bound("b"), world.claimed()) == ({"n1": 3}, {"n1": 3}, 4)


def test_a_gang_behind_the_one_that_is_put_off_gets_what_quota_has_left() -> None:
    world = ClaimQuotaWorld(3, *giving(8))
    world.create(by_resource("a", 2), by_resource("b", 2), by_resource("c", 1))
    world.settle(seconds=20)
    assert (world.bound("a"), world.gated("b"), world.bound("c")) == ({"n1": 3}, 3, {"n1": 2})


def test_a_gang_that_was_to_claim_and_ends_before_leaves_its_quota() -> None:
    world = ClaimQuotaWorld(3, *giving(8))
    world.scheduler = False
    world.create(by_resource("a", 2), by_resource("b", 2))
    world.settle(seconds=20)
    assert (world.gated("a"), world.gated("b")) == (0, 3)
    world.delete("rayclusters", "a")
    world.scheduler = True
    world.settle(seconds=60)
    assert world.bound("b") == {"n1": 3}


def test_held_gangs_count_before_they_have_pods() -> None:
    world = ClaimQuotaWorld(3, *giving(8))
    world.create(held(by_resource("a", 2)), held(by_resource("b", 2)))
    world.settle(seconds=60)
    assert (world.bound("a"), had_pods(world.api, "b")) == ({"n1": 3}, False)
    world.delete("rayclusters", "a")
    world.settle(seconds=60)
    assert world.bound("b") == {"n1": 3}
