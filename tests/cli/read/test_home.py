"""Where the commands look for Muster: where the account of its coordinator is."""

from typing import Any

import msgspec

from cli.endings import NotAllowed
from cli.read.coordinator_settings import read_settings
from cli.read.home import AccountBinding, find_home
from coordinator.deployed import state_of
from tests.cli.fake_reader import FakeReader
from tests.cli.objects import Placed

NAME = "muster-coordinator"
ACCOUNT = {"kind": "ServiceAccount", "name": NAME, "namespace": "gangs"}
LABELS = {"app.kubernetes.io/part-of": "muster"}


def binding(*subjects: dict[str, str]) -> AccountBinding:
    return msgspec.convert({"metadata": {"name": NAME}, "subjects": subjects}, AccountBinding)


def deployment(namespace: str, **fields: Any) -> Placed:
    meta = {"name": NAME, "namespace": namespace, "labels": LABELS}
    return msgspec.convert({"metadata": meta, **fields}, Placed)


async def test_the_account_counts_before_deployments_and_these_before_the_usual_name() -> None:
    group = {"kind": "Group", "name": NAME, "namespace": "team"}
    lists: dict[str, list[Any]] = {
        "clusterrolebindings": [binding(group, ACCOUNT)],
        "deployments": [deployment("team")],
    }
    assert await find_home(FakeReader(lists)) == "gangs"
    lists["clusterrolebindings"] = [binding(group)]
    assert await find_home(FakeReader(lists)) == "team"
    lists["deployments"].append(deployment("muster-system"))
    assert await find_home(FakeReader(lists)) == "muster-system"
    assert await find_home(FakeReader({})) == "muster-system"


async def test_without_the_right_to_look_it_is_the_usual_one() -> None:
    kinds = ("clusterrolebindings", "deployments")
    refusals = {(each, ""): NotAllowed("no") for each in kinds}
    assert await find_home(FakeReader({}, refusals)) == "muster-system"


async def test_settings_are_those_of_the_coordinator_in_that_namespace() -> None:
    variable = {"name": "MUSTER_COORDINATOR_WAITING_PER_NAMESPACE", "value": "7"}
    pod = {"spec": {"containers": [{"name": "coordinator", "env": [variable]}]}}
    there = [deployment("muster-system"), deployment("gangs", spec={"template": pod})]
    lists: dict[str, list[Any]] = {"deployments": there}
    lists["clusterrolebindings"] = [binding(ACCOUNT)]
    settings, unset = await read_settings(FakeReader(lists))
    assert (settings.waiting_per_namespace, unset) == (7, "")
    assert state_of(settings).known.cache.home == "gangs"
