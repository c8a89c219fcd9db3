"""Prometheus, the commands and the page say of a run what an independent count finds."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from testbed.muster import Muster
from testbed.nodes import NodeSpec
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, requests
from tests.controlplane.shown import (
    WHOLE,
    Count,
    by_commands,
    by_page,
    count,
    counted,
    differences,
    page,
    why_is_right,
)
from tests.manifests.test_monitoring import expressions, rules
from tests.prometheus import (
    ask,
    filled_in,
    programs,
    promtool,
    vector,
    without_condition,
    write_rules,
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

GPU = "nvidia.com/gpu"
GPUS = ("allocatable", "reserved", "free", "unschedulable")
NODES = ("g-0", "g-1")
NONE: Mapping[str, int] = {}
GANGS = 50
QUOTA = 1000
PLACED = 'muster_placements_total{kind="gang"}'
RANGE = "10m"
"""What panels look back on here: most of the run."""

NOT_SCRAPED = {"muster_extender_", "muster_certs_", "muster_wrapper_"}
"""Programs that do not run beside this cluster, or serve no figures there."""

EMPTY = {
    'outcome!~"done|gone"': "no write has to be tried again",
    'outcome=~"error|unknown"': "no write fails",
    'reason="Misconfigured"': "no gang is",
    'result=~"failed|refused"': "no review is",
    "muster_late_starts_total": "no gang starts late",
    "muster_placements_given_up_total": "none is",
    "muster_preemptions_total": "nothing is stopped",
    "muster_repairs_total": "nothing is repaired",
    "unless on (queue)": "the queue admits gangs",
}
"""Parts of expressions that may have no answer in this run, and why."""


@pytest.fixture
def prometheus(muster: Muster, tmp_path: Path) -> Iterator[int]:
    """Its port; it asks the coordinator and the webhook each second."""
    ports = {"muster-coordinator-0": muster.coordinator_health[0]}
    ports["muster-webhook-0"] = muster.webhook_health
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"pod": pod}} for pod, port in ports.items()
    ]
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(write_rules(tmp_path / "rules.yaml", rules()))],
        "scrape_configs": [{"job_name": "muster", "static_configs": targets}],
    }
    path, port = tmp_path / "prometheus.yaml", muster.cluster.ports.allocate()
    path.write_text(yaml.safe_dump(configuration))
    program = str(programs().program("prometheus"))
    listen, data = f"--web.listen-address=127.0.0.1:{port}", f"--storage.tsdb.path={tmp_path}/tsdb"
    process = muster.cluster.spawn("prometheus", [program, f"--config.file={path}", listen, data])
    yield port
    process.stop()


def is_scraped(port: int) -> bool:
    try:
        up = vector(port, "up", "instance")
    except OSError:
        return False
    return len(up) >= 2 and set(up.values()) == {1.0}


def wait_told(plot: Plot, port: int, moment: str, kept: Mapping[str, int] = NONE) -> None:
    """Wait until Prometheus says what the API server's objects say."""

    def different() -> Json:
        found = count(plot, NODES, kept)
        told = {**_gangs(plot, port), **_gpus(plot, port), **_queue(plot, port)}
        told["waiting"] = _by(port, "muster_gangs_waiting > 0", "reason")
        told["kept"] = _value(port, "muster_kept_slots")
        right = {**_gangs_of(found), **_gpus_of(found), **_queue_of(found)}
        return differences(
            {**right, "waiting": _why_gangs_wait(plot), "kept": len(found.kept)}, told
        )

    wait_until(lambda: not different(), f"Prometheus to see {moment}", seen=different)


def _by(port: int, expression: str, *labels: str) -> dict[tuple[str, ...], float]:
    return vector(port, f"sum by ({', '.join(labels)}) ({expression})", *labels)


def _value(port: int, expression: str) -> float:
    """The sum of all series; 0 where there is none yet."""
    return vector(port, f"sum({expression})").get((), 0.0)


def _gangs(plot: Plot, port: int) -> Json:
    gangs = f'muster_gangs{{queue="{plot.queue("q")}"}}'
    return {
        "phases": _by(port, gangs, "phase"),
        "phases and reasons": _by(port, gangs, "phase", "reason"),
    }


def _gangs_of(found: Count) -> Json:
    return {"phases": found.by("phase"), "phases and reasons": found.by("phase", "reason")}


def _gpus(plot: Plot, port: int) -> Json:
    pool = f'{{pool="{plot.name}"}}'
    found = {each: _value(port, f"muster_gpus_{each}{pool}") for each in GPUS}
    return {**found, "holes": _by(port, f"muster_holes{pool}", "size")}


def _gpus_of(found: Count) -> Json:
    kept, left = sum(found.kept.values()), sum(found.left)
    free = {"allocatable": WHOLE * len(NODES), "reserved": kept, "free": left, "unschedulable": 0}
    return {**free, "holes": {(size,): pods for size, pods in found.holes.items()}}


def _queue(plot: Plot, port: int) -> Json:
    one = f'queue="{plot.queue("q")}"'
    return {
        "pending": _value(port, f"muster_queue_pending{{{one}}}"),
        "usage": _by(port, f"muster_queue_usage{{{one}}}", "resource"),
        "quota": _by(port, f"muster_queue_quota{{{one}}}", "resource"),
    }


def _queue_of(found: Count) -> Json:
    return {
        "pending": found.by("phase")["Queued",],
        "usage": {("cpu",): sum(found.cores.values())},
        "quota": {("cpu",): QUOTA},
    }


