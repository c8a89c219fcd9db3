"""The views that read, in a real browser: two sizes, light and dark, by keyboard alone."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testbed.browser import Browser, missing, open_browser
from tests.cli.page.reading.fake_api import FakeApi, gang, ray_cluster
from tests.cli.page.reading.test_one_cluster import HTML, event, pod
from tests.cli.page.reading.test_redis import reported
from tests.cli.page.reading.test_room import filled
from tests.cli.page.test_browser import POOR_CONTRAST, resize, roles

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]

SIZES = {"wide": (1920, 1080), "narrow": (390, 844)}
TAB, ENTER = "\ue004", "\ue007"
WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
VIEWS = {
    "#/clusters": "main[data-whole='true'] #clusters tbody th",
    "#/clusters/team/a": "main[data-phase] #pods tbody th",
    "#/jobs": "#jobs tbody th",
    "#/nodes": ".boxes svg",
    "#/queues": "#tree svg",
    "#/redis": "#states tbody th",
    "#/clusters/team/a/logs": "#log[data-ended]",
}


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    """A small world; texts that tenants write are HTML."""
    filled(api)
    api.objects["rayclusters"] = [
        *(ray_cluster(f"c-{at}") for at in range(1, 251)),
        ray_cluster("a", metadata={"annotations": {"x": HTML}}, status={"state": HTML}),
    ]
    api.objects["gangs"] += [gang("a", message=HTML, podSets=[{"name": "w", "message": HTML}])]
    ready = {"containerStatuses": [{"name": "ray", "ready": True}]}
    api.objects["pods"] += [
        pod("a-head", "headgroup", "n1", phase="Running", **ready),
        pod("a-w-1"),
    ]
    api.objects["events"] = [event("uid-a", "Created", HTML), event("gang-a", "QuotaExceeded")]
    spec = {"entrypoint": HTML, "clusterSelector": {"ray.io/cluster": "a"}}
    api.objects["rayjobs"] = [
        {"metadata": {"name": "nightly", "namespace": "team"}, "spec": spec, "status": {}}
    ]
    api.objects["configmaps"] = [reported(HTML)]
    api.logs["team", "a-head"] = log
    return api


async def log() -> AsyncIterator[bytes]:
    yield f"{HTML}\nline two\n".encode()


@pytest.fixture
async def browser(address: str, unused_tcp_port: int, tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser with the page open."""
    async with open_browser(unused_tcp_port, tmp_path) as browser:
        await browser.do("url", url=address)
        await browser.until("return document.body.dataset.version")
        yield browser


async def go(browser: Browser, view: str) -> None:
    """Open a view, and wait until what it reads is seen."""
    await browser.run("location.hash = arguments[0]", view)
    await browser.until(f"return document.querySelector({VIEWS[view]!r})")


async def press(browser: Browser, *keys: str) -> None:
    actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
    await browser.do("actions", actions=[{"type": "key", "id": "keys", "actions": actions}])


async def tab_to(browser: Browser, text: str) -> None:
    """Press Tab until what has the focus is called so."""
    for _ in range(60):
        await press(browser, TAB)
        if await browser.run("return document.activeElement.textContent") == text:
            return
    raise AssertionError(f"Tab does not lead to {text}")


async def scheme(browser: Browser, value: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": value}
    await browser.do(
        "goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": [feature]}
    )


