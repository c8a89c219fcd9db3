"""The page in a real browser: what is seen at two sizes, that it follows, that all can read it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cli.endings import CannotRead
from cli.page.feed import Feed
from cli.page.server import ADDRESS, serving
from tests.cli.page.browser import Browser, chromedriver, missing, session
from tests.cli.page.reports import gang, status
from tests.cli.page.test_server import Cluster

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]

SIZES = {"wide": (1400, 1000), "narrow": (420, 900)}

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
        (gang("first"), gang("<b>bold</b>", message="<img src=x onerror=alert(1)>")),
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
    log = tmp_path / "chromedriver.log"
    with chromedriver(unused_tcp_port, log) as address:
        async with serving(feed, 0) as port, session(address) as http:
            browser = await Browser.start(http, tmp_path / "profile")
            try:
                await browser.do("url", url=f"http://{ADDRESS}:{port}/")
                await browser.until("return document.body.dataset.version")
                yield browser
            finally:
                await browser.close()


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
    assert headings == ["H1", *["H2"] * 6]
    cells = await browser.run("return document.querySelectorAll('th:not([scope])').length")
    assert cells == 0
    assert await browser.run("return document.documentElement.lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_texts_stand_out_from_their_ground(browser: Browser, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    await browser.do(
        "goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": [feature]}
    )
    assert await browser.run(POOR_CONTRAST) == []
