"""Of declared sizes and those of templates the larger count, and the status says so."""

from typing import Any

import pytest

from kube.foreseen.amounts import Side, pod_total
from tests.appwrapper.samples import (
    Json,
    deployment,
    foreseen,
    gang,
    mcad,
    mcad_item,
    obj,
    ray_cluster,
    sizes,
)


def asked(made_of: Json, *declared: tuple[int, Any], memory: str = "0") -> dict[str, int]:
    """The CPU that each pod set is decided on."""
    item = mcad_item(made_of, custompodresources=sizes(*declared, memory=memory))
    found = foreseen(mcad(item)).pod_sets
    return {each.name: pod_total(each.pod.spec, Side.REQUESTS)["cpu"] for each in found}


def notices(made_of: Json, *declared: tuple[int, Any], memory: str = "0") -> list[str]:
    item = mcad_item(made_of, custompodresources=sizes(*declared, memory=memory))
    said = gang(mcad(item)).notices
    return [each.removeprefix("spec.resources.GenericItems[0] ") for each in said]


@pytest.mark.parametrize(
    ("declared", "counts", "notice"),
    [
        ("425m", 426, "declare 425m of cpu for each pod of web, its template asks for 426m; the"),
        ("4270m", 4270, "declare 4270m of cpu for each pod of web, its template asks for 426m"),
        ("426m", 426, ""),
    ],
)
def test_the_larger_of_declared_and_read_counts(declared: str, counts: int, notice: str) -> None:
    """MCAD's own tests lie by 1m, and by the tenfold."""
    made_of = deployment(cpu="426m")
    assert asked(made_of, (2, declared)) == {"web": counts}
    said = notices(made_of, (2, declared))
    assert len(said) == bool(notice)
    assert all(notice in each for each in said)


def test_each_resource_is_compared_by_itself() -> None:
    (found,) = foreseen(
        mcad(mcad_item(deployment(), custompodresources=sizes((2, "100m"), memory="1G")))
    ).pod_sets
    assert pod_total(found.pod.spec, Side.REQUESTS) == {"cpu": 500, "memory": 10**9}


def test_entries_are_taken_for_pods_in_their_order() -> None:
    """As in the documentation's own example, which declares the same of head and worker."""
    assert asked(ray_cluster("rc"), (2, 3)) == {"rc.headgroup": 3000, "rc.small-group": 3000}
    assert asked(ray_cluster("rc"), (1, 3), (1, 1)) == {
        "rc.headgroup": 3000,
        "rc.small-group": 2000,
    }


def test_the_number_of_pods_is_that_which_the_kind_makes() -> None:
    assert asked(deployment(), (5, 3)) == {"web": 500}
    (notice,) = notices(deployment(), (5, 3))
    assert notice == (
        "(Deployment web): custompodresources declare 5 pods; it has 2, which count, in the sizes "
        "of their templates"
    )


def test_a_limit_below_what_is_declared_is_raised_with_the_request() -> None:
    """Else the foreseen pod would ask for more than it may use, and be refused."""
    made_of = ray_cluster("rc")
    assert asked(made_of, (1, 4), (1, 2))["rc.headgroup"] == 4000


def test_a_limit_counts_where_nothing_is_requested() -> None:
    declared = [{"replicas": 2, "requests": {"cpu": 0}, "limits": {"cpu": 2}}]
    (found,) = foreseen(mcad(mcad_item(deployment(), custompodresources=declared))).pod_sets
    assert pod_total(found.pod.spec, Side.REQUESTS)["cpu"] == 2000


def test_pods_of_which_nothing_can_be_read_have_the_declared_size() -> None:
    """A resource of which none is declared is not asked for."""
    item = mcad_item(obj("example.org/v1", "Any", "x"), custompodresources=sizes((3, 2)))
    (found,) = foreseen(mcad(item)).pod_sets
    assert (found.name, found.count) == ("x", 3)
    assert pod_total(found.pod.spec, Side.REQUESTS) == {"cpu": 2000, "memory": 2 * 10**9}


def test_pods_of_several_containers_are_raised_as_a_whole() -> None:
    made_of = deployment()
    containers = made_of["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "beside", "resources": {"limits": {"cpu": "1"}}})
    assert asked(made_of, (2, "1500m")) == {"web": 1500}
    assert asked(made_of, (2, 4)) == {"web": 4000}
