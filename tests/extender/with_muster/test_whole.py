"""A gang binds whole after a burst of others, while its releases are held up.

With the extender nothing lands in its room; where the extender was not asked, the coordinator
repairs what others broke.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from kubernetes.utils import parse_quantity

from kube.objects import names
from testbed.muster import Extender, Muster, wait_app_wrappers_trusted
from tests.controlplane.app_wrappers.test_whole import wrapper
from tests.controlplane.rayclusters import group, head, ray_cluster
from tests.extender.plot import LABEL, Plot, plotted
from tests.extender.with_muster.conftest import deciding, scheduling
from tests.extender.worlds import GPU, Json, pinned, pod
from tests.faults.calls import is_release
from tests.faults.proxy import Proxy

pytestmark = [pytest.mark.controlplane, pytest.mark.versions]

GPUS = 8
SECONDS = 240.0
IMPATIENT = {"BIND_PATIENCE": "2", "TORN_PATIENCE": "5"}
# As installed: behind the proxy, which shares the test's process, a leader would lose shorter terms
# on a busy machine again and again, and none is to change here.
STEADY = {"LEASE_DURATION": "15", "RENEW_DEADLINE": "10", "RETRY_PERIOD": "2"}
_ALLOCATABLE = {"cpu": Decimal(96), "memory": parse_quantity("768Gi"), GPU: Decimal(GPUS)}

_NUMBERS = itertools.count(1)

Amounts = dict[str, Decimal]


@pytest.fixture
def proxy(muster: Muster) -> Iterator[Proxy]:
    """What is between the coordinator and the API server."""
    with Proxy(muster.cluster.server, muster.cluster.ca_file) as proxy:
        yield proxy


@pytest.fixture
def plot(muster: Muster, extender: Extender) -> Iterator[Plot]:
    with plotted(muster.cluster, extender, f"whole-{next(_NUMBERS)}") as plot:
        yield plot


@contextlib.contextmanager
def staged(
    muster: Muster,
    proxy: Proxy,
    config: Mapping[str, Any] | None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Have a coordinator behind the proxy decide, and a scheduler of this configuration bind."""
    cluster = muster.cluster
    own = cluster.service_account_kubeconfig("muster-system", "muster-coordinator")
    kubeconfig = proxy.kubeconfig(own, cluster.directory / "proxy.kubeconfig")
    with deciding(muster, STEADY | {**(settings or {})}, kubeconfig), scheduling(muster, config):
        yield


