"""A profile is read as kube-scheduler means it, and refused where it cannot be judged."""

from typing import Any

import pytest
from pydantic import ValidationError

from kube.codec.profiles.scheduler_profiles import Profile
from kube.codec.profiles.written_profiles import SchedulerProfile, profiles_of
from scheduling.model.constraints import NodeTerm, Requirement

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read(**written: Any) -> Profile:
    [found] = profiles_of([SchedulerProfile.model_validate(written)]).values()
    return found


def config(name: str, **args: Any) -> Json:
    return {"pluginConfig": [{"name": name, "args": args}]}


def constraint(action: str) -> Json:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": action}


def test_a_profile_that_says_nothing_is_the_stock_one() -> None:
    assert read() == read(schedulerName="default-scheduler") == Profile()
    assert profiles_of([SchedulerProfile.model_validate({"schedulerName": "gpu"})]) == {
        "gpu": Profile("gpu")
    }


def test_the_required_part_of_an_added_affinity_counts_and_the_preferred_does_not() -> None:
    term = {
        "matchExpressions": [{"key": "pool", "operator": "In", "values": ["a", "b"]}],
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}],
    }
    affinity = {REQUIRED: {"nodeSelectorTerms": [term, {}]}, PREFERRED: [{"weight": 1}]}
    found = read(
        **config("NodeAffinity", kind="NodeAffinityArgs", apiVersion="v1", addedAffinity=affinity)
    )
    pool, name = (
        Requirement("pool", "In", ("a", "b")),
        Requirement("metadata.name", "NotIn", ("n",)),
    )
    assert found.added == (NodeTerm((pool,), (name,)), NodeTerm())
    assert read(**config("NodeAffinity", addedAffinity={PREFERRED: []})).added is None


@pytest.mark.parametrize(
    "args",
    [
        {"defaultingType": "List", "defaultConstraints": [constraint("ScheduleAnyway")]},
        {"defaultingType": "List"},
        {"defaultingType": "System"},
        {},
    ],
)
def test_a_profile_with_constraints_that_only_score_binds_no_pod(args: Json) -> None:
    assert not read(**config("PodTopologySpread", **args)).spreads_by_default


def test_one_listed_constraint_that_does_not_schedule_spreads_by_default() -> None:
    full = {
        **constraint("DoNotSchedule"),
        "minDomains": 3,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
        "matchLabelKeys": ["pod-template-hash"],
    }
    listed = [constraint("ScheduleAnyway"), full]
    args = {"defaultingType": "List", "defaultConstraints": listed}
    assert read(**config("PodTopologySpread", **args)).spreads_by_default


@pytest.mark.parametrize("point", ["multiPoint", "filter"])
def test_a_plugin_is_off_where_it_is_disabled_and_not_enabled_again(point: str) -> None:
    off = {point: {"disabled": [{"name": "NodePorts"}, {"name": "ImageLocality"}]}}
    assert read(plugins=off).off == {"NodePorts"}
    again = {**off, "filter": {**off.get("filter", {}), "enabled": [{"name": "NodePorts"}]}}
    assert read(plugins=again).off == set()


def test_a_plugin_off_has_no_default_constraints() -> None:
    args = {"defaultingType": "List", "defaultConstraints": [constraint("DoNotSchedule")]}
    off = {"filter": {"disabled": [{"name": "PodTopologySpread"}]}}
    found = read(plugins=off, **config("PodTopologySpread", **args))
    assert (found.spreads_by_default, set(found.off)) == (False, {"PodTopologySpread"})


def test_what_scores_sorts_or_evicts_is_left_aside() -> None:
    found = read(
        percentageOfNodesToScore=50,
        plugins={
            "score": {"enabled": [{"name": "Mine", "weight": 3}], "disabled": [{"name": "*"}]},
            "queueSort": {"enabled": [{"name": "Mine"}], "disabled": [{"name": "*"}]},
            "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
        },
        pluginConfig=[
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
            {"name": "Mine", "args": {"anything": 1}},
        ],
    )
    assert found == Profile()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"plugins": {"filter": {"enabled": [{"name": "Mine"}]}}}, "does not know: Mine; allowed"),
        ({"plugins": {"permit": {"enabled": [{"name": "Gang"}]}}}, "does not know: Gang; allowed"),
        ({"plugins": {"multiPoint": {"disabled": [{"name": "*"}]}}}, "NodeAffinity must stay on"),
        ({"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}}, "NodeAffinity must"),
        (
            {"plugins": {"preEnqueue": {"disabled": [{"name": "SchedulingGates"}]}}},
            "SchedulingGates must stay on",
        ),
        ({"schedulrName": "a"}, "schedulrName"),
        ({"schedulerName": ""}, "schedulerName"),
        (config("NodeAffinity", addedAfinity={}), "addedAfinity"),
        (config("PodTopologySpread", defaultingType="Lists"), "'System' or 'List'"),
        (
            config("PodTopologySpread", defaultConstraints=[{**constraint("Never")}]),
            "'DoNotSchedule' or 'ScheduleAnyway'",
        ),
        (
            config("PodTopologySpread", defaultConstraints=[constraint("DoNotSchedule")]),
            'beside defaultingType "System"; allowed: "List"',
        ),
        (
            config(
                "PodTopologySpread",
                defaultingType="List",
                defaultConstraints=[constraint("DoNotSchedule")] * 17,
            ),
            "at most 16 items",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(written: Json, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SchedulerProfile.model_validate(written)
    assert said in str(caught.value)
