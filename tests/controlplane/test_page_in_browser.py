"""The day of an owner in Chromium, on a control plane: created, waits, edited, runs, and on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testbed.browser import Browser, missing, open_browser
from tests.cli.page.reading.test_views import ENTER, SIZES, narrow, press, scheme
from tests.cli.page.writing.test_forms import DIALOG, FAULT, PLAN, agree, fill, go, send
from tests.controlplane.plot import Plot
from tests.controlplane.test_managing import replicas
from tests.controlplane.test_page_managing import model, page_of, tokens_of

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]

PHASE = "return document.querySelector('main').dataset.phase"
TEXT = "return document.querySelector('main').innerText"
HASH = "return location.hash"


@pytest.fixture
def tokens(plot: Plot) -> dict[str, str]:
    return tokens_of(plot)


@pytest.fixture
async def browser(unused_tcp_port: int, tmp_path: Path) -> AsyncIterator[Browser]:
    async with open_browser(unused_tcp_port, tmp_path) as found:
        yield found


async def log_in(browser: Browser, origin: str, token: str) -> None:
    await browser.do("url", url="about:blank")
    await browser.do("url", url=f"{origin}/#/clusters")
    await browser.until(DIALOG)
    await fill(browser, "dialog input", token)
    await press(browser, ENTER)
    await browser.until("return document.querySelector('#clusters')")


@pytest.mark.parametrize(("size", "colours"), [("wide", "light"), ("narrow", "dark")])
async def test_each_of_the_three_lives_with_a_ray_cluster(
    plot: Plot,
    tokens: dict[str, str],
    browser: Browser,
    size: str,
    colours: str,
) -> None:
    plot.add_node(4)
    model(plot, replicas=6)
    await narrow(browser, SIZES[size])
    await scheme(browser, colours)
    async with page_of(plot) as (_, origin):
        await log_in(browser, origin, tokens["owner"])
        await own(plot, browser)
        await log_in(browser, origin, tokens["user"])
        await use(plot, browser)
        await log_in(browser, origin, tokens["owner"])
        await end(plot, browser)
        await log_in(browser, origin, tokens["admin"])
        await configure(plot, browser)


async def own(plot: Plot, browser: Browser) -> None:
    """Create what does not fit, see why it waits, edit it to what fits, see it run, scale it."""
    train = f"#/clusters/{plot.name}/train"
    await go(browser, f"#/create?namespace={plot.name}&like=model")
    await fill(browser, "input[name=name]", "train")
    await send(browser)
    assert "not known" in await browser.until(PLAN)
    await agree(browser, "Create it")
    await browser.until(HASH, lambda found: found == train)
    await browser.until(PHASE, lambda found: found == "Queued")
    await browser.until(TEXT, lambda found: "NeverFits: the gang needs 7 cpu" in found)
    await go(browser, f"{train}/edit")
    await fill(browser, "input[name=replicas]", "2")
    await send(browser)
    assert "6 -> 2, now" in await browser.until(PLAN)
    await agree(browser, "Change it")
    await browser.until(HASH, lambda found: found == train)
    await browser.until(PHASE, lambda found: found == "Running")
    await go(browser, f"{train}/scale")
    await fill(browser, "input[name=replicas]", "1")
    await send(browser)
    assert "KubeRay deletes 1 worker pod of its own choice" in await browser.until(PLAN)
    await agree(browser, "Scale it")
    await browser.until(HASH, lambda found: found == train)
    assert replicas(plot, "train") == 1


async def use(plot: Plot, browser: Browser) -> None:
    """The user submits a job; a change is refused in a line."""
    await go(browser, f"#/submit?namespace={plot.name}&cluster=train")
    await fill(browser, "input[name=name]", "nightly")
    await fill(browser, "input[name=entrypoint]", "python -c pass")
    await send(browser)
    await agree(browser, "Submit it")
    await browser.until(HASH, lambda found: found.startswith("#/jobs"))
    plot.get("RayJob", "nightly")
    await go(browser, f"#/clusters/{plot.name}/train/suspend")
    await agree(browser, "Suspend it")
    assert "may not patch rayclusters.ray.io" in await browser.until(FAULT)


async def end(plot: Plot, browser: Browser) -> None:
    train = f"#/clusters/{plot.name}/train"
    await go(browser, f"{train}/suspend")
    await agree(browser, "Suspend it")
    await browser.until(HASH, lambda found: found == train)
    plot.wait(lambda: not plot.pods("train"), "KubeRay to delete its pods")
    await go(browser, f"{train}/delete")
    assert "jobs that are not over and run on it will fail: nightly" in await browser.until(PLAN)
    await agree(browser, "Delete it")
    await browser.until(HASH, lambda found: found == "#/clusters")
    plot.delete("RayJob", "nightly")


async def configure(plot: Plot, browser: Browser) -> None:
    """The admin makes a queue."""
    name = plot.queue("by-browser")
    await go(browser, "#/create-queue")
    await fill(browser, "input[name=name]", name)
    await fill(browser, "input[name=quota]", "cpu=4, nvidia.com/gpu=8")
    await send(browser)
    await agree(browser, "Create it")
    await browser.until(HASH, lambda found: found == "#/queues")
    selector = (f"{key}={value}" for key, value in plot.selector.items())
    plot.cluster.kubectl("label", "gangqueue", name, *selector)
