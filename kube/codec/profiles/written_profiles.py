"""Reads the profiles of the schedulers that bind the pods of gangs.

A profile is written as in `profiles` of a KubeSchedulerConfiguration, so that it can be copied
from there. Plugins that only score, sort or evict are read and left aside. A plugin that may refuse
pods and is not one of kube-scheduler's own is an error, for nothing could be promised then.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from kube.codec.profiles.scheduler_profiles import (
    DEFAULT_SCHEDULER,
    MOST_SPREADS,
    POD_TOPOLOGY_SPREAD,
    RELAXED,
    Profile,
    Profiles,
)
from scheduling.model.constraints import NodeTerm, Requirement

_NEEDED = {"NodeAffinity": "filter", "SchedulingGates": "pre_enqueue"}
_OWN = frozenset(
    (
        *("SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration"),
        *("NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions"),
        *("NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread"),
        *("InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures", "DefaultPreemption"),
        *("NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder"),
    )
)


class _Written(BaseModel):
    """Spelled as the configuration spells it; a word that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


class _Expression(_Written):
    key: str = Field(min_length=1)
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()

    def read(self) -> Requirement:
        return Requirement(self.key, self.operator, self.values)


class _Term(_Written):
    match_expressions: tuple[_Expression, ...] = ()
    match_fields: tuple[_Expression, ...] = ()

    def read(self) -> NodeTerm:
        labels = tuple(each.read() for each in self.match_expressions)
        return NodeTerm(labels, tuple(each.read() for each in self.match_fields))


class _Terms(_Written):
    node_selector_terms: tuple[_Term, ...] = Field(min_length=1)


class _Affinity(_Written):
    required_during_scheduling_ignored_during_execution: _Terms | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[dict[str, Any], ...] = ()


class _Arguments(_Written):
    api_version: str = ""
    kind: str = ""


class _NodeAffinityArguments(_Arguments):
    added_affinity: _Affinity | None = None


class _Constraint(_Written):
    topology_key: str = Field(min_length=1)
    max_skew: int = Field(ge=1)
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: int | None = Field(default=None, ge=1)
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: tuple[str, ...] = ()


class _SpreadArguments(_Arguments):
    default_constraints: tuple[_Constraint, ...] = Field(default=(), max_length=MOST_SPREADS)
    defaulting_type: Literal["System", "List"] = "System"

    @model_validator(mode="after")
    def _are_listed(self) -> "_SpreadArguments":
        if self.default_constraints and self.defaulting_type == "System":
            raise ValueError('defaultConstraints beside defaultingType "System"; allowed: "List"')
        return self


class _NodeAffinityConfig(_Written):
    name: Literal["NodeAffinity"]
    args: _NodeAffinityArguments = _NodeAffinityArguments()


class _SpreadConfig(_Written):
    name: Literal["PodTopologySpread"]
    args: _SpreadArguments = _SpreadArguments()


class _OtherConfig(_Written):
    """Arguments that change scores, timeouts and victims, or make a plugin more lenient."""

    name: str = Field(min_length=1)
    args: dict[str, Any] = {}


def _kind_of(config: Any) -> str:
    name = config.get("name") if isinstance(config, dict) else getattr(config, "name", None)
    return name if name in ("NodeAffinity", "PodTopologySpread") else "other"


_PluginConfig = Annotated[
    Annotated[_NodeAffinityConfig, Tag("NodeAffinity")]
    | Annotated[_SpreadConfig, Tag("PodTopologySpread")]
    | Annotated[_OtherConfig, Tag("other")],
    Discriminator(_kind_of),
]


class _Plugin(_Written):
    name: str = Field(min_length=1)
    weight: int = 0


class _Plugins(_Written):
    enabled: tuple[_Plugin, ...] = ()
    disabled: tuple[_Plugin, ...] = ()

    def leaves_out(self, name: str) -> bool:
        """Say whether these switch the plugin off and not on again."""
        off = {each.name for each in self.disabled}
        return bool(off & {name, "*"}) and all(each.name != name for each in self.enabled)