def _why_gangs_wait(plot: Plot) -> Counter[tuple[str, ...]]:
    """The gangs without a place by reason: the metric has no queue, so those of all namespaces."""
    found = plot.cluster.api.get("/apis/muster.dev/v1alpha1/gangs")["items"]
    said = [each.get("status", {}) for each in found]
    return Counter((each.get("reason", ""),) for each in said if "placement" not in each)


@pytest.fixture
def dashboard(plot: Plot) -> Iterator[int]:
    """The port of `muster dashboard`."""
    with page(plot) as port:
        yield port


def wait_shown(plot: Plot, dashboard: int, moment: str, kept: Mapping[str, int] = NONE) -> None:
    """Wait until commands and page show what the API server's objects say."""

    def different() -> Json:
        found = counted(count(plot, NODES, kept))
        by_all = {"commands": by_commands(plot, "q"), "page": by_page(plot, "q", dashboard)}
        return differences(dict.fromkeys(by_all, found), by_all)

    wait_until(lambda: not different(), f"commands and page to see {moment}", seen=different)


def test_prometheus_commands_and_page_say_what_the_objects_say(
    plot: Plot, muster: Muster, prometheus: int, dashboard: int
) -> None:
    """Gangs of a worker with 4 GPUs come and go: four fit, the others wait."""
    product = {"nvidia.com/gpu.product": plot.name}
    plot.add_nodes(
        *(NodeSpec(each, cpus=64, memory="512Gi", gpus=WHOLE, labels=product) for each in NODES)
    )
    plot.add_queue("q", quota={"cpu": str(QUOTA)})
    wait_until(lambda: is_scraped(prometheus), "Prometheus to scrape all")
    wait_told(plot, prometheus, "the nodes")
    placed = _value(prometheus, PLACED)
    names = [f"g{at}" for at in range(GANGS)]
    for name in names:
        workers = group(replicas=1, resources=requests(**{GPU: "4"}))
        plot.create(gang(name, workers, labels={"muster.dev/queue": plot.queue("q")}))
    while names:
        running = min(4, len(names))
        plot.wait(lambda running=running: _running(plot) == running, f"{running} gangs to run")  # type: ignore[misc]
        wait_told(plot, prometheus, f"{running} of {len(names)} gangs run")
        wait_shown(plot, dashboard, f"{running} of {len(names)} gangs run")
        for name in [each for each in names if plot.status(each)["phase"] == "Queued"][:1]:
            plot.wait(lambda name=name: why_is_right(plot, name), "why to agree")  # type: ignore[misc]
        done = next(name for name in names if plot.status(name).get("phase") == "Running")
        if len(names) == GANGS:
            _all_say_what_is_kept(plot, prometheus, dashboard, done)
        if len(names) == 2 * running:
            _every_expression_has_an_answer(prometheus, plot.queue("q"))
        names.remove(done)
        plot.delete_whole(done)
        plot.wait(lambda done=done: done not in plot.gangs(), "the gang to go")  # type: ignore[misc]
    wait_told(plot, prometheus, "the nodes empty")
    wait_shown(plot, dashboard, "the nodes empty")
    assert _value(prometheus, PLACED) - placed == GANGS
    waited = f'muster_admission_wait_seconds_count{{queue="{plot.queue("q")}"}}'
    assert _value(prometheus, waited) == GANGS
    assert promtool("check", "metrics", given=muster.metrics()) == ""


def _all_say_what_is_kept(plot: Plot, prometheus: int, dashboard: int, name: str) -> None:
    """A gang loses its worker, and a ResourceQuota keeps KubeRay from making another."""
    plot.wait(lambda: len(plot.all("Pod")) == 2 * GANGS, "all pods to be there")
    (lost, on), *_ = plot.bound(name, "worker").items()
    hard = {"spec": {"hard": {"pods": "1"}}}
    plot.create({"kind": "ResourceQuota", "metadata": {"name": "full"}, **hard})
    plot.wait(
        lambda: plot.get("ResourceQuota", "full").get("status", {}).get("hard"),
        "the quota to be in force",
    )
    plot.delete("Pod", lost)
    kept = {on: 4}
    wait_told(plot, prometheus, "the slot that is kept", kept)
    wait_shown(plot, dashboard, "the slot that is kept", kept)
    plot.delete("ResourceQuota", "full")


def _running(plot: Plot) -> int:
    found = (each.get("status", {}).get("phase") for each in plot.gangs().values())
    return Counter(found)["Running"]


def _every_expression_has_an_answer(port: int, queue: str) -> None:
    """Of panels, and of what alerts compare: a number, but for what is named above."""
    assert all(any(part in text for _, text in expressions()) for part in EMPTY)
    said = [each for each in expressions() if not any(part in each[1] for part in EMPTY)]
    assert [each for each in said if not _is_answered(port, each[1], queue)] == []
    loaded = [each for group in ask(port, "rules")["groups"] for each in group["rules"]]
    assert {each["health"] for each in loaded} <= {"ok", "unknown"}
    assert len(loaded) == len(rules())


def _is_answered(port: int, text: str, queue: str) -> bool:
    """Whether there is a figure; one of programs that are not there is not asked for."""
    programs_asked = set(re.findall(r"\bmuster_[a-z]+_", text))
    if programs_asked and programs_asked <= NOT_SCRAPED:
        return True
    asked = re.sub(r"\[\d+[mhd]\]", f"[{RANGE}]", filled_in(text, queue, interval=RANGE))
    found = ask(port, "query", query=without_condition(asked))["result"]
    return bool(found) and not any(math.isnan(float(each["value"][1])) for each in found)
