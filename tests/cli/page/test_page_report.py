"""One view of the page: the rows that match, no more than a page of them, and all counts."""

import pytest

from cli.report.page import ROWS, PageReport, page_report
from tests.cli.page.reports import gang, status


def view(query: str = "", waiting: int = 3) -> PageReport:
    found = status(tuple(gang(f"w-{at}") for at in range(waiting)), (gang("runs", "Running"),))
    return page_report(found, query, version=7, age=1.26, fault="")


def names(found: PageReport) -> list[str]:
    return [each.name for each in found.waiting.items]  # type: ignore[attr-defined]


def test_a_view_has_no_more_than_a_page_of_rows_and_says_how_many_there_are() -> None:
    found = view(waiting=ROWS + 5)
    assert (len(found.waiting.items), found.waiting.count) == (ROWS, ROWS + 5)
    assert (found.gangs, found.version, found.age) == (ROWS + 6, 7, 1.3)


@pytest.mark.parametrize("query", ["w-1", " TEAM/w-1 ", "W-1"])
def test_a_gang_is_found_by_a_part_of_its_name(query: str) -> None:
    found = view(query)
    assert (names(found), found.waiting.count, found.placed.count) == (["w-1"], 1, 0)


def test_words_of_queues_nodes_and_reasons_are_found_too() -> None:
    assert view("insufficient").waiting.count == 3
    assert view("research").queues.count == 1
    assert view("cordoned").nodes.count == 1
    assert view("nothing has this").waiting.count == 0


def test_the_counts_are_those_of_all_whatever_is_looked_for() -> None:
    assert (view("w-1").gangs, view("w-1").phases) == (4, {"Queued": 3, "Running": 1})
