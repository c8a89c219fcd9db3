"""Reads ResourceClaims and ResourceClaimTemplates.

What cannot be read or is not modelled stands in `unsupported`, by its field. Such a claim still
takes the devices that it was given.
"""

from typing import Any, Final

from kube.devices.capacity import amounts, asked_capacity
from kube.devices.common import LONGEST_SELECTORS, controller, nodes, selectors, tolerations
from kube.devices.json_fields import Fields, Problems
from kube.objects.core import DeviceObject
from scheduling.model.devices.resource_claim import (
    AllocatedDevice,
    Allocation,
    AllocationMode,
    ClaimSpec,
    Constraint,
    DeviceRequest,
    DistinctAttribute,
    MatchAttribute,
    Request,
    ResourceClaim,
    ResourceClaimTemplate,
)
from scheduling.model.devices.resource_slice import DeviceID

DECIDING: Final = ("bindingConditions", "skipNodeOperations")
"""Fields of a device that was given: a node is refused for the sake of what stands there."""

CONSTRAINTS: Final[dict[str, type[Constraint]]] = {
    "matchAttribute": MatchAttribute,
    "distinctAttribute": DistinctAttribute,
}
"""In the order in which kube-scheduler asks for them."""

MODES: Final = {"": AllocationMode.EXACT_COUNT, **{mode.value: mode for mode in AllocationMode}}


def resource_claim(found: DeviceObject) -> ResourceClaim:
    """Read a ResourceClaim."""
    meta, problems = found.metadata, Problems()
    status = Fields(found.status, "status", problems)
    given = allocation(status.part("allocation")) if "allocation" in status else None
    consumers = tuple(each.text("uid") for each in status.parts("reservedFor"))
    return ResourceClaim(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        spec=claim_spec(found.spec, "spec", problems),
        allocation=given,
        owner=controller(meta.owner_references),
        reserved_for=consumers,
        deleted=meta.deletion_timestamp is not None,
    )


def resource_claim_template(found: DeviceObject) -> ResourceClaimTemplate:
    """Read a ResourceClaimTemplate."""
    meta, problems = found.metadata, Problems()
    outer = Fields(found.spec, "spec", problems)
    outer.unknown("metadata", "spec")
    spec = claim_spec(outer.plain("spec"), "spec.spec", problems)
    return ResourceClaimTemplate(meta.namespace, meta.name, meta.uid, spec)


def claim_spec(spec: Any, path: str, problems: Problems | None = None) -> ClaimSpec:
    """Read what a claim asks for; problems found elsewhere in the claim are its own as well."""
    problems = Problems() if problems is None else problems
    outer = Fields(spec, path, problems)
    outer.unknown("devices")
    devices = outer.part("devices")
    devices.unknown("requests", "constraints", "config")
    # One that asks for nothing known is noted as a problem; the core takes none without choices.
    requests = tuple(r for r in map(_request, devices.parts("requests")) if r.alternatives)
    found = map(_constraint, devices.parts("constraints"))
    constraints = tuple(each for each in found if each is not None)
    if _selector_bytes(requests) > LONGEST_SELECTORS:
        problems.note(f"{path}: selectors of more than {LONGEST_SELECTORS} bytes")
        requests = ()
    return ClaimSpec(requests, constraints, problems.all)


def _selector_bytes(requests: tuple[Request, ...]) -> int:
    return sum(len(s) for r in requests for each in r.alternatives for s in each.selectors)


def _request(fields: Fields) -> Request:
    fields.unknown("name", "exactly", "firstAvailable")
    name = fields.text("name")
    if "exactly" in fields:
        return Request(name, exactly=_wanted(fields.part("exactly"), name))
    parts = fields.parts("firstAvailable")
    alternatives = tuple(_wanted(each, each.text("name")) for each in parts)
    if not alternatives:
        fields.problems.note(f"{fields.path} asks for nothing that is known")
    return Request(name, first_available=alternatives)


def _wanted(fields: Fields, name: str) -> DeviceRequest:
    """Read a request, with problems of its own: another alternative may do without them."""
    own = Fields(fields.whole, fields.path, Problems())
    own.unknown(
        *("name", "deviceClassName", "selectors", "allocationMode", "count", "tolerations"),
        *("adminAccess", "capacity", "derivedAttributes"),
    )
    mode = own.text("allocationMode")
    if mode not in MODES:
        own.problems.note(f"{own.path}.allocationMode {mode} is not known")
    count = own.number("count", 1)
    if count < 1:
        own.problems.note(f"{own.path}.count {count} is not positive")
    if own.flag("adminAccess"):
        own.problems.note("adminAccess (ask for devices of your own instead)")
    if own.plain("derivedAttributes"):
        own.problems.note("derivedAttributes (match an attribute of the devices instead)")
    capacity = asked_capacity(own)
    return DeviceRequest(
        name=name,
        device_class=own.text("deviceClassName"),
        selectors=selectors(own),
        mode=MODES.get(mode, AllocationMode.EXACT_COUNT),
        count=count,
        tolerations=tolerations(own),
        unsupported=own.problems.all,
        capacity=capacity,
    )


def _constraint(fields: Fields) -> Constraint | None:
    fields.unknown("requests", *CONSTRAINTS)
    kind = next((each for each in CONSTRAINTS if each in fields), None)
    if kind is None:
        fields.problems.note(f"{fields.path} is no constraint that is known")
        return None
    return CONSTRAINTS[kind](fields.text(kind), fields.texts("requests"))


# ---- what was given


def allocation(fields: Fields) -> Allocation:
    """Read which devices a claim was given, and the nodes that reach them.

    A field that is not known changes nothing: the devices are taken all the same.
    """
    results = list(fields.part("devices").parts("results"))
    deciding = {key for each in results for key in DECIDING if each.plain(key)}
    return Allocation(
        tuple(map(_allocated, results)),
        nodes(fields, "nodeSelector"),
        is_dated="allocationTimestamp" in fields,
        unsupported=tuple(sorted(deciding)),
    )


def _allocated(fields: Fields) -> AllocatedDevice:
    """Read a device that was given; a share of which the amount is not read takes all of it."""
    device = DeviceID(fields.text("driver"), fields.text("pool"), fields.text("device"))
    shares = bool(fields.text("shareID"))
    consumed = amounts(dict(fields.named("consumedCapacity"))) if shares else None
    return AllocatedDevice(fields.text("request"), device, fields.flag("adminAccess"), consumed)
