"""The page in a real browser: what is seen at two sizes, that it follows, that all can read it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from cli.endings import CannotRead
from cli.page.feed import Feed
from cli.page.on_laptop import laptop_page
from cli.page.safety.guards import ADDRESS
from cli.page.server import serving
from cli.report.queues import QueueReport
from cli.report.status import StatusReport
from testbed.browser import Browser, missing, open_browser
from tests.cli.page.reading.fake_api import FakeApi, client_of
from tests.cli.page.reports import GPU, expected, gang, status
from tests.cli.page.test_server import Cluster

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]

SIZES = {"wide": (1400, 1000), "narrow": (420, 900)}

NONE = "\N{EN DASH}"

NAMES = "return [...document.querySelectorAll('#waiting tbody th')].map(each => each.textContent)"

# The contrast of each text to the nearest ground that is painted, by the formula of WCAG 2.2.
POOR_CONTRAST = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
  .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
const ground = (node) => {
  for (; node; node = node.parentElement) {
    const found = parse(getComputedStyle(node).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
const texts = [...document.querySelectorAll('body *')].filter((each) =>
  [...each.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
return texts.map((each) => {
  const [a, b] = [light(parse(getComputedStyle(each).color)), light(ground(each))];
  return [each.textContent.slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
}).filter(([, contrast]) => contrast < 4.5);
"""


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.found = status(
        (expected("first"), gang("<b>bold</b>", message="<img src=x onerror=alert(1)>")),
        (gang("runs", "Running"),),
        nodes=20,
    )
    return found


@pytest.fixture
def feed(cluster: Cluster) -> Feed:
    return Feed(cluster.read, period=3600)