class _ExtensionPoints(_Written):
    """Where plugins are called; what may refuse a pod stands before what may not."""

    multi_point: _Plugins = _Plugins()
    pre_enqueue: _Plugins = _Plugins()
    pre_filter: _Plugins = _Plugins()
    filter: _Plugins = _Plugins()
    reserve: _Plugins = _Plugins()
    permit: _Plugins = _Plugins()
    pre_bind: _Plugins = _Plugins()
    bind: _Plugins = _Plugins()
    queue_sort: _Plugins = _Plugins()
    post_filter: _Plugins = _Plugins()
    pre_score: _Plugins = _Plugins()
    score: _Plugins = _Plugins()
    post_bind: _Plugins = _Plugins()

    def may_refuse(self) -> Iterator[str]:
        """List the plugins switched on where they may refuse a pod."""
        points = (self.multi_point, self.pre_enqueue, self.pre_filter, self.filter)
        for each in (*points, self.reserve, self.permit, self.pre_bind, self.bind):
            yield from (plugin.name for plugin in each.enabled)

    def leave_out(self, name: str, point: str) -> bool:
        """Say whether a plugin that is on by default is not called there."""
        own: _Plugins = getattr(self, point)
        named = any(each.name == name for each in own.enabled)
        return own.leaves_out(name) or (self.multi_point.leaves_out(name) and not named)


class SchedulerProfile(_Written):
    """One entry of `profiles`."""

    scheduler_name: str = Field(default=DEFAULT_SCHEDULER, min_length=1)
    percentage_of_nodes_to_score: int | None = None
    plugins: _ExtensionPoints = _ExtensionPoints()
    plugin_config: tuple[_PluginConfig, ...] = ()

    @field_validator("plugins")
    @classmethod
    def _can_be_judged(cls, plugins: _ExtensionPoints) -> _ExtensionPoints:
        unknown = sorted(set(plugins.may_refuse()) - _OWN)
        if unknown:
            raise ValueError(
                "plugins that may refuse pods and that Muster does not know: "
                f"{', '.join(unknown)}; allowed: {', '.join(sorted(_OWN))}"
            )
        for name, point in _NEEDED.items():
            if plugins.leave_out(name, point):
                raise ValueError(f"{name} must stay on: gates and pins hold by it")
        return plugins

    def read(self) -> Profile:
        """Return the settings that matter to a verdict."""
        configs = {each.name: each.args for each in self.plugin_config}
        off = frozenset(name for name in RELAXED if self.plugins.leave_out(name, "filter"))
        return Profile(
            name=self.scheduler_name,
            added=_added(configs.get("NodeAffinity")),
            spreads_by_default=POD_TOPOLOGY_SPREAD not in off
            and _spreads(configs.get(POD_TOPOLOGY_SPREAD)),
            off=off,
        )


def _added(args: object) -> tuple[NodeTerm, ...] | None:
    """Return the terms that are added to each pod's own; what is only preferred is left aside."""
    affinity = args.added_affinity if isinstance(args, _NodeAffinityArguments) else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return tuple(each.read() for each in required.node_selector_terms) if required else None


def _spreads(args: object) -> bool:
    """Say whether default constraints can refuse a pod; the system's own are all ScheduleAnyway."""
    listed = args.default_constraints if isinstance(args, _SpreadArguments) else ()
    return any(each.when_unsatisfiable == "DoNotSchedule" for each in listed)


def profiles_of(written: Iterable[SchedulerProfile]) -> Profiles:
    """Return the profiles by the name that pods give."""
    return {each.scheduler_name: each.read() for each in written}


def named_twice(written: Sequence[SchedulerProfile]) -> list[str]:
    """List the names that more than one profile bears."""
    names = [each.scheduler_name for each in written]
    return sorted({name for name in names if names.count(name) > 1})
