"""The forms in a real browser: by keyboard alone, a token that ends, two tabs, each size."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from testbed.browser import Browser, missing, open_browser
from tests.cli.page.people import ADA, SECRET, People, on_laptop
from tests.cli.page.reading.test_views import ENTER, SIZES, WIDER, narrow, press, scheme, tab_to
from tests.cli.page.test_browser import POOR_CONTRAST, resize, roles

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]

TRAIN = "#/clusters/team/train"
FORMS = [
    "#/create?namespace=team",
    f"{TRAIN}/edit",
    f"{TRAIN}/scale",
    "#/submit?namespace=team&cluster=train",
    "#/create-queue",
    "#/queues/research/edit",
    "#/what-if",
    f"{TRAIN}/delete",
]
FAULT = "return document.querySelector('[role=alert]')?.textContent"
PLAN = "return document.querySelector('.plan')?.innerText"
DIALOG = "return document.querySelector('dialog[open] h2')?.textContent"


@pytest.fixture
async def browser(unused_tcp_port: int, tmp_path: Path) -> AsyncIterator[Browser]:
    async with open_browser(unused_tcp_port, tmp_path) as found:
        yield found


@pytest.fixture
async def logged_in(browser: Browser, origin: str) -> Browser:
    """The page of the cluster, whose person has given a token."""
    await browser.do("url", url=f"{origin}/#/jobs")
    assert await browser.until(DIALOG) == "Log in"
    await fill(browser, "dialog input", ADA)
    await press(browser, ENTER)
    await browser.until("return !document.querySelector('dialog')")
    assert await browser.until("return document.querySelector('#who').textContent") == "ada"
    return browser


async def go(browser: Browser, view: str) -> None:
    await browser.run("location.hash = arguments[0]", view)
    path = view.removeprefix("#").partition("?")[0]
    await browser.until(
        "return document.querySelector('main').dataset.path + "
        "(document.querySelector('form.manage button') ? '' : ' not yet')",
        lambda found: found == path,
    )


async def fill(browser: Browser, selector: str, text: str) -> None:
    """Type into the first such field, in the place of what is there."""
    found, *_ = await browser.elements(selector)
    await browser.do(f"element/{found}/clear")
    await browser.do(f"element/{found}/value", text=text)


async def send(browser: Browser) -> None:
    """Ask what the form would do."""
    await browser.run("document.querySelector('form.manage button[type=submit]').click()")


async def agree(browser: Browser, word: str) -> None:
    """Press the button that carries the plan out, which has the focus."""
    focused = "return document.activeElement.textContent"
    assert await browser.until(focused, lambda found: found == word) == word
    await press(browser, ENTER)


async def test_each_form_is_readable_and_has_names_and_roles(
    logged_in: Browser, people: People
) -> None:
    browser = logged_in
    for size in SIZES.values():
        await resize(browser, size)
        await narrow(browser, size)
        for view in FORMS:
            await go(browser, view)
            await browser.run("document.querySelectorAll('details').forEach((e) => e.open = true)")
            assert await browser.run(WIDER) <= 0, (view, size)
            for each in ("light", "dark"):
                await scheme(browser, each)
                assert await browser.run(POOR_CONTRAST) == [], (view, each)
            named = await roles(browser, "main input, main select, main textarea, main fieldset")
            assert [each for each in named if not each[1]] == [], view
            assert await browser.run("return document.querySelectorAll('[style]').length") == 0


async def test_by_keyboard_alone_a_cluster_is_created(logged_in: Browser, people: People) -> None:
    browser = logged_in
    await go(browser, "#/create?namespace=team")
    await fill(browser, "input[name=name]", "Bad Name")
    await tab_to(browser, "Show what it would do")
    await press(browser, ENTER)
    assert await browser.run(
        "return document.querySelector('input[name=name]').matches(':invalid')"
    )
    await fill(browser, "input[name=name]", "new")
    await fill(browser, "input[name=queue]", "research")
    await tab_to(browser, "Show what it would do")
    await press(browser, ENTER)
    assert "not known whether it would start now" in await browser.until(PLAN)
    assert people.writes == []
    await agree(browser, "Create it")
    await browser.until("return location.hash", lambda found: found == "#/clusters/team/new")
    assert groups(people, "new")[0]["groupName"] == "workers"


async def test_what_the_server_refuses_is_said_where_it_is_heard(
    logged_in: Browser, people: People
) -> None:
    browser = logged_in
    await go(browser, "#/create?namespace=team")
    await fill(browser, "input[name=name]", "train")
    await send(browser)
    await agree(browser, "Create it")
    assert "exists already" in await browser.until(FAULT)
    assert await browser.run("return document.querySelector('input[name=name]').value") == "train"


async def test_a_token_that_ends_meanwhile_is_asked_for_and_no_form_is_lost(
    logged_in: Browser, people: People
) -> None:
    browser = logged_in
    await go(browser, f"{TRAIN}/edit")
    await fill(browser, "input[name=max]", "9")
    people.users = {"newer-token": "ada"}
    await send(browser)
    assert await browser.until(DIALOG) == "Log in"
    await press(browser, "\ue00c")  # Escape: not now
    assert "is missing" in await browser.until(FAULT)
    assert await browser.run("return document.querySelector('input[name=max]').value") == "9"
    await send(browser)
    await browser.until(DIALOG)
    assert "expired" in await browser.run("return document.querySelector('dialog').innerText")
    await fill(browser, "dialog input", "newer-token")
    await press(browser, ENTER)
    await agree(browser, "Change it")
    await browser.until("return location.hash", lambda found: found == TRAIN)
    assert groups(people)[0]["maxReplicas"] == 9
    stored = "return [document.cookie, localStorage.length, sessionStorage.length, location.href]"
    cookie, local, of_tab, address = await browser.run(stored)
    assert (cookie, local, of_tab, "token" in address) == ("", 0, 0, False)


def groups(people: People, name: str = "train") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = people.get("rayclusters", name, "team")["spec"][
        "workerGroupSpecs"
    ]
    return found


async def test_of_two_tabs_the_later_is_told_and_keeps_what_it_wrote(
    logged_in: Browser, people: People
) -> None:
    browser = logged_in
    await go(browser, f"{TRAIN}/edit")
    await fill(browser, "input[name=max]", "9")
    groups(people)[0]["minReplicas"] = 1  # the other tab
    await send(browser)
    said = await browser.until(FAULT, lambda found: found and "Changed by others: " in found)
    assert "was changed by others meanwhile, and nothing was written" in said
    assert "Changed by others: groups" in said
    values = "return ['min', 'max'].map((e) => document.querySelector(`input[name=${e}]`).value)"
    assert await browser.run(values) == ["1", "9"]
    await send(browser)
    await agree(browser, "Change it")
    await browser.until("return location.hash", lambda found: found == TRAIN)
    assert (groups(people)[0]["minReplicas"], groups(people)[0]["maxReplicas"]) == (1, 9)


async def test_what_is_deleted_is_said_and_asked_first(logged_in: Browser, people: People) -> None:
    browser = logged_in
    await go(browser, f"{TRAIN}/delete")
    assert "Delete RayCluster team/train?" in await browser.until(PLAN)
    await agree(browser, "Delete it")
    await browser.until("return location.hash", lambda found: found == "#/clusters")
    assert ("rayclusters", "team", "train") not in people.objects


async def test_what_tenants_write_is_text_in_forms_too(logged_in: Browser, people: People) -> None:
    browser, evil = logged_in, "<img src=x onerror=document.title='evil'>"
    meta = people.get("rayclusters", "train", "team")["metadata"]
    meta["annotations"] = {"muster.dev/expected-duration": evil}
    groups(people)[0]["groupName"] = "w"
    groups(people)[0]["template"]["spec"]["containers"][0]["image"] = evil
    meta["ownerReferences"] = [{"kind": evil, "name": evil, "controller": True}]
    await go(browser, f"{TRAIN}/edit")
    await browser.run("document.querySelector('input[name=expectedDuration]').value += '!'")
    await send(browser)
    assert evil in await browser.until(FAULT)
    assert await browser.run("return document.querySelectorAll('main img').length") == 0
    assert "evil" not in await browser.run("return document.title")


async def test_a_laptop_takes_the_secret_out_of_its_address(
    browser: Browser, people: People
) -> None:
    async with on_laptop(people) as (_, origin):
        await browser.do("url", url=f"{origin}/#secret={SECRET}")
        await browser.until("return document.querySelector('main').dataset.path")
        assert SECRET not in await browser.run("return location.href")
        await go(browser, f"{TRAIN}/suspend")
        await agree(browser, "Suspend it")
        await browser.until("return location.hash", lambda found: found == TRAIN)
        assert people.get("rayclusters", "train", "team")["spec"]["suspend"] is True
        await browser.do("refresh")
        await go(browser, f"{TRAIN}/resume")
        assert await browser.until(DIALOG) == "Allow changes"
        await fill(browser, "dialog input", SECRET)
        await press(browser, ENTER)
        await agree(browser, "Resume it")
        await browser.until("return location.hash", lambda found: found == TRAIN)
        assert people.get("rayclusters", "train", "team")["spec"]["suspend"] is False
