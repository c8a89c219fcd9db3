"""What is read for the sake of devices by claim, as the real programs write it.

The real kube-controller-manager makes claims from templates, the real kube-scheduler allocates, and
the API server counts claims in ResourceQuotas.
"""

import json
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from kube.codec.devices.pod_claims import pod_claims
from kube.devices.claim_quota import charges_of_claim
from kube.devices.claims_of_pods import ClaimNotReady, claims_of_pod
from kube.devices.device_facts import DEVICE_WATCHES, DeviceWatch
from kube.devices.device_index import DeviceIndex
from kube.devices.selectors import CelSelectors
from kube.objects.core import DeviceObject, Pod
from scheduling.model.devices.features import version_of
from scheduling.model.devices.resource_claim import ResourceClaim
from scheduling.model.devices.selectors import Answer
from testbed.recipes import chosen_kubernetes
from tests.controlplane.plot import DEVICE_CLASSES, RESOURCE_SLICES, TAINT_RULES, Plot
from tests.controlplane.rayclusters import Json, requests

CONTAINER = {"name": "c", "image": "i", "resources": requests()}

BEFORE_1_37 = version_of(chosen_kubernetes().rpartition(".")[0]) < (1, 37)


def driver(plot: Plot) -> str:
    return f"{plot.name}.example.com"


def gpu(number: int, model: str) -> Json:
    attributes = {
        "model": {"string": model},
        "index": {"int": number},
        "version": {"version": "570.86.15"},
        "healthy": {"bool": True},
    }
    capacity = {"memory": {"value": "80Gi"}}
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": capacity}


def publish(plot: Plot, *devices: Json) -> None:
    """A class of all devices of the plot's driver, and a slice of its one node."""
    plot.add_node(8)
    selector = {"cel": {"expression": f'device.driver == "{driver(plot)}"'}}
    of_class = {"selectors": [selector], "extendedResourceName": f"{driver(plot)}/gpu"}
    plot.add_of_no_namespace(DEVICE_CLASSES, "gpu", of_class)
    node = plot.node("node")
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": driver(plot), "pool": pool, "nodeName": node}
    plot.add_of_no_namespace(RESOURCE_SLICES, "node", {**slice_spec, "devices": list(devices)})


def wanted(plot: Plot, *selectors: str, **exactly: object) -> Json:
    cel = [{"cel": {"expression": each}} for each in selectors]
    of_class = {"deviceClassName": f"{plot.name}-gpu", "selectors": cel}
    return {"devices": {"requests": [{"name": "gpu", "exactly": {**of_class, **exactly}}]}}


def add_template(plot: Plot, name: str, spec: Json) -> None:
    body = {"kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": {"spec": spec}}
    plot.create(body)


def add_pod(plot: Plot, name: str, template: str) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    spec = {"containers": [CONTAINER], "resourceClaims": claims, "nodeSelector": plot.selector}
    plot.create({"kind": "Pod", "metadata": {"name": name}, "spec": spec})


def listed(plot: Plot, watch: DeviceWatch) -> Iterator[DeviceObject]:
    """What is there of a kind: DeviceTaintRules are served from 1.37 on."""
    group = plot.cluster.api.get("/apis/resource.k8s.io/v1")
    if watch.resource.plural not in {each["name"] for each in group["resources"]}:
        return
    found = plot.cluster.api.get(watch.resource.path())
    for each in found["items"]:
        yield msgspec.json.decode(json.dumps(each), type=DeviceObject)


def read(plot: Plot) -> DeviceIndex:
    """All that a coordinator would know."""
    index = DeviceIndex()
    for watch in DEVICE_WATCHES:
        for found in listed(plot, watch):
            index.put(watch.observe(found).fact)
        index.see(watch.fact)
    return index


def pod(plot: Plot, name: str) -> Pod:
    return msgspec.json.decode(json.dumps(plot.get("Pod", name)), type=Pod)


def claims(plot: Plot, name: str) -> tuple[ResourceClaim, ...] | ClaimNotReady:
    found = pod(plot, name)
    return claims_of_pod(plot.name, name, found.metadata.uid, pod_claims(found), read(plot))


def devices_of(plot: Plot, name: str) -> list[str]:
    """Which devices a pod was given; none as long as something of it is missing."""
    found = claims(plot, name)
    if isinstance(found, ClaimNotReady):
        return []
    given = (each.allocation for each in found)
    return [d.device.device for each in given if each is not None for d in each.devices]


