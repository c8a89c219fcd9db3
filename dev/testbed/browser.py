"""Chromium without a window, driven over WebDriver (W3C) by chromedriver."""

import asyncio
import base64
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import orjson
from aiohttp import ClientSession, ClientTimeout

PROGRAMS = ("chromium", "chromedriver")
REMEDY = "install Debian's packages chromium and chromium-driver"
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key of an element's reference, fixed by the standard."""


def missing() -> str:
    """Name the programs that are not installed, and how to get them."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"no {' and no '.join(absent)}: {REMEDY}" if absent else ""


@contextmanager
def chromedriver(port: int, log: Path) -> Iterator[str]:
    """Run chromedriver; gives its address."""
    program = shutil.which("chromedriver")
    assert program is not None
    with log.open("wb") as out:
        process = subprocess.Popen([program, f"--port={port}"], stdout=out, stderr=out)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


class Browser:
    """One session of a browser."""

    def __init__(self, http: ClientSession, path: str) -> None:
        self._http = http
        self._path = path

    @classmethod
    async def start(cls, http: ClientSession, profile: Path) -> "Browser":
        """Start a browser with a profile of its own; waits until chromedriver answers."""
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
        ]
        always = {
            "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        body = {"capabilities": {"alwaysMatch": always}}
        deadline = time.monotonic() + 120
        while True:
            try:
                async with http.post("/session", data=orjson.dumps(body)) as answer:
                    made = orjson.loads(await answer.read())["value"]
                return cls(http, f"/session/{made['sessionId']}")
            except OSError:
                if time.monotonic() > deadline:
                    raise

    async def close(self) -> None:
        """End the session and the browser."""
        await self._http.delete(self._path)

    async def do(self, what: str, **body: Any) -> Any:
        """Send one command."""
        async with self._http.post(f"{self._path}/{what}", data=orjson.dumps(body)) as answer:
            value = orjson.loads(await answer.read())["value"]
        assert answer.status == 200, value
        return value

    async def ask(self, what: str) -> Any:
        """Ask for one thing."""
        async with self._http.get(f"{self._path}/{what}") as answer:
            value = orjson.loads(await answer.read())["value"]
        assert answer.status == 200, value
        return value

    async def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page and return its value."""
        return await self.do("execute/sync", script=script, args=arguments)

    async def until(self, script: str, holds: Callable[[Any], bool] = bool) -> Any:
        """Run a script until its value is as it should be, two minutes at most."""
        deadline = time.monotonic() + 120
        while not holds(value := await self.run(script)):
            assert time.monotonic() < deadline, (script, value)
        return value

    async def elements(self, selector: str) -> list[str]:
        """Return references of what a selector finds."""
        found = await self.do("elements", using="css selector", value=selector)
        return [each[ELEMENT] for each in found]

    async def screenshot(self, path: Path) -> None:
        """Save what is seen."""
        picture = base64.b64decode(await self.ask("screenshot"))
        await asyncio.to_thread(path.write_bytes, picture)

    async def complaints(self) -> list[str]:
        """Return what the browser wrote to its console as a warning or an error."""
        lines = await self.do("se/log", type="browser")
        return [each["message"] for each in lines if each["level"] in ("WARNING", "SEVERE")]


def session(address: str) -> ClientSession:
    """Return an HTTP session that waits long enough for a browser on a busy machine."""
    return ClientSession(address, timeout=ClientTimeout(total=180))


@asynccontextmanager
async def open_browser(port: int, directory: Path) -> AsyncIterator[Browser]:
    """Start chromedriver on a port and a browser with a profile in a directory; end both."""
    with chromedriver(port, directory / "chromedriver.log") as driver:
        async with session(driver) as http:
            browser = await Browser.start(http, directory / "profile")
            try:
                yield browser
            finally:
                await browser.close()