@pytest.mark.parametrize(
    ("size", "fillers"),
    [
        pytest.param(12, 100),
        pytest.param(50, 500, marks=[pytest.mark.long, pytest.mark.timeout(900)]),
    ],
)
def test_a_gang_binds_whole_after_a_burst_and_keeps_its_slots(
    muster: Muster, proxy: Proxy, plot: Plot, size: int, fillers: int
) -> None:
    """The extender is killed and comes back in the middle of the burst."""
    with staged(muster, proxy, plot.extender.scheduler_config()):
        plot.add_nodes(size)
        held = proxy.hold(is_release)
        _create_gang(plot, size)
        reserved = _wait_reserved(plot, size)
        others = _all_shapes(fillers, sorted(reserved))
        plot.create_all(others[: fillers // 2])
        plot.extender.process.kill()
        plot.extender.process.restart()
        plot.extender.wait_ready()
        plot.create_all(others[fillers // 2 :])
        plot.wait_judged(len(others), SECONDS)
        assert plot.bound()  # what is not reserved was for them
        assert _overrun(plot, reserved) == []
        proxy.lift(held)
        slots = _wait_whole(plot, size)
        assert len(plot.bound()) < size + fillers  # some wait, and would take a slot
        lost = sorted(_members(plot))[-3:]
        for name in lost:
            plot.delete(name)
        plot.wait(lambda: not {*lost} & {*_members(plot)}, "the members to be gone")
        assert _wait_whole(plot, size) == slots


@pytest.mark.long
@pytest.mark.parametrize("configured", [True, False])
def test_where_the_extender_is_not_asked_the_gang_is_repaired(
    muster: Muster, proxy: Proxy, plot: Plot, configured: bool
) -> None:
    """Others take reserved room, while an extender that may be ignored is down, or where none is
    configured; the gang starts whole on other nodes."""
    extender, size = plot.extender, 12
    ignorable = extender.scheduler_config(ignorable=True)
    with staged(muster, proxy, ignorable if configured else None, IMPATIENT):
        plot.add_nodes(size)
        held = proxy.hold(is_release)
        _create_gang(plot, size)
        reserved = _wait_reserved(plot, size)
        extender.process.kill()
        taken = sorted(reserved)[:3]
        plot.create_all(pinned(pod(f"on-{node}", gpu=GPUS), node) for node in taken)
        plot.wait_bound(*(f"on-{node}" for node in taken))
        assert {node for node, _ in _overrun(plot, reserved)} == {*taken}
        extender.process.restart()
        extender.wait_ready()
        proxy.lift(held)
        _wait_whole(plot, size)


@pytest.mark.variant
def test_an_app_wrapper_is_whole_though_other_pods_come_as_soon_as_it_is_placed(
    muster: Muster, proxy: Proxy, plot: Plot
) -> None:
    """The others fit where its pods are to be, and most of them fit nowhere else."""
    size, others = 6, [f"other-{number}" for number in range(60)]
    settings = {"APP_WRAPPERS": "true", "GUARD": "Extender"}
    with (
        staged(muster, proxy, plot.extender.scheduler_config(), settings),
        _wrapping(muster, plot),
    ):
        plot.add_nodes(size // 2 + 1)
        held = proxy.hold(is_release)
        plot.cluster.api.create(_app_wrappers(plot), wrapper("train", _cluster(plot, size, {})))
        reserved = _wait_reserved(plot, size, f"{names.APP_WRAPPER_GANG}train")
        plot.create_all(pod(name, gpu=4) for name in others)
        plot.wait_judged(len(others), SECONDS)
        assert len(plot.bound()) == 3  # 12 of 32 GPUs are not reserved
        assert _overrun(plot, reserved) == []
        proxy.lift(held)
        _wait_whole(plot, size)
        assert len(plot.bound()) == size + 3
        assert "resettingCount" not in _status(plot)


@contextlib.contextmanager
def _wrapping(muster: Muster, plot: Plot) -> Iterator[None]:
    """Have AppWrappers of the plot created, and deleted at the end."""
    wait_app_wrappers_trusted(muster.cluster)
    process = muster.start_wrapper()
    muster.wait_led("wrapper")
    yield
    with plot.cluster.api.session() as session:
        session.call("DELETE", _app_wrappers(plot))
    plot.wait(lambda: not plot.cluster.api.get(_app_wrappers(plot))["items"], "them to be gone")
    process.stop()


def _app_wrappers(plot: Plot) -> str:
    return f"/apis/{names.CODEFLARE_V1BETA2}/namespaces/{plot.name}/appwrappers"


def _status(plot: Plot) -> Json:
    return dict(plot.cluster.api.get(f"{_app_wrappers(plot)}/train")["status"])


def _create_gang(plot: Plot, size: int) -> None:
    path = f"/apis/ray.io/v1/namespaces/{plot.name}/rayclusters"
    plot.cluster.api.create(path, _cluster(plot, size, {names.OPT_IN: "true"}))


def _cluster(plot: Plot, size: int, labels: Mapping[str, str]) -> Json:
    """A gang of a head without GPUs and workers of 4 GPUs each."""
    wanted = {"cpu": "1", "memory": "1Gi", GPU: "4"}
    resources = {"requests": wanted, "limits": {GPU: "4"}}
    selector = {LABEL: plot.name}
    workers = group(replicas=size - 1, most=size - 1, resources=resources, nodeSelector=selector)
    return ray_cluster("train", workers, labels=labels, head_group=head(nodeSelector=selector))


def _wait_reserved(plot: Plot, size: int, gang: str = "train") -> dict[str, Amounts]:
    """Wait until the extender knows of the placement, and return what it promises."""
    plot.wait(
        lambda: plot.extender.metric("muster_extender_reserved_pods") == size,
        "the placement to be known",
        SECONDS,
    )
    return _reserved(plot, gang)


def _all_shapes(count: int, reserved: list[str]) -> list[Json]:
    """Pods that ask for a little or for all of a node, in each resource; some pinned to slots."""
    shapes = [
        pod("", gpu=1),
        pod("", gpu=2),
        pod("", gpu=3),
        pod("", gpu=4),
        pod("", gpu=GPUS),
        pod("", cpu=1),
        pod("", cpu=96),
        _with_memory(pod(""), "768Gi"),
        pinned(pod("", gpu=4), reserved[0]),
        pinned(pod("", gpu=1, cpu=40), reserved[-1]),
    ]
    return [
        {**shape, "metadata": {"name": f"f{i}"}}
        for i, shape in zip(range(count), itertools.cycle(shapes), strict=False)
    ]


def _with_memory(found: Json, memory: str) -> Json:
    (container,) = found["spec"]["containers"]
    container["resources"]["requests"]["memory"] = memory
    return found


# ---- what is reserved, and what is taken of it


def _overrun(plot: Plot, reserved: dict[str, Amounts]) -> list[tuple[str, str]]:
    """The nodes and resources of which more is taken and reserved than there is."""
    taken = _sums(_requested(each) for each in plot.pods().values())
    return [
        (node, resource)
        for node, amounts in reserved.items()
        for resource, amount in amounts.items()
        if resource in _ALLOCATABLE and amount + taken[node][resource] > _ALLOCATABLE[resource]
    ]


def _reserved(plot: Plot, gang: str) -> dict[str, Amounts]:
    """What the placement promises of each node, in base units."""
    path = f"/apis/{names.API_VERSION}/namespaces/{plot.name}/gangs/{gang}"
    pod_sets = plot.cluster.api.get(path)["status"]["placement"]["podSets"]
    assignments = [each for pod_set in pod_sets for each in pod_set["assignments"]]
    return _sums(
        (node, {resource: count * parse_quantity(q) for resource, q in each["requests"].items()})
        for each in assignments
        for node, count in each["nodes"].items()
    )


def _requested(found: Json) -> tuple[str, Amounts]:
    requests = [each["resources"].get("requests") or {} for each in found["spec"]["containers"]]
    amounts = [(name, parse_quantity(q)) for each in requests for name, q in each.items()]
    node = found["spec"].get("nodeName", "")
    return node, {name: sum((a for n, a in amounts if n == name), Decimal()) for name, _ in amounts}


def _sums(parts: Iterable[tuple[str, Amounts]]) -> dict[str, Amounts]:
    sums: defaultdict[str, Amounts] = defaultdict(lambda: defaultdict(Decimal))
    for node, amounts in parts:
        for resource, amount in amounts.items():
            sums[node][resource] += amount
    return sums


def _wait_whole(plot: Plot, size: int) -> Counter[str]:
    """Wait until the gang is bound whole, and return how many of it are on which node."""
    plot.wait(lambda: len(_members(plot)) == size, "the gang to be bound whole", SECONDS)
    return Counter(_members(plot).values())


def _members(plot: Plot) -> dict[str, str]:
    """The gang's pods that are bound and stay, with their nodes."""
    return {
        name: each["spec"]["nodeName"]
        for name, each in plot.pods().items()
        if name.startswith("train-")
        and "nodeName" in each["spec"]
        and "deletionTimestamp" not in each["metadata"]
    }
