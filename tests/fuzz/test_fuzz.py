"""Mutated bodies get clear answers from both HTTPS servers, and the contract notices others."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from aiohttp import web

from tests.fuzz import servers
from tests.fuzz.callers import Answer
from tests.fuzz.campaign import BrokenContractError, expect_clear, fuzz, running
from tests.fuzz.cases import CASES

SECONDS = 12.0  # of nine cases, within two minutes

every_path = pytest.mark.parametrize("name", CASES)


@every_path
def test_what_was_recorded_is_answered_in_full(name: str) -> None:
    """The mutations start from bodies that get as far as they can."""
    case = CASES[name]
    with running(case) as server:
        for each in case.originals:
            answer = server.post(case.path, each.body)
            assert answer is not None
            assert answer.status == 200, answer
            case.expect(answer.body)
        assert server.errors.texts == []


@pytest.mark.long
@every_path
def test_every_answer_is_clear(name: str) -> None:
    tally = fuzz(CASES[name], seconds=SECONDS, first_seed=secrets.randbelow(1 << 32))
    # Neither all taken nor all refused; of broken heads hardly one is taken.
    wanted = {400} if CASES[name].requests else {200, 400}
    assert wanted <= set(tally.statuses)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, b"internal error"),
        Answer(404, b"404: Not Found"),
        Answer(400, b"  \n"),
        Answer(503, b"later"),
    ],
    ids=lambda answer: str(answer.status),
)
def test_an_unclear_answer_is_a_breach(answer: Answer) -> None:
    with pytest.raises(BrokenContractError):
        expect_clear(CASES["webhook/mutate"], answer)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"response":{"uid":"r","allowed":"yes"}}',
        b'{"response":{"uid":"\\ud800","allowed":true}}',
        b'{"response":{"uid":"r","allowed":true,"patchType":"JSONPatch","patch":"bm8="}}',
    ],
)
def test_an_answer_that_the_caller_cannot_read_is_a_breach(body: bytes) -> None:
    with pytest.raises((AssertionError, KeyError, ValueError)):
        expect_clear(CASES["webhook/mutate"], Answer(200, body))


@pytest.mark.parametrize("fault", ["raises", "hangs up"])
def test_a_server_with_a_fault_is_found(fault: str) -> None:
    """Hypothesis finds a body that one line of the server does not foresee."""
    case = replace(CASES["extender/filter"], originals=CASES["extender/filter"].originals[:1])
    with (
        mock.patch.dict(servers.SERVERS, extender=lambda directory: _faulty(directory, fault)),
        pytest.raises(BrokenContractError),
    ):
        fuzz(case, seconds=0.0, first_seed=1)


@contextlib.asynccontextmanager
async def _faulty(directory: Path, fault: str) -> AsyncIterator[servers.Listening]:
    async def filtered(*arguments: object) -> web.StreamResponse:
        [request] = [each for each in arguments if isinstance(each, web.Request)]
        if len(await request.read()) < 1_000:  # of the 1,500 that the body had
            if fault == "raises":
                raise ValueError("not foreseen")
            assert request.transport is not None
            request.transport.abort()
        answer = '{"Nodes":null,"NodeNames":[],"Error":""}'
        return web.Response(text=answer, content_type="application/json")

    with mock.patch("extender.app.Extender._answered", filtered):
        async with servers.extender(directory) as listening:
            yield listening
