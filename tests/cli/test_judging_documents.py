"""docs/cli-fit.md and docs/cli-doctor.md show what the commands print."""

import io
import re

from rich.console import Console

from cli.report.doctor.checks import examine
from cli.show.doctor import table
from tests.cli.fitting.reader import fit, reader_of
from tests.cli.report.doctor.clusters import lease, seen
from tests.cli.report.doctor.test_faults import FAULTS
from tests.coordinator.builders import GPU, Json, group, node, ray_cluster
from tests.coordinator.world import World
from tests.packaging.tree import ROOT


def shown(page: str) -> list[list[str]]:
    """The outputs of a page, line by line."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n\$ muster [^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [block.splitlines() for block in blocks]


def train(gpu_workers: int) -> Json:
    groups = group("gpu-workers", gpu_workers, cpu=8, gpu=8), group("cpu-workers", 2, cpu=16)
    return ray_cluster("train", *groups)


def test_the_page_of_fit_shows_its_outputs() -> None:
    queue = {"namespaceSelector": {}, "quota": {GPU: "40"}}
    world = World(
        *(node(f"gpu-{at}", cpu=96, gpu=8) for at in range(4)),
        {"kind": "GangQueue", "metadata": {"name": "research"}, "spec": queue},
    )
    world.create(ray_cluster("eval", group("gpu-workers", 3, cpu=8, gpu=4)))
    world.settle(seconds=20)
    tenant = reader_of(world, forbidden=("nodes", "pods", "gangs", "rayclusters", "appwrappers"))
    runs = [
        fit(reader_of(world), train(2), output="table"),
        fit(reader_of(world), train(4), output="table"),
        fit(tenant, train(2), output="table"),
    ]
    assert [each.stdout.splitlines() for each in runs] == shown("cli-fit.md")


def test_the_page_of_doctor_shows_its_output() -> None:
    report = examine(
        seen(
            secrets=FAULTS["a certificate that ends soon"][0]["secrets"],
            leases=[lease(60)],
            deployments=FAULTS["Kueue beside it"][0]["deployments"],
            schedulers=[],
        )
    )
    text = io.StringIO()
    table(report)(Console(file=text, width=400))
    assert [text.getvalue().splitlines()] == shown("cli-doctor.md")
