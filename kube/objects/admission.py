"""Decodes the objects that decide on pod admission: LimitRanges, RuntimeClasses, ResourceQuotas."""

from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Quantities, Slim
from kube.objects.pod_templates import TemplateToleration


class LimitRangeItem(Part, frozen=True):
    """Bounds and defaults of one type; the API server has filled in the defaults that follow."""

    type: str = ""
    max: OrNull[Quantities] = {}
    min: OrNull[Quantities] = {}
    default: OrNull[Quantities] = {}
    default_request: OrNull[Quantities] = {}
    max_limit_request_ratio: OrNull[Quantities] = {}


class LimitRangeSpec(Part, frozen=True):
    """All that a LimitRange says."""

    limits: OrNull[tuple[LimitRangeItem, ...]] = ()


class LimitRange(Slim, frozen=True):
    """A LimitRange of a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class Overhead(Part, frozen=True):
    """What each pod of a runtime takes beside its containers."""

    pod_fixed: OrNull[Quantities] = {}


class RuntimeScheduling(Part, frozen=True):
    """What a runtime adds to the terms of its pods."""

    node_selector: OrNull[Labels] = {}
    tolerations: OrNull[tuple[TemplateToleration, ...]] = ()


class RuntimeClass(Slim, frozen=True):
    """A runtime class."""

    metadata: ObjectMeta = ObjectMeta()
    overhead: Overhead | None = None
    scheduling: RuntimeScheduling | None = None


class ScopeRequirement(Part, frozen=True):
    """One expression about the scope of a ResourceQuota."""

    scope_name: str = ""
    operator: str = ""
    values: OrNull[tuple[str, ...]] = ()


class ScopeSelector(Part, frozen=True):
    """Expressions that must all hold."""

    match_expressions: OrNull[tuple[ScopeRequirement, ...]] = ()


class ResourceQuotaSpec(Part, frozen=True):
    """What a ResourceQuota allows, and of which pods."""

    hard: OrNull[Quantities] = {}
    scopes: OrNull[tuple[str, ...]] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Part, frozen=True):
    """What of it is used."""

    hard: OrNull[Quantities] = {}
    used: OrNull[Quantities] = {}


class ResourceQuota(Slim, frozen=True):
    """A ResourceQuota of a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


AdmissionRule = LimitRange | ResourceQuota | RuntimeClass
