"""Names are listed as people count."""

from cli.report.order import natural
from cli.report.queues import one_queue_report
from cli.report.snapshot import Snapshot
from cli.report.status import status_report
from tests.cli.objects import GPU, gang, node, placement, queue


def test_numbers_in_names_count_by_their_size() -> None:
    names = ["gpu-2", "gpu-10", "gpu", "gpu-1", "a10-b2", "a10-b10", "a9", "7"]
    expected = ["7", "a9", "a10-b2", "a10-b10", "gpu", "gpu-1", "gpu-2", "gpu-10"]
    assert sorted(names, key=natural) == expected


def test_lists_that_are_sorted_by_name_are_in_this_order() -> None:
    names = ("gpu-1", "gpu-10", "gpu-2")
    label = "nvidia.com/gpu.product"
    nodes = (
        *(node(each, labels={label: "a10"}) for each in names),
        *(node(f"b{each}", labels={label: "a9"}) for each in range(1, 4)),
    )
    found = Snapshot(
        gangs=(
            *(gang(each) for each in names),
            *(gang(f"runs-{each}", "Running", placement=placement(a=1)) for each in names),
            *(gang(f"failed-{each}", "Failed") for each in names),
        ),
        queues=tuple(queue(each, {GPU: 1}) for each in (*names, "research")),
        nodes=nodes,
    )
    report = status_report(found)
    expected = ["gpu-1", "gpu-2", "gpu-10"]
    assert [each.name for each in report.waiting] == expected
    assert [each.name for each in report.placed] == [f"runs-{each}" for each in expected]
    assert [each.name for each in report.failed] == [f"failed-{each}" for each in expected]
    assert [each.name for each in report.queues] == [*expected, "research"]
    assert [each.name for each in report.nodes.nodes] == ["b1", "b2", "b3", *expected]
    assert [each.name for each in report.nodes.pools] == ["a9", "a10"]
    one = one_queue_report(found, "research")
    assert [each.name for each in one.holding] == [f"runs-{each}" for each in expected]
    assert [each.name for each in one.failed] == [f"failed-{each}" for each in expected]