@pytest.fixture
async def browser(feed: Feed, unused_tcp_port: int, tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser with the page open."""
    await feed.refresh()
    async with (
        client_of(FakeApi()) as client,
        serving(laptop_page(client, "team", "secret", feed), 0) as port,
        open_browser(unused_tcp_port, tmp_path) as browser,
    ):
        await browser.do("url", url=f"http://{ADDRESS}:{port}/")
        await browser.until("return document.body.dataset.version")
        yield browser


ROW = """
const found = [...document.querySelectorAll(`#${arguments[0]} tbody tr`)];
const row = found.find((each) => each.children[0].textContent.endsWith(arguments[1]));
return [...row.children].map((each) => each.innerText);
"""

TOPS = """
return [...document.querySelectorAll('#queues tbody tr')].map((row) =>
  [...row.querySelectorAll('td > div')].map((cell) =>
    [...cell.children].map((each) => Math.round(each.getBoundingClientRect().top))));
"""


async def resize(browser: Browser, size: tuple[int, int]) -> None:
    await browser.do("window/rect", width=size[0], height=size[1])


@pytest.mark.parametrize("size", SIZES)
async def test_all_is_seen_at_both_sizes_and_only_tables_scroll_sideways(
    browser: Browser, size: str, tmp_path: Path
) -> None:
    await resize(browser, SIZES[size])
    await browser.screenshot(tmp_path / f"{size}.png")
    assert (tmp_path / f"{size}.png").stat().st_size > 10_000
    wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await browser.run(wider) <= 0
    shown = await browser.run("return document.querySelector('main').innerText")
    for text in (
        "first",
        "research",
        "node-19",
        "A100",
        "no GangQueue gone",
        "not allowed to list",
    ):
        assert text in shown
    assert await browser.complaints() == []


async def test_what_tenants_write_is_text(browser: Browser) -> None:
    assert await browser.run(NAMES) == ["team/first", "team/<b>bold</b>"]
    assert await browser.run("return document.querySelectorAll('img, main b b').length") == 0


async def test_it_follows_the_cluster_without_being_loaded_again(
    browser: Browser, feed: Feed, cluster: Cluster
) -> None:
    cluster.found = status((gang("came-later"),))
    await feed.refresh()
    assert await browser.until(NAMES, lambda found: "team/first" not in found) == [
        "team/came-later"
    ]


async def test_expected_starts_are_lines_that_say_in_words_when(
    browser: Browser, cluster: Cluster
) -> None:
    """One of the two gangs is told a time: the other one has no line."""
    assert isinstance(cluster.found, StatusReport)
    told = cluster.found.waiting[0].expected_start
    assert told is not None
    lines = "return [...document.querySelectorAll('#starts svg')].map(e => e.ariaLabel)"
    assert await browser.until(lines) == [
        f"team/first: expected at {told.at}, between {told.earliest} and {told.latest}"
    ]
    bars = "[...document.querySelectorAll('#starts rect')]"
    places = f"return {bars}.map(e => Math.round(e.getAttribute('x') / 50))"
    assert await browser.run(places) == [6, 10]


async def test_what_is_typed_narrows_the_rows(browser: Browser) -> None:
    (query,) = await browser.elements("#query")
    await browser.do(f"element/{query}/value", text="FIRST")
    assert await browser.until(NAMES, lambda found: len(found) == 1) == ["team/first"]


async def test_a_cluster_that_cannot_be_read_is_said(
    browser: Browser, feed: Feed, cluster: Cluster
) -> None:
    cluster.found = CannotRead("the API server cannot be reached")
    await feed.refresh()
    state = "return document.querySelector('#state.bad')?.textContent"
    assert await browser.until(state) == "the API server cannot be reached"
    assert await browser.run(NAMES) != []


async def roles(browser: Browser, selector: str) -> list[tuple[Any, Any]]:
    found = await browser.elements(selector)
    return [
        (
            await browser.ask(f"element/{each}/computedrole"),
            await browser.ask(f"element/{each}/computedlabel"),
        )
        for each in found
    ]


async def test_readers_of_any_kind_find_their_way(browser: Browser) -> None:
    """Names and roles as the browser gives them to assistive programs."""
    named = await roles(browser, "input, section, .scroll, svg.bar, [role=search]")
    assert len(named) > 30
    assert [
        each for each in named if each[0] in ("searchbox", "region", "img") and not each[1]
    ] == []
    assert ("searchbox", "Find") in named
    headings = await browser.run(
        "return [...document.querySelectorAll('h1, h2, h3')].map(each => each.tagName)"
    )
    assert headings == ["H1", *["H2"] * 7]
    cells = await browser.run("return document.querySelectorAll('th:not([scope])').length")
    assert cells == 0
    assert await browser.run("return document.documentElement.lang") == "en"


async def test_figures_of_a_queue_stand_beside_their_resource(browser: Browser) -> None:
    """Of what has no quota the holes alone are known, and they are not shown here."""
    _, _, _, *cells = (await browser.run(ROW, "queues", "research"))[:8]
    assert [each.split("\n") for each in cells] == [
        [GPU, "cpu", "memory"],
        ["40", "3", "1.5Gi"],
        ["64", "1000", NONE],
        ["8", NONE, NONE],
        ["24", "997", NONE],
    ]
    for tops in await browser.run(TOPS):
        assert tops == [tops[0]] * 5


async def test_a_queue_without_any_figure_has_dashes(
    browser: Browser, feed: Feed, cluster: Cluster
) -> None:
    cluster.found = structs.replace(status(), queues=(QueueReport("new", "", 0, True, "", 0, 0),))
    await feed.refresh()
    await browser.until("return document.querySelector('#queues tbody th').innerText === 'new'")
    assert await browser.run(ROW, "queues", "new") == ["new", "0", "0", *[NONE] * 5, "", ""]


async def test_a_node_that_takes_no_pods_has_nothing_free(browser: Browser) -> None:
    assert (await browser.run(ROW, "nodes", "node-0"))[-2:] == ["", "cordoned"]
    assert (await browser.run(ROW, "nodes", "node-1"))[-2:] == ["2", ""]


async def test_a_gang_that_failed_is_not_among_those_with_a_place(
    browser: Browser, feed: Feed, cluster: Cluster
) -> None:
    cluster.found = status(failed=(gang("bad", "Failed"),))
    await feed.refresh()
    await browser.until("return document.querySelector('#failed tbody th')")
    assert (await browser.run(ROW, "failed", "bad"))[0] == "team/bad"
    assert await browser.run("return document.querySelector('#placed tbody th')") is None


async def test_a_cluster_without_gangs_says_so(
    browser: Browser, feed: Feed, cluster: Cluster
) -> None:
    cluster.found = status()
    await feed.refresh()
    assert await browser.until(NAMES, lambda found: not found) == []
    said = "return [...document.querySelectorAll('caption')].map(each => each.textContent)"
    assert await browser.run(said) == ["no gang waits", "no gang has a place", "no gang has failed"]
    assert (await browser.run("return document.querySelector('#state').textContent")).endswith(
        "; 0 gangs"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_texts_stand_out_from_their_ground(browser: Browser, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    await browser.do(
        "goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": [feature]}
    )
    assert await browser.run(POOR_CONTRAST) == []
