"""AppWrapper of both generations: the fields that are read, and the status that is written.

MCAD's AppWrapper (`workload.codeflare.dev/v1beta1`, before that `mcad.ibm.com/v1beta1`) lists its
objects in `spec.resources.GenericItems`, CodeFlare's (`workload.codeflare.dev/v1beta2`) in
`spec.components`. They have no field of one name and two meanings, so one struct reads either.
Wrapped objects are raw JSON. The spec of a watched AppWrapper is raw too: its faults belong into a
message, and must not stop the watch of all the others.
"""

import msgspec

from kube.objects.base import Condition, Labels, ObjectMeta, OrNull, Part, Quantities, Slim
from kube.objects.core import SchedulingGate
from kube.objects.pod_templates import TemplateToleration
from kube.objects.ray import ABSENT

# --- spec, MCAD's generation -----------------------------------------------------------------


class CustomPodResources(Part, frozen=True, omit_defaults=True):
    """Pods that an item declares, all alike: how many, and what each asks for."""

    replicas: int = 1
    requests: OrNull[Quantities] = {}
    limits: OrNull[Quantities] = {}


class GenericItem(Part, frozen=True, omit_defaults=True):
    """One wrapped object; None where the item is silent."""

    replicas: int | None = None
    min_available: int | None = msgspec.field(default=None, name="minavailable")
    allocated: int | None = None
    priority: int | None = None
    priority_slope: float | None = msgspec.field(default=None, name="priorityslope")
    generic_template: msgspec.Raw = msgspec.field(default=ABSENT, name="generictemplate")
    custom_pod_resources: OrNull[tuple[CustomPodResources, ...]] = msgspec.field(
        default=(), name="custompodresources"
    )
    completion_status: str | None = msgspec.field(default=None, name="completionstatus")


class WrappedResources(Part, frozen=True, omit_defaults=True):
    """The wrapped objects."""

    generic_items: OrNull[tuple[GenericItem, ...]] = msgspec.field(default=(), name="GenericItems")


class Requeuing(Slim, frozen=True, omit_defaults=True):
    """When an AppWrapper with too few pods is stopped and queued again; None where silent."""

    initial_time_in_seconds: int | None = None
    time_in_seconds: int | None = None
    max_time_in_seconds: int | None = None
    growth_type: str | None = None
    num_requeuings: int | None = None
    max_num_requeuings: int | None = None


class DispatchDuration(Slim, frozen=True, omit_defaults=True):
    """How long an AppWrapper is expected to run, and allowed to, in seconds."""

    expected: int | None = None
    limit: int | None = None
    overrun: bool | None = None


class SchedulingSpec(Part, frozen=True, omit_defaults=True):
    """How an AppWrapper is started and stopped as a whole."""

    node_selector: OrNull[Labels] = {}
    min_available: int | None = None
    requeuing: Requeuing | None = None
    dispatch_duration: DispatchDuration | None = None


# --- spec, CodeFlare's generation ------------------------------------------------------------


class DeclaredPodSet(Part, frozen=True, omit_defaults=True):
    """Pods of a component, all alike: where in it their template is, and how many they are."""

    replicas: int | None = None
    path: str = ""
    annotations: OrNull[Labels] = {}


class PodSetInfo(Part, frozen=True, omit_defaults=True):
    """What is to be added to a pod template."""

    annotations: OrNull[Labels] = {}
    labels: OrNull[Labels] = {}
    node_selector: OrNull[Labels] = {}
    tolerations: OrNull[tuple[TemplateToleration, ...]] = ()
    scheduling_gates: OrNull[tuple[SchedulingGate, ...]] = ()


class Component(Part, frozen=True, omit_defaults=True):
    """One wrapped object."""

    annotations: OrNull[Labels] = {}
    pod_sets: OrNull[tuple[DeclaredPodSet, ...]] = ()
    pod_set_infos: OrNull[tuple[PodSetInfo, ...]] = ()
    template: msgspec.Raw = ABSENT


# --- either generation -----------------------------------------------------------------------


class AppWrapperSpec(Part, frozen=True, omit_defaults=True):
    """What both generations say; an AppWrapper has the fields of one of them."""

    components: OrNull[tuple[Component, ...]] = ()
    suspend: bool | None = None
    managed_by: str | None = None
    resources: WrappedResources | None = None
    priority: int | None = None
    priority_slope: float | None = msgspec.field(default=None, name="priorityslope")
    scheduling_spec: SchedulingSpec | None = None


class AppWrapperCondition(Condition, frozen=True, omit_defaults=True):
    """A condition of either generation, each with the names that it has for its times."""

    observed_generation: int = 0
    last_transition_time: str | None = None
    last_update_micro_time: str | None = None
    last_transition_micro_time: str | None = None


class PodCondition(Condition, frozen=True, omit_defaults=True):
    """What a pod says of itself."""

    last_transition_time: str | None = None


class PendingPod(Part, frozen=True, omit_defaults=True):
    """A pod that does not run, and what it says of itself."""

    pod_name: str = msgspec.field(default="", name="podname")
    conditions: OrNull[tuple[PodCondition, ...]] = ()


class ComponentStatus(Part, frozen=True, omit_defaults=True):
    """A wrapped object, the pods that it is to have, and whether it was created."""

    name: str = ""
    kind: str = ""
    api_version: str = ""
    pod_sets: OrNull[tuple[DeclaredPodSet, ...]] = ()
    conditions: OrNull[tuple[AppWrapperCondition, ...]] = ()


class AppWrapperStatus(Part, frozen=True, omit_defaults=True):
    """What is known of an AppWrapper, in the words of its generation.

    `phase` is written before anything is created or deleted, whatever the generation.
    `phase_since`, `transition_count`, `reason` and `message` are Muster's own: when the phase
    began, how often it changed, and why an AppWrapper is as it is.
    """

    phase: str = ""
    phase_since: str = ""
    resetting_count: int = 0
    transition_count: int = 0
    reason: str = ""
    message: str = ""
    conditions: OrNull[tuple[AppWrapperCondition, ...]] = ()
    component_status: OrNull[tuple[ComponentStatus, ...]] = ()
    state: str = ""
    queue_job_state: str = msgspec.field(default="", name="queuejobstate")
    can_run: bool = msgspec.field(default=False, name="canrun")
    is_dispatched: bool = msgspec.field(default=False, name="isdispatched")
    filter_ignore: bool = msgspec.field(default=False, name="filterignore")
    sender: str = ""
    local: bool = False
    system_priority: float = msgspec.field(default=0.0, name="systempriority")
    first_seen: str | None = msgspec.field(default=None, name="controllerfirsttimestamp")
    first_dispatched: str | None = msgspec.field(
        default=None, name="controllerfirstdispatchtimestamp"
    )
    pending: int = 0
    running: int = 0
    succeeded: int = msgspec.field(default=0, name="Succeeded")
    failed: int = 0
    min_available: int = msgspec.field(default=0, name="template")
    total_cpu: int = msgspec.field(default=0, name="totalcpu")
    total_memory: int = msgspec.field(default=0, name="totalmemory")
    total_gpu: int = msgspec.field(default=0, name="totalgpu")
    pending_pod_conditions: OrNull[tuple[PendingPod, ...]] = msgspec.field(
        default=(), name="pendingpodconditions"
    )
    requeueing_time_in_seconds: int = 0
    number_of_requeueings: int = 0


class AppWrapper(Slim, frozen=True):
    """An AppWrapper as it is watched; its spec is read by `appwrapper.spec`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = ABSENT
    status: AppWrapperStatus = AppWrapperStatus()
