"""Prometheus, the commands and the page say of a run what an independent count finds."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.muster import Muster
from testbed.nodes import NodeSpec
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import gang, group, requests
from tests.controlplane.shown import by_commands, by_page, counted, page, why_is_right
from tests.manifests.test_monitoring import expressions, rules
from tests.prometheus import ask, filled_in, programs, promtool, vector, write_rules

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

GPU = "nvidia.com/gpu"
SIZES = (1, 2, 4, 8)
GANGS = 50


@pytest.fixture
def prometheus(muster: Muster, tmp_path: Path) -> Iterator[int]:
    """Its port; it asks the coordinator and the webhook each second."""
    ports = [*muster.coordinator_health, muster.webhook_health]
    targets = [{"targets": [f"127.0.0.1:{port}" for port in ports]}]
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


def gpus_left(plot: Plot) -> list[int]:
    """Free GPUs of each node of the plot, counted over nodes and pods that the API server has."""
    taken: Counter[str] = Counter()
    for pod in plot.all("Pod"):
        node = pod["spec"].get("nodeName")
        for container in pod["spec"]["containers"] if node else ():
            taken[node] += int(container.get("resources", {}).get("requests", {}).get(GPU, 0))
    return [8 - taken[plot.node(name)] for name in ("g-0", "g-1")]


def agrees(plot: Plot, port: int) -> bool:
    """Whether Prometheus says what the API server's objects say."""
    left, pool = gpus_left(plot), f'pool="{plot.name}"'
    holes = {(str(size),): float(sum(each // size for each in left)) for size in SIZES}
    phases = Counter(
        (each["status"]["phase"],) for each in plot.gangs().values() if "status" in each
    )
    queue = f'queue="{plot.queue("q")}"'
    return (
        vector(port, f"sum by (size) (muster_holes{{{pool}}})", "size") == holes
        and vector(port, f"muster_gpus_free{{{pool}}}", "pool") == {(plot.name,): float(sum(left))}
        and vector(port, f"muster_gpus_reserved{{{pool}}}", "pool") == {(plot.name,): 0.0}
        and vector(port, f"sum by (phase) (muster_gangs{{{queue}}})", "phase") == phases
    )


@pytest.fixture
def dashboard(plot: Plot) -> Iterator[int]:
    """The port of `muster dashboard`."""
    with page(plot) as port:
        yield port


def is_shown(plot: Plot, dashboard: int) -> bool:
    """Whether commands and page show what the API server's objects say."""
    found = counted(plot, "q", {"g-0": 8, "g-1": 8})
    return by_commands(plot, "q") == found == by_page(plot, "q", dashboard)


def test_prometheus_commands_and_page_say_what_the_objects_say(
    plot: Plot, muster: Muster, prometheus: int, dashboard: int
) -> None:
    """Gangs of a worker with 4 GPUs come and go: four fit, the others wait."""
    labels = {"nvidia.com/gpu.product": plot.name}
    plot.add_nodes(
        *(NodeSpec(f"g-{at}", cpus=64, memory="512Gi", gpus=8, labels=labels) for at in (0, 1))
    )
    plot.add_queue("q", quota={"cpu": "1000"})
    wait_until(lambda: is_scraped(prometheus), "Prometheus to scrape all")
    plot.wait(lambda: agrees(plot, prometheus), "Prometheus to see the nodes")
    names = [f"g{at}" for at in range(GANGS)]
    for name in names:
        workers = group(replicas=1, resources=requests(**{GPU: "4"}))
        plot.create(gang(name, workers, labels={"muster.dev/queue": plot.queue("q")}))
    while names:
        count = min(4, len(names))
        plot.wait(lambda count=count: _running(plot) == count, f"{count} gangs to run")  # type: ignore[misc]
        plot.wait(lambda: agrees(plot, prometheus), "Prometheus to agree")
        plot.wait(lambda: is_shown(plot, dashboard), "commands and page to agree")
        for name in [each for each in names if plot.status(each)["phase"] == "Queued"][:1]:
            plot.wait(lambda name=name: why_is_right(plot, name), "why to agree")  # type: ignore[misc]
        done = next(name for name in names if plot.status(name).get("phase") == "Running")
        names.remove(done)
        plot.delete_whole(done)
        plot.wait(lambda done=done: done not in plot.gangs(), "the gang to go")  # type: ignore[misc]
    plot.wait(lambda: agrees(plot, prometheus), "Prometheus to see the nodes empty")
    plot.wait(lambda: is_shown(plot, dashboard), "commands and page to see the nodes empty")
    _every_expression_has_an_answer(prometheus)
    assert promtool("check", "metrics", given=muster.metrics()) == ""


def _running(plot: Plot) -> int:
    found = (each.get("status", {}).get("phase") for each in plot.gangs().values())
    return Counter(found)["Running"]


def _every_expression_has_an_answer(port: int) -> None:
    """Of panels, and of alerts, none of which fails; what the extender tells may be empty."""
    for where, text in expressions():
        found = ask(port, "query", query=filled_in(text))
        assert found["resultType"] == "vector", where
    loaded = [each for group in ask(port, "rules")["groups"] for each in group["rules"]]
    assert {each["health"] for each in loaded} <= {"ok", "unknown"}
    assert len(loaded) == len(rules())
