"""Each message about an unsupported constraint says what to do instead.

What is not supported of volumes has its remedies in its own tests.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import coordinator
import scheduling
from coordinator.cluster.devices import Devices
from coordinator.gang.claims.of_pods import Surroundings, claimed
from coordinator.gang.demand import NotReady, demand
from coordinator.gang.pods.pod_sets import survey
from coordinator.messages.events import DeviceApiSeen
from coordinator.reconcile.together import waiting
from kube.codec import pod as pod_codec
from kube.codec.devices.pod_claims import PodClaim
from kube.codec.observed_pod import ObservedPod, observe
from kube.codec.pod import pod_shape
from kube.codec.profiles.scheduler_profiles import STOCK, Profile
from kube.devices.device_classes import device_class
from kube.devices.resource_claims import claim_spec as claim_spec_of
from kube.objects import names
from kube.objects.core import Pod
from kube.ray.gang_terms import GangTerms, PodSetTerms
from scheduling.cycle import run_cycle
from scheduling.diagnosis import claimed_devices, refusals
from scheduling.diagnosis.refusals import MOST_KINDS
from scheduling.model.gang import GangKey, Group, Member, Topology
from scheduling.model.verdict import Reason, Refusal
from scheduling.state.node_snapshot import NodeAttributes
from tests.builders import GPU, columns, gang, group, node, shape
from tests.coordinator.builders import Json, pod_of, ray_cluster, template
from tests.coordinator.claimed import known_devices, put_claim, standing_of
from tests.coordinator.claimed import worker as claimant
from tests.kube.devices.objects import claim_spec, decoded, given, request
from tests.scheduling.admission.test_interdependent import constrained, term
from tests.scheduling.filters.test_pod_topology_spread import ZONES, decide, spread, spreading

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

SPREADING = "spreading"
PROFILES = {**STOCK, SPREADING: Profile(SPREADING, spreads_by_default=True)}
"""Of the stock scheduler, and of one that spreads pods of itself."""

SPECS: dict[str, tuple[Json, str]] = {
    "schedulerName": ({"schedulerName": "x"}, "use one of the schedulers in the coordinator's"),
    "host ports": (
        {"containers": [{"ports": [{"hostPort": at} for at in range(1, 60)]}]},
        "use fewer",
    ),
    "node selection terms": ({"nodeSelector": {str(at): "" for at in range(300)}}, "use fewer"),
    "terms of affinity": ({"affinity": {"podAffinity": {REQUIRED: [TERM] * 300}}}, "use fewer"),
    "topologySpreadConstraints": (
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}] * 17},
        "use fewer",
    ),
    "default topology spread": (
        {"schedulerName": SPREADING},
        "give the pods topologySpreadConstraints of",
    ),
    "schedulingGroup": ({"schedulingGroup": {"podGroupName": "g"}}, "leave it out"),
    "toleration operator": ({"tolerations": [{"operator": "Lt"}]}, "use Equal or Exists"),
}
"""What a pod asks for, and the remedy."""


@pytest.mark.parametrize("what", SPECS)
def test_each_constraint_of_a_pod_that_is_not_modelled_says_what_to_do_instead(what: str) -> None:
    spec, remedy = SPECS[what]
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": {"containers": [], **spec}}, Pod)
    asked = pod_shape(pod, PROFILES)
    [said] = asked.unsupported
    assert what in said
    assert f"({remedy}" in said
    message = refused(run_cycle([gang("g", group("w", 1, asked))], columns(node("n"))))
    assert message == f"not supported by Muster; w: {said}"


def refused(decisions: tuple[object, ...]) -> str:
    [decision] = decisions
    verdict = getattr(decision, "verdict", decision)
    assert isinstance(verdict, Refusal)
    assert verdict.reason is Reason.UNSUPPORTED
    return verdict.message


def too_many_kinds() -> str:
    many = [group(f"s{at:03}", 1, shape(cpu=f"{at + 1}m")) for at in range(MOST_KINDS + 1)]
    return refused(run_cycle([gang("g", *many)], columns(node("n"))))


def too_many_ports() -> str:
    many = (shape(ports=[("", "TCP", 100 * at + 1) for at in range(one, 70)]) for one in (0, 1))
    groups = (group(f"w{at}", 1, each) for at, each in enumerate(many))
    return refused(run_cycle([gang("g", *groups)], columns(node("n"))))


def only_unpinned() -> str:
    return refused((decide(group("w", 5, spreading(spread(least=2))), on=ZONES),))


def only_unpinned_by_policy() -> str:
    constraint = replace(spread(), honors_affinity=False)
    return refused((refusals.fits_unpinned([group("w", 1, spreading(constraint))]),))


def by_device_class() -> str:
    world = columns(node("bare"))
    arrays = world.resources, world.allocatable, world.used
    world = type(world)(world.traits, *arrays, claimable=frozenset([GPU]))
    return refused(run_cycle([gang("g", group("w", 1, shape(gpu=1)))], world))


def equal_pods_differ() -> str:
    apart = constrained(anti_affinity=[term("w-0")])
    members = tuple(Member("w", apart, (("app", f"w-{at}"),)) for at in range(2))
    asked = replace(gang("g", group("w", 2, apart)), members=members)
    return refused(run_cycle([asked], ZONES))


def named_by_the_pod() -> str:
    named = shape(unsupported=(f"schedulingGroup ({SPECS['schedulingGroup'][1]})",))
    return refused((refusals.not_modelled([Group("w", "", named, 1)]),))


def without_replica() -> str:
    cluster = ray_cluster("a")
    cluster["metadata"]["uid"] = "u"
    raw = pod_of(cluster, "w", "p", template(), "", [names.GATE])
    pod = observe(msgspec.convert(raw, Pod))
    standing = survey(GangTerms("", "", (PodSetTerms("w", 2, 0, 2),)), [pod], None, {})
    asked = demand(
        GangKey("team", "a"), 0, 0.0, standing, topology=Topology(("w",), replica="rack")
    )
    assert isinstance(asked, NotReady)
    return asked.message


def of_a_claim() -> str:
    asked = claim_spec(request(adminAccess=True))
    [of_request] = claim_spec_of(asked, "spec").requests
    assert of_request.exactly is not None
    [feature] = of_request.exactly.unsupported
    return refused((claimed_devices.unforeseen(feature),))


def of_old_kubernetes() -> str:
    devices = known_devices()
    devices.put_api(DeviceApiSeen("1.32", served=True))
    return waits_for_claims(devices, claimant(0))


def shared_with_others() -> str:
    pods = [claimant(n, shared="c") for n in range(3)]
    devices = known_devices(*pods)
    put_claim(devices, "c")
    return waits_for_claims(devices, *pods[1:])


def claims_more_than_is_shared() -> str:
    one, other = (claimant(n, shared="c") for n in range(2))
    more = replace(other, claims=(*other.claims, PodClaim("own", "own", "one")))
    devices = known_devices(one, more)
    put_claim(devices, "c")
    put_claim(devices, "own", "uid-1")
    return waits_for_claims(devices, one, more)


def allocated_before_1_36() -> str:
    pod = claimant(0, shared="c")
    devices = known_devices(pod)
    put_claim(devices, "c", status=given("gpu-0", allocationTimestamp=None))
    return waits_for_claims(devices, pod)


def given_with_conditions() -> str:
    pod, status = claimant(0, shared="c"), given("gpu-0")
    status["allocation"]["devices"]["results"][0]["bindingConditions"] = ["attached"]
    devices = known_devices(pod)
    put_claim(devices, "c", status=status)
    return waits_for_claims(devices, pod)


def template_made_anew() -> str:
    devices, pods = known_devices(), (claimant(0, "c0"), claimant(1, "c1"))
    put_claim(devices, "c0", "uid-0")
    put_claim(devices, "c1", "uid-1", claim_spec(request(count=2)))
    return waits_for_claims(devices, *pods)


def listed_beside_claims() -> str:
    amounts = {"requests": {"cpu": "1", "example.com/gpu": "1"}}
    pod = claimant(0, shared="c", containers=[{"name": "ray", "resources": amounts}])
    devices = known_devices(pod)
    put_claim(devices, "c")
    devices.index.put(device_class(decoded("gpu", {"extendedResourceName": "example.com/gpu"})))
    nodes = NodeAttributes((node("n1", extra={"example.com/gpu": 1}),))
    found = claimed(standing_of(pod), devices, Surroundings(nodes)).hindrance
    assert found is not None
    return found.message


def waits_for_claims(devices: Devices, *pods: ObservedPod) -> str:
    found = claimed(standing_of(*pods), devices, Surroundings(NodeAttributes(()))).hindrance
    assert found is not None
    assert found.reason is Reason.UNSUPPORTED
    return found.message


CASES: dict[str, tuple[tuple[Callable[[], str], str], ...]] = {
    "refusals.not_modelled": ((named_by_the_pod, "leave it out"),),
    "refusals.too_many_kinds": ((too_many_kinds, "make the pods of a group equal, or use fewer"),),
    "refusals.too_many_ports": ((too_many_ports, "use fewer"),),
    "refusals.fits_unpinned": (
        (only_unpinned, "leave minDomains out"),
        (only_unpinned_by_policy, "use Honor"),
    ),
    "refusals._refusal": ((by_device_class, "add nodes that list them"),),
    "refusals.equal_pods_differ": (
        (equal_pods_differ, "select by labels that all pods of a group"),
    ),
    "claimed_devices.unforeseen": ((of_a_claim, "ask for devices of your own instead"),),
    "of_pods._not_known": (
        (of_old_kubernetes, "ask for the extended resource of a device plugin"),
    ),
    "of_pods._cannot_be_used": (
        (allocated_before_1_36, "make it anew"),
        (given_with_conditions, "claim other devices"),
    ),
    "shared._not_supported": (
        (shared_with_others, "give each pod its own by a template"),
        (claims_more_than_is_shared, "give each pod its own by a template"),
    ),
    "of_pods._listed_beside_claims": ((listed_beside_claims, "ask for it by claim"),),
    "of_pods._several_kinds": ((template_made_anew, "delete these pods"),),
    "waiting.not_supported": (
        (lambda: waiting.not_supported(waiting.OLD_SCHEMA).message, "apply manifests/crds of"),
        (lambda: waiting.not_supported(waiting.COUNTED).message, "put all members into one App"),
    ),
    "demand._nameless": ((without_replica, "switch KubeRay's feature RayMultiHostIndexing on"),),
}
"""By the function that refuses: each message of it, and the remedy."""

OF_VOLUMES = {
    "domain_refusals.reach_unknown",
    "refusals.shared_disks_counted",
    "refusals.volumes_unforeseen",
}


@pytest.mark.parametrize("where", CASES)
def test_each_refusal_of_what_is_not_supported_says_what_to_do_instead(where: str) -> None:
    for say, remedy in CASES[where]:
        message = say()
        assert message.startswith("not supported by Muster")
        assert remedy in message


# ---- none is left out


def sources(package: object) -> Iterator[Path]:
    yield from Path(str(getattr(package, "__file__", ""))).parent.rglob("*.py")


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))


def refuses(function: ast.FunctionDef) -> bool:
    """Say whether a function makes a Refusal or NotReady with the reason Unsupported."""
    calls = (each for each in ast.walk(function) if isinstance(each, ast.Call) and each.args)
    return any(
        ast.unparse(call.func) in ("Refusal", "NotReady")
        and ast.unparse(call.args[0]) == "Reason.UNSUPPORTED"
        for call in calls
    )


def test_there_are_no_other_messages_of_what_is_not_supported() -> None:
    found = {
        f"{path.stem}.{function.name}"
        for package in (scheduling, coordinator)
        for path in sources(package)
        for function in functions(path)
        if refuses(function)
    }
    assert found == {*CASES, *OF_VOLUMES}
    yields = [
        each
        for function in functions(Path(pod_codec.__file__))
        if function.name in ("_not_modelled", "_tolerations")
        for each in ast.walk(function)
        if isinstance(each, ast.Yield)
    ]
    assert len(yields) == len(SPECS)
