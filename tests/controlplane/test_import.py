"""What `muster import` prints is taken by the API server, and its queues work with that quota."""

from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cli.__main__ import main
from cli.import_command import LEFT_OUT
from tests.cli.imports import test_kueue, test_volcano
from tests.cli.imports.test_mcad import child, subtree
from tests.controlplane.plot import LABEL, Plot, conditions
from tests.controlplane.rayclusters import Json

GPU = "nvidia.com/gpu"


def imported(system: str, *bodies: Json) -> str:
    """The output, also where something is left out of it."""
    done = CliRunner().invoke(main, ["import", system, "-f", "-"], input=yaml.dump_all(bodies))
    assert done.exit_code in (0, LEFT_OUT), done.stderr
    return done.stdout


def queues(text: str) -> dict[str, Json]:
    found = (each for each in yaml.safe_load_all(text) if each)
    return {each["metadata"]["name"]: each for each in found}


def forest(prefix: str) -> list[Json]:
    """Two trees with a node of the same name, a hard node, and quotas beyond the root's."""
    whole: Json = {"cpu": "1075m", "memory": "1045Mi", "gpu": 16}
    context, service = f"{prefix}_context", f"{prefix}-service"
    return [
        subtree("context", child(f"{prefix}-context-root", **whole), tree=context),
        subtree("service", child(f"{prefix}-service-root", **whole), tree=service),
        subtree(
            "context-children",
            child("gold", cpu="1075m", memory="450Mi", gpu=8),
            child(f"{prefix}-silver", cpu="1075m", memory="400Mi", gpu=8),
            child(f"{prefix}-bronze", is_hard=True, cpu="900m", memory="300Mi", gpu=8),
            child("default", cpu="0m", memory="0Mi", gpu=0),
            parent=f"{prefix}-context-root",
            tree=context,
        ),
        subtree(
            "service-children",
            child("gold", **whole),
            child("default", cpu="0m", memory="0Mi", gpu=0),
            parent=f"{prefix}-service-root",
            tree=service,
        ),
    ]


def wait_active(plot: Plot, queue: str) -> None:
    def told() -> bool:
        return conditions(plot.queue_status(queue)).get("Active") == "True"

    plot.wait(told, f"queue {queue} to be active")


@pytest.mark.variant
def test_a_forest_of_quota_trees_becomes_queues_that_are_active_with_its_quota(plot: Plot) -> None:
    text = imported("mcad", *forest(plot.name))
    said = queues(text)
    assert len(said) == 8
    plot.cluster.kubectl("apply", "-f", "-", input=text)
    plot.cluster.kubectl("label", "-f", "-", f"{LABEL}={plot.name}", input=text)
    for name, body in said.items():
        wait_active(plot, name.removeprefix(f"{plot.name}-"))
        stored = yaml.safe_load(plot.cluster.kubectl("get", "gq", name, "-o", "yaml"))
        assert with_defaults(body["spec"], stored["spec"]) == stored["spec"]
    gold = said[f"{plot.name}-context-gold"]["spec"]["quota"]
    assert gold == {"cpu": "1075m", "memory": "450Mi", GPU: 8}


def with_defaults(said: Any, stored: Any) -> Any:
    """What was said, with what the API server adds where nothing is said."""
    if not isinstance(said, dict):
        return said
    return {**stored, **{key: with_defaults(each, stored[key]) for key, each in said.items()}}


def test_queues_of_kueue_and_volcano_are_taken_by_the_api_server(plot: Plot) -> None:
    """Limits, selectors of namespaces and nodes, and preemption; nothing is stored."""
    gpus = test_kueue.group(
        ("a100", [test_kueue.quota(GPU, 16)]), ("h100", [test_kueue.quota(GPU, "8")])
    )
    cpus = test_kueue.group(("plain", [test_kueue.quota("cpu", "8500m", 4, "2")]))
    texts = [
        imported(
            "kueue",
            test_kueue.flavor("a100", **{"nvidia.com/gpu.product": "a100"}),
            test_kueue.cluster_queue(
                "q", cpus, gpus, cohortName="c", preemption={"reclaimWithinCohort": "Any"}
            ),
            test_kueue.made("LocalQueue", "l", "ns", clusterQueue="q"),
        ),
        imported(
            "volcano",
            test_volcano.queue(
                "a", deserved={"cpu": 8}, guarantee={"cpu": "2500m"}, capability={"cpu": 12}
            ),
            test_volcano.queue("b", capability={GPU: 3}, dequeueStrategy="fifo"),
        ),
    ]
    for text in texts:
        answer = plot.cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=text)
        assert answer.count("created (server dry run)") == len(queues(text))