def wait_devices(plot: Plot, name: str) -> list[str]:
    return plot.wait(lambda: devices_of(plot, name), f"pod {name} to be given devices")


def test_claims_are_found_by_their_pod_and_devices_by_their_claim(plot: Plot) -> None:
    """kube-scheduler takes the first device that suits."""
    publish(plot, gpu(0, "A100"), gpu(1, "H100"))
    model = f'device.attributes["{driver(plot)}"].model == "H100"'
    add_pod(plot, "early", "h100")
    plot.wait(
        lambda: (
            claims(plot, "early")
            == ClaimNotReady("pod early, claim gpu: ResourceClaimTemplate h100 does not exist")
        ),
        "the template to be missed",
    )
    add_template(plot, "h100", wanted(plot, model))
    assert wait_devices(plot, "early") == ["gpu-1"]


@pytest.mark.skipif(BEFORE_1_37, reason="DeviceTaintRules are served from Kubernetes 1.37 on")
def test_a_device_that_a_rule_taints_is_passed_over(plot: Plot) -> None:
    publish(plot, gpu(0, "A100"), gpu(2, "H100"), gpu(3, "H100"))
    model = f'device.attributes["{driver(plot)}"].model == "H100"'
    add_template(plot, "h100", wanted(plot, model))
    selected = {"driver": driver(plot), "device": "gpu-2"}
    taint = {"key": "broken", "effect": "NoSchedule"}
    rule = f"{plot.name}-broken"
    body = {"metadata": {"name": rule}, "spec": {"deviceSelector": selected, "taint": taint}}
    plot.cluster.api.create(TAINT_RULES, body)
    try:
        index = read(plot)
        devices = index.slices[f"{plot.name}-node"].devices
        assert [[t.key for t in each.taints] for each in devices] == [[], ["broken"], []]
        assert [each.unsupported for each in devices] == [()] * 3
        answers = [CelSelectors().evaluate(model, each.content) for each in devices]
        assert answers == [Answer.DOES_NOT_MATCH, *[Answer.MATCHES] * 2]
        add_pod(plot, "late", "h100")
        assert wait_devices(plot, "late") == ["gpu-3"]
    finally:
        with plot.cluster.api.session() as session:
            session.call("DELETE", f"{TAINT_RULES}/{rule}")
    taken = {each.device for each in read(plot).taken if each.driver == driver(plot)}
    assert taken == {"gpu-3"}


def test_what_quotas_count_of_claims_is_what_the_api_server_counts(plot: Plot) -> None:
    publish(plot, gpu(0, "A100"))
    of_class = f"{plot.name}-gpu"
    bounded = (
        "count/resourceclaims.resource.k8s.io",
        f"{of_class}.deviceclass.resource.k8s.io/devices",
        f"requests.{driver(plot)}/gpu",
        f"requests.deviceclass.resource.kubernetes.io/{of_class}",
    )
    hard = {"spec": {"hard": dict.fromkeys(bounded, "1000")}}
    plot.create({"kind": "ResourceQuota", "metadata": {"name": "devices"}, **hard})
    plot.wait(
        lambda: (
            set(plot.get("ResourceQuota", "devices").get("status", {}).get("used", {}))
            == set(bounded)
        ),
        "the quota to be counted",
    )
    either = [
        {"name": f"n{count}", "deviceClassName": of_class, "count": count} for count in (2, 5, 3)
    ]
    alternatives = {"devices": {"requests": [{"name": "gpu", "firstAvailable": either}]}}
    specs = (wanted(plot, count=3), wanted(plot, allocationMode="All"), alternatives)
    for number, spec in enumerate(specs):
        plot.create({"kind": "ResourceClaim", "metadata": {"name": f"c{number}"}, "spec": spec})
    index = read(plot)
    charged: Counter[str] = Counter()
    for claim in index.claims.values():
        if claim.namespace == plot.name:
            charged += charges_of_claim(claim.spec, index.classes)
    assert charged == Counter(dict(zip(bounded, (3, 40, 40, 40), strict=True)))

    def used() -> dict[str, int]:
        found = plot.get("ResourceQuota", "devices")["status"]["used"]
        return {name: int(amount) for name, amount in found.items()}

    plot.wait(lambda: used() == dict(charged), f"the API server to count {dict(charged)}")
