"""What is kept for the sake of devices: who has which, within bounds that a tenant cannot pass."""

import sys
from typing import Any

import pytest

from kube.codec.devices.pod_claims import MOST_CLAIMS as MOST_OF_A_POD
from kube.codec.devices.pod_claims import PodClaim, pod_claims
from kube.devices.claims_of_pods import ClaimNotReady, claims_of_pod
from kube.devices.device_classes import device_class
from kube.devices.device_facts import DEVICE_WATCHES
from kube.devices.device_index import MOST_CLAIMS, MOST_TEMPLATES, DeviceIndex
from kube.devices.resource_claims import resource_claim, resource_claim_template
from kube.devices.resource_slices import ReadSlice, resource_slice
from kube.devices.taint_rules import device_taint_rule
from scheduling.model.devices.in_use import InUse
from scheduling.model.devices.resource_claim import ResourceClaim, ResourceClaimTemplate
from scheduling.model.devices.resource_slice import DeviceID
from tests.kube.codec.pods import pod
from tests.kube.devices.objects import GPU, claim_spec, decoded, given, gpu, request, slice_spec

OF_POD = [{"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]


def claim(name: str, *devices: str, **meta: Any) -> ResourceClaim:
    status = given(*devices) if devices else None
    return resource_claim(decoded(name, claim_spec(request()), status, **meta))


def taints(index: DeviceIndex, name: str) -> list[str]:
    return [taint.key for taint in index.slices[name].devices[0].taints]


def device(name: str) -> DeviceID:
    return DeviceID(GPU, "node-1", name)


# ---- slices and rules


def test_rules_are_laid_over_slices_whichever_comes_first() -> None:
    index = DeviceIndex()
    rule = device_taint_rule(
        decoded("r", {"deviceSelector": {"device": "a"}, "taint": {"key": "k", "effect": "None"}})
    )
    index.put(resource_slice(decoded("s", slice_spec(gpu("a"), gpu("b")))))
    assert taints(index, "s") == []
    index.put(rule)
    assert taints(index, "s") == ["k"]
    index.put(resource_slice(decoded("t", slice_spec(gpu("a")))))
    assert taints(index, "t") == ["k"]
    index.drop(rule)
    assert taints(index, "s") == []
    index.drop(resource_slice(decoded("s", None)))
    assert list(index.slices) == ["t"]


def test_no_rules_are_laid_where_kube_scheduler_runs_without_them() -> None:
    index = DeviceIndex(["DRADeviceTaintRules"])
    rule = decoded("r", {"deviceSelector": {}, "taint": {"key": "k", "effect": "NoSchedule"}})
    index.put(device_taint_rule(rule))
    index.put(resource_slice(decoded("s", slice_spec(gpu("a")))))
    assert taints(index, "s") == ["k"], "that is known with the version"
    index.follow("1.37")
    assert taints(index, "s") == []


def test_claims_that_were_given_nothing_are_known_as_such() -> None:
    index = DeviceIndex()
    index.put(claim("new"))
    index.put(claim("other"))
    assert index.unallocated == {("team", "new"), ("team", "other")}
    index.put(claim("new", "a"))
    assert index.unallocated == {("team", "other")}
    index.drop(claim("other"))
    assert index.unallocated == set()


def test_what_is_not_told_of_is_unseen() -> None:
    index = DeviceIndex()
    assert index.unseen == {watch.fact for watch in DEVICE_WATCHES}
    index.see(ReadSlice)
    index.lose_sight(ResourceClaim)
    assert ReadSlice not in index.unseen
    assert ResourceClaim in index.unseen


def test_classes_come_and_go() -> None:
    index = DeviceIndex()
    index.put(device_class(decoded("c", {"extendedResourceName": "example.com/gpu"})))
    assert list(index.classes) == ["c"]
    assert index.classes_of_resources["example.com/gpu"] == "c"
    index.drop(device_class(decoded("c", {})))
    assert index.classes == {}
    assert index.classes_of_resources == {}


@pytest.mark.parametrize("watch", DEVICE_WATCHES)
def test_every_kind_is_observed_and_kept(watch: Any) -> None:
    seen = watch.observe(decoded("x", {}, resourceVersion="7"))
    assert (seen.metadata.name, seen.resource_version) == ("x", "7")
    index = DeviceIndex()
    index.put(seen.fact)
    index.drop(seen.fact)
    assert isinstance(seen.fact, watch.fact)
    tenants = isinstance(seen.fact, ResourceClaim | ResourceClaimTemplate)
    assert index.edition == (0 if tenants else 2)


# ---- claims


def test_a_device_is_taken_as_long_as_a_claim_was_given_it() -> None:
    index = DeviceIndex()
    index.put(claim("c", "gpu-0", "gpu-1"))
    assert index.taken == {device("gpu-0"): ("team", "c"), device("gpu-1"): ("team", "c")}
    index.put(claim("c", "gpu-1"))
    assert index.taken == {device("gpu-1"): ("team", "c")}
    index.put(claim("other", "gpu-1"))  # what a driver or a test may do
    index.drop(claim("c", "gpu-1"))
    assert index.taken == {device("gpu-1"): ("team", "other")}
    index.drop(claim("other"))
    assert index.taken == {}


@pytest.mark.parametrize("goes", ["c", "other"])
def test_a_device_of_two_claims_is_taken_until_both_are_gone(goes: str) -> None:
    """Of shares whose amount is not read each takes the whole device."""
    index = DeviceIndex()
    for name in ("c", "other"):
        index.put(claim(name, "gpu-0"))
    index.drop(claim(goes))
    [left] = {"c", "other"} - {goes}
    assert index.taken == {device("gpu-0"): ("team", left)}
    assert list(index.taken_by_pool.values()) == [{device("gpu-0")}]
    index.put(claim(left, "gpu-0"))
    index.drop(claim(left))
    assert (index.taken, index.taken_by_pool) == ({}, {})


def test_a_claim_that_gives_a_device_back_leaves_it_to_the_other_one() -> None:
    index = DeviceIndex()
    for name in ("c", "other"):
        index.put(claim(name, "gpu-0", "gpu-0"))
    index.put(claim("other"))
    assert index.taken == {device("gpu-0"): ("team", "c")}
    index.drop(claim("other"))
    assert index.taken == {device("gpu-0"): ("team", "c")}


def test_what_is_taken_of_a_pool_is_told_anew_where_it_changed_alone() -> None:
    index = DeviceIndex()
    index.put(claim("c", "gpu-0"))
    [(pool, before)] = index.taken_by_pool.items()
    assert before == {device("gpu-0")}
    index.put(claim("waits"))
    assert index.taken_by_pool[pool] is before
    index.put(claim("d", "gpu-1"))
    assert index.taken_by_pool == {pool: {device("gpu-0"), device("gpu-1")}}
    index.drop(claim("c"))
    index.drop(claim("d"))
    assert index.taken_by_pool == {}


def test_shares_with_one_id_count_each_as_kube_scheduler_counts_them() -> None:
    """It adds up what results consume, whatever their shareID: of two claims, or of one twice."""
    half = {"shareID": "x", "consumedCapacity": {"memory": "40Gi"}}
    amount = 40_000 * 2**30

    def in_use(*claims: ResourceClaim) -> InUse:
        index = DeviceIndex()
        for each in claims:
            index.put(each)
        index.drop(claim("gone"))
        return InUse.of(frozenset(index.taken), {device("gpu-0"): True})

    def sharing(name: str, times: int) -> ResourceClaim:
        status = given(*["gpu-0"] * times)
        for each in status["allocation"]["devices"]["results"]:
            each.update(half)
        return resource_claim(decoded(name, claim_spec(request()), status))

    once = in_use(sharing("a", 1))
    assert once.consumed(device("gpu-0")) == (("memory", amount),)
    assert in_use(sharing("a", 1), sharing("b", 1)) == in_use(sharing("a", 2))
    assert in_use(sharing("a", 2)).consumed(device("gpu-0")) == (("memory", 2 * amount),)
    assert in_use(sharing("a", 1), sharing("gone", 1)) == once


def test_claims_concern_all_only_while_they_are_given_something() -> None:
    """Else a tenant who writes claims would have every gang that claims devices judged anew."""
    index = DeviceIndex()
    for step, changed in (
        (claim("c"), 0),
        (claim("c", "gpu-0"), 1),
        (claim("c", "gpu-0"), 1),
        (claim("c"), 2),
        (claim("c", "gpu-0"), 3),
    ):
        index.put(step)
        assert index.edition == changed
    index.drop(claim("c"))
    index.drop(claim("other"))
    assert index.edition == 4


def test_admin_access_takes_nothing() -> None:
    index, status = DeviceIndex(), given("gpu-0")
    status["allocation"]["devices"]["results"][0]["adminAccess"] = True
    index.put(resource_claim(decoded("c", claim_spec(request()), status)))
    assert index.taken == {}


def test_claims_of_a_namespace_are_bounded_and_told_and_keep_their_devices() -> None:
    """10,000 by one tenant: another one's are as they were, and all that is taken is known."""
    index = DeviceIndex()
    for number in range(10_000):
        spec = claim_spec(request(selectors=[{"cel": {"expression": f"{number} == 1"}}]))
        index.put(resource_claim(decoded(f"c{number}", spec, given(f"gpu-{number}"))))
    whole = [each for each in index.claims.values() if not each.spec.unsupported]
    beyond = index.claims["team", "c9999"]
    assert len(whole) == MOST_CLAIMS
    assert len({id(each.spec) for each in index.claims.values()}) == MOST_CLAIMS + 1
    assert len(index.taken) == 10_000
    assert sys.getsizeof(beyond.spec.requests) == sys.getsizeof(())
    found = claims_of_pod("team", "p", "u", (PodClaim("gpu", "c9999"),), index)
    assert not isinstance(found, ClaimNotReady)
    assert found[0].spec.unsupported == (
        "more than 2000 ResourceClaims in the namespace (delete those not in use)",
    )
    index.put(claim("mine", namespace="other"))
    assert index.claims["other", "mine"].spec.unsupported == ()
    index.drop(index.claims["team", "c0"])
    index.put(claim("c9999"))
    assert index.claims["team", "c9999"].spec.unsupported == ()


def test_equal_specs_of_claims_are_kept_once() -> None:
    index = DeviceIndex()
    index.put(claim("a"))
    index.put(claim("b"))
    assert index.claims["team", "a"].spec is index.claims["team", "b"].spec


def test_templates_of_a_namespace_are_bounded_and_told() -> None:
    index = DeviceIndex()
    for number in range(MOST_TEMPLATES + 5):
        index.put(resource_claim_template(decoded(f"t{number}", {"spec": claim_spec(request())})))
    assert len(index.templates) == MOST_TEMPLATES
    last = PodClaim("gpu", template=f"t{MOST_TEMPLATES + 1}")
    found = claims_of_pod("team", "p", "u", (last,), index)
    assert isinstance(found, ClaimNotReady)
    assert "is one of more than 500 in the namespace (delete those not in use)" in found.message


# ---- claims of a pod


def test_a_pod_names_its_claims_and_its_status_those_made_for_it() -> None:
    spec = {
        "resourceClaims": [
            {"name": "shared", "resourceClaimName": "ours"},
            {"name": "own", "resourceClaimTemplateName": "t"},
            {"name": "later", "resourceClaimTemplateName": "t"},
            {"name": "none", "resourceClaimTemplateName": "t"},
            {"name": "odd"},
        ]
    }
    made = [{"name": "own", "resourceClaimName": "p-own-x7"}, {"name": "none"}]
    assert pod_claims(pod(spec, {"resourceClaimStatuses": made})) == (
        PodClaim("shared", "ours"),
        PodClaim("own", "p-own-x7", "t"),
        PodClaim("later", template="t"),
        PodClaim("none", template="t", meant=False),
        PodClaim("odd"),
    )
    assert pod_claims(pod({"resourceClaims": None})) == ()


NOT_MADE = (
    "its ResourceClaim is not made yet from ResourceClaimTemplate t "
    "(see Events FailedResourceClaimCreation of the pod)"
)


def indexed() -> DeviceIndex:
    index = DeviceIndex()
    index.put(resource_claim_template(decoded("t", {"spec": claim_spec(request())})))
    index.put(claim("ours"))
    index.put(claim("p-own-x7", ownerReferences=OF_POD))
    index.put(claim("going", deletionTimestamp="2026-01-01T00:00:00Z"))
    return index


def test_claims_of_a_pod_come_in_its_order_without_those_it_is_not_to_have() -> None:
    asked = (
        PodClaim("own", "p-own-x7", "t"),
        PodClaim("none", template="t", meant=False),
        PodClaim("shared", "ours"),
    )
    found = claims_of_pod("team", "p", "uid-p", asked, indexed())
    assert not isinstance(found, ClaimNotReady)
    assert [each.name for each in found] == ["p-own-x7", "ours"]


@pytest.mark.parametrize(
    ("asked", "said", "permanent"),
    [
        (PodClaim("gpu", "lost"), "ResourceClaim lost does not exist", False),
        (PodClaim("gpu", "going"), "ResourceClaim going is being deleted", False),
        (PodClaim("gpu", "ours", "t"), "ResourceClaim ours was not made for this pod", False),
        (
            PodClaim("gpu", template="t"),
            NOT_MADE,
            False,
        ),
        (PodClaim("gpu", template="gone"), "ResourceClaimTemplate gone does not exist", False),
        (
            PodClaim("gpu"),
            "it names neither a ResourceClaim nor a ResourceClaimTemplate",
            True,
        ),
    ],
)
def test_a_pod_whose_claim_is_not_ready_says_why(
    asked: PodClaim, said: str, permanent: bool
) -> None:
    found = claims_of_pod("team", "p", "uid-p", (PodClaim("a", "ours"), asked), indexed())
    assert found == ClaimNotReady(f"pod p, claim gpu: {said}", permanent)


def test_a_pod_with_too_many_claims_is_told_so() -> None:
    asked = tuple(PodClaim(str(n), "ours") for n in range(MOST_OF_A_POD + 1))
    found = claims_of_pod("team", "p", "uid-p", asked, indexed())
    assert found == ClaimNotReady("pod p has more than 32 claims", permanent=True)
    assert not isinstance(claims_of_pod("team", "p", "u", asked[1:], indexed()), ClaimNotReady)