async def narrow(browser: Browser, size: tuple[int, int]) -> None:
    """A window has a least width; the size of a device has not."""
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    await browser.do("goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=metrics)


@pytest.mark.parametrize("size", SIZES)
async def test_each_view_is_readable_and_what_tenants_write_is_text(
    browser: Browser, size: str
) -> None:
    await resize(browser, SIZES[size])
    await narrow(browser, SIZES[size])
    for view in VIEWS:
        await go(browser, view)
        assert await browser.run(WIDER) <= 0, view
        for each in ("light", "dark"):
            await scheme(browser, each)
            assert await browser.run(POOR_CONTRAST) == [], (view, each)
        assert (
            await browser.run("return document.querySelectorAll('main img, main b b').length") == 0
        )
        assert (
            await browser.run("return document.querySelectorAll('[style], main script').length")
            == 0
        )
    assert HTML in await browser.run("return document.querySelector('#log').textContent")
    assert await browser.complaints() == []


async def test_readers_of_any_kind_find_names_and_roles(browser: Browser) -> None:
    for view in VIEWS:
        await go(browser, view)
        named = await roles(
            browser,
            "main input, main select, main section, main .scroll, main svg:not([aria-hidden])",
        )
        assert named, view
        assert [each for each in named if each[0] not in ("none", "generic") and not each[1]] == []
        unlabelled = "return document.querySelectorAll('th:not([scope])').length"
        assert await browser.run(unlabelled) == 0
        current = "return document.querySelectorAll('nav a[aria-current=page]').length"
        assert await browser.run(current) == 1


async def names(browser: Browser) -> list[str]:
    script = "return [...document.querySelectorAll('#clusters tbody th')].map((e) => e.textContent)"
    found: list[str] = await browser.run(script)
    return found


async def test_the_list_is_in_natural_order_paged_and_narrowed(browser: Browser) -> None:
    await go(browser, "#/clusters")
    assert (await names(browser))[:3] == ["team/a", "team/c-1", "team/c-2"]
    assert len(await names(browser)) == 100
    assert (
        await browser.run("return document.querySelector('#place').textContent")
        == "1 to 100 of 251"
    )
    await tab_to(browser, "Next")
    await press(browser, ENTER)
    assert (await names(browser))[0] == "team/c-100"
    (query,) = await browser.elements("#query")
    await browser.do(f"element/{query}/value", text="C-25")
    found = "return document.querySelector('#place').textContent"
    assert await browser.until(found, lambda text: "of 251" not in text) == "1 to 2 of 2"
    assert await names(browser) == ["team/c-25", "team/c-250"]


async def test_by_keyboard_alone_one_gets_to_the_log_of_a_pod(browser: Browser) -> None:
    await tab_to(browser, "Ray clusters")
    await press(browser, ENTER)
    await browser.until(f"return document.querySelector({VIEWS['#/clusters']!r})")
    assert await browser.run("return document.activeElement.tagName") == "MAIN"
    await tab_to(browser, "team/a")
    await press(browser, ENTER)
    await browser.until(f"return document.querySelector({VIEWS['#/clusters/team/a']!r})")
    parts = (
        "QuotaExceeded",
        "n1",
        "nightly",
        "waited",
        "ray",
    )  # the jobs are an answer of their own
    await browser.until(
        "return document.querySelector('main').innerText",
        lambda text: all(each in text for each in parts),
    )
    assert await browser.run("return document.querySelector('.links a[target]').href") == (
        "https://ray.example.com/team/a"
    )
    await tab_to(browser, "Logs")
    await press(browser, ENTER)
    shown = "return document.querySelector('#log')?.textContent"
    assert "line two" in await browser.until(shown, lambda found: found and "line two" in found)
    assert await browser.run("return document.title") == "a · Logs · Muster"


async def test_nodes_and_queues_are_pictures_that_can_be_read_out(browser: Browser) -> None:
    await go(browser, "#/nodes")
    labels = "return [...document.querySelectorAll('.boxes svg')].map((e) => e.ariaLabel)"
    (first, second) = await browser.run(labels)
    assert first.startswith("n1: 8 nvidia.com/gpu; ")
    assert "2 reserved for RayCluster team/next" in first
    assert second == "n2: 8 nvidia.com/gpu; 8 not to be had (cordoned)"
    await go(browser, "#/queues")
    bars = "return [...document.querySelectorAll('#tree svg')].map((e) => e.ariaLabel)"
    assert await browser.run(bars) == ["research: 18 nvidia.com/gpu used of 16, 2 borrowed"]
    assert await browser.run("return document.querySelectorAll('#tree ul ul').length") == 1


async def test_rights_that_are_missing_are_named(browser: Browser, api: FakeApi) -> None:
    api.forbidden = {("nodes", ""), ("pods", "")}
    await browser.run("location.hash = '#/nodes'")
    said = "return document.querySelector('main .notes')?.textContent"
    assert "a right is missing: list nodes" in await browser.until(said)


@pytest.mark.timeout(1800)  # a busy browser takes its time
async def test_a_log_is_followed_and_a_long_one_fills_no_memory(
    browser: Browser, api: FakeApi
) -> None:
    """A gigabyte: what is kept is the end of it, and the tab still answers."""
    line, more = b"x" * 1023 + b"\n", asyncio.Event()

    async def huge() -> AsyncIterator[bytes]:
        for _ in range(1024):
            yield line * 1024
        await more.wait()
        yield b"the last line\n"

    api.logs["team", "a-head"] = huge
    await browser.run("location.hash = '#/clusters/team/a/logs'")
    read = "return Number(document.querySelector('#log')?.dataset.bytes ?? 0)"
    deadline = time.monotonic() + 1500
    while await browser.run(read) < 1 << 30:
        assert time.monotonic() < deadline
        await asyncio.sleep(1)
    assert await browser.run("return document.querySelector('#log').textContent.length") < 8 << 20
    more.set()
    shown = "return document.querySelector('#log').textContent.endsWith('the last line\\n')"
    assert await browser.until(shown)
    heap = await browser.run("return performance.memory.usedJSHeapSize")
    assert heap < 200 << 20
