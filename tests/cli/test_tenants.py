"""What those see who may not list all."""

import json

import pytest

from cli import endings
from tests.cli.commands_run import MESSAGE, NO, cluster
from tests.cli.fake_reader import FakeReader, run
from tests.cli.objects import GPU, gang, queue


def test_a_tenant_without_nodes_is_told_so_in_a_line_and_shown_the_rest() -> None:
    done = run(FakeReader(cluster(), {("nodes", ""): NO, ("pods", ""): NO}), "status")
    assert done.exit_code == endings.FINE
    assert done.stderr == f"Note: {NO}\n" * 2
    assert MESSAGE in done.stdout
    assert "GPUs of nodes are not known: nodes and pods cannot be listed" in done.stdout


def test_nodes_that_may_not_be_listed_are_no_answer() -> None:
    done = run(FakeReader(cluster(), {("nodes", ""): NO, ("pods", ""): NO}), "nodes")
    assert done.exit_code == endings.NOT_READ
    assert "muster queue NAME says how many pods still fit" in done.stdout


def test_a_tenant_of_one_namespace_is_shown_its_gangs() -> None:
    refusals = {("gangs", ""): NO, ("nodes", ""): NO, ("pods", ""): NO, ("gangqueues", ""): NO}
    lists = cluster() | {"gangs": [*cluster()["gangs"], gang("far", namespace="elsewhere")]}
    done = run(FakeReader(lists, refusals), "status", "-o", "json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["namespace"], found["gangs"]) == (endings.FINE, "team", 2)
    assert "only gangs of namespace team count here" in done.stderr
    assert run(FakeReader(lists, refusals), "status", "-A").exit_code == endings.NOT_READ
    assert run(FakeReader(lists, refusals), "why", "train").exit_code == endings.FINE


@pytest.mark.parametrize("arguments", [["queue", "research"], ["queue"], ["why", "train"]])
def test_a_tenant_that_may_get_its_own_queue_alone_sees_its_quota(arguments: list[str]) -> None:
    refusals = {("gangs", ""): NO, ("nodes", ""): NO, ("pods", ""): NO, ("gangqueues", ""): NO}
    others = [queue("product", {GPU: 4}), *cluster()["gangqueues"]]
    reader = FakeReader({**cluster(), "gangqueues": others}, refusals)
    reader.gets = ("research",)
    done = run(reader, *arguments, "-o", "json")
    assert done.exit_code == endings.FINE, done.stderr
    assert f"{NO}: only queue research is known, not what others lend" in done.stderr
    found = json.loads(done.stdout)
    if arguments[0] == "queue":
        (shown,) = found.get("queues") or [found["queue"]]
        (resource,) = shown["resources"]
        assert (shown["name"], resource["used"], resource["quota"]) == ("research", "8", "16")


def test_the_quota_of_another_queue_is_not_shown_to_a_tenant() -> None:
    refusals = {("gangs", ""): NO, ("gangqueues", ""): NO}
    reader = FakeReader({**cluster(), "gangqueues": [queue("product", {GPU: 4})]}, refusals)
    done = run(reader, "queue", "product")
    assert (done.exit_code, done.stdout) == (endings.NO, "")
    assert "gangqueues cannot be listed" in done.stderr


@pytest.mark.parametrize("command", ["status", "queue"])
def test_queues_that_may_not_be_listed_are_not_said_to_be_absent(command: str) -> None:
    for gangs in ((), cluster()["gangs"]):
        done = run(FakeReader({**cluster(), "gangs": gangs}, {("gangqueues", ""): NO}), command)
        assert "built-in" not in done.stdout
        assert ("gangqueues cannot be listed" in done.stdout) is (not gangs)
        assert f"Note: {NO}" in done.stderr
    assert "built-in" in run(FakeReader({}), command).stdout


def test_a_caller_who_may_list_no_gangs_at_all_is_told_which() -> None:
    done = run(FakeReader(cluster(), {("gangs", ""): NO, ("gangs", "team"): NO}), "queue")
    assert (done.exit_code, done.stderr) == (endings.NOT_READ, f"Error: {NO}\n")
