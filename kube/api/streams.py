"""Reads streamed responses: watches line by line, logs piece by piece."""

from collections.abc import AsyncIterator

import aiohttp

from kube.api.connection import LineSplitter, only_kube_errors

Lines = list[bytes]
"""The events of a watch that came together, one line each."""


async def lines_of(answer: aiohttp.ClientResponse, path: str) -> AsyncIterator[Lines]:
    """Yield the whole lines of a watch as they come; `path` is for errors."""
    splitter = LineSplitter()
    with only_kube_errors(f"watch {path}"):
        async for piece in answer.content.iter_any():
            if lines := splitter.feed(piece):
                yield lines


async def pieces_of(answer: aiohttp.ClientResponse, path: str) -> AsyncIterator[bytes]:
    """Yield an answer piece by piece, as it comes; `path` is for errors."""
    with only_kube_errors(f"GET {path}"):
        async for piece in answer.content.iter_any():
            yield piece
