"""Each pod set has a name of its own, which fits into a label value."""

import re

from hypothesis import given
from hypothesis import strategies as st

from appwrapper.spec.pod_set_names import LONGEST, PodSetNames
from tests.appwrapper.samples import codeflare, deployment, fine, job, ray_cluster

LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@given(st.lists(st.tuples(st.text(), st.text(max_size=99), st.text(max_size=99)), max_size=20))
def test_any_names_are_told_apart_and_fit(wished: list[tuple[str, str, str]]) -> None:
    given_names = PodSetNames()
    found = [given_names.name(*each) for each in wished]
    assert len({*found}) == len(found)
    assert all(len(each) <= LONGEST and LABEL.fullmatch(each) for each in found)
    assert "headgroup" not in found


def test_names_are_those_of_the_items() -> None:
    """A second item of the name, or a name too long, gets a digest of what it is."""
    names = PodSetNames()
    assert names.name("Deployment", "web", "") == "web"
    assert re.fullmatch(r"web-[0-9a-f]{8}", names.name("Job", "web", ""))
    long = names.name("Deployment", "w" * 80, "workers")
    assert re.fullmatch(rf"w{{{LONGEST - 9}}}-[0-9a-f]{{8}}", long)


def test_names_do_not_depend_on_when_they_are_given() -> None:
    first, second = (
        [each.name for item in fine(found).items for each in item.pod_sets]
        for found in [codeflare(deployment("a"), job("a"), ray_cluster("a"))] * 2
    )
    assert first == second
    assert first[0] == "a"
    assert first[2:] == ["a.headgroup", "a.small-group"]


def test_many_of_one_name_are_told_apart() -> None:
    names = PodSetNames()
    assert len({names.name("JobSet", "js", "same") for _each in range(2000)}) == 2000
