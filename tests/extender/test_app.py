"""Every caller gets the right answer over TLS: the scheduler, strangers, and malformed bodies."""

from __future__ import annotations

import asyncio
import json
import ssl
from datetime import UTC, datetime
from typing import Any, ClassVar
from unittest import mock

import aiohttp
import msgspec
import pytest
from aiohttp import http_writer, web_protocol
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from certs.chain import new_authority
from extender.filter import RESERVED
from extender.snapshot import Snapshot, WatchedPod
from kube.objects.core import Pod
from tests.extender.conftest import Pki, Served
from tests.extender.worlds import as_node, member, node, pinned, pod

Json = dict[str, Any]


class _Counting(http_writer.StreamWriter):
    """Notes how much each write to the connection holds."""

    writes: ClassVar[list[int]] = []

    def _write(self, chunk: Any) -> None:
        self.writes.append(len(chunk))
        super()._write(chunk)

    def _writelines(self, chunks: Any) -> None:
        kept = list(chunks)
        self.writes.append(sum(map(len, kept)))
        super()._writelines(kept)


def asked(found: Json, *names: str) -> Json:
    return {"Pod": found, "Nodes": None, "NodeNames": list(names)}


# ---- the scheduler


async def test_filter(served: Served) -> None:
    status, text = await served.post("filter", asked(pod("p", gpu=1), "a", "b"))
    assert status == 200
    assert json.loads(text) == {
        "Nodes": None,
        "NodeNames": ["b"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"a": RESERVED},
        "Error": "",
    }


async def test_prioritize(served: Served) -> None:
    status, text = await served.post("prioritize", asked(pod("p", gpu=1), "a", "b"))
    assert status == 200
    assert {each["Host"] for each in json.loads(text)} == {"a", "b"}


async def test_the_scores_are_ready_when_they_are_asked_for(served: Served) -> None:
    served.known.ledger.put_node(as_node(node("c")))
    _, text = await served.post("filter", asked(pod("p", gpu=1), "b", "a", "c"))
    left = json.loads(text)["NodeNames"]
    assert left == ["b", "c"]
    body = msgspec.json.encode(asked(pod("p", gpu=1), *left))
    with mock.patch("extender.app.scores") as scores:
        status, text = await served.post("prioritize", body)
    assert status == 200
    assert {each["Host"]: each["Score"] for each in json.loads(text)} == {"b": 10, "c": 0}
    scores.assert_not_called()


async def test_prioritize_of_a_pod_that_cannot_be_read(served: Served) -> None:
    odd = pod("p", cpu="much")  # type: ignore[arg-type]
    status, text = await served.post("prioritize", asked(odd, "a"))
    assert (status, json.loads(text)) == (200, [{"Host": "a", "Score": 0}])


async def test_preempt(served: Served) -> None:
    victims = {"a": {"Pods": [{"UID": "x"}], "NumPDBViolations": 0}}
    body = {"Pod": pod("p", gpu=8), "NodeNameToMetaVictims": victims}
    assert await served.post("preempt", body) == (200, '{"NodeNameToMetaVictims":{}}')


async def test_a_pod_that_preempts_is_not_in_flight(served: Served) -> None:
    await served.post("filter", asked(pod("p", gpu=1), "b"))
    assert len(served.in_flight_pods) == 1
    await served.post("preempt", {"Pod": pod("p", gpu=1), "NodeNameToMetaVictims": {}})
    assert len(served.in_flight_pods) == 0


async def test_what_is_passed_is_remembered_and_what_is_refused_too(served: Served) -> None:
    with_slot = member(pinned(pod("w", gpu=8), "a"))
    await served.post("filter", asked(with_slot, "a"))
    assert len(served.in_flight_pods) == 1
    await served.post("filter", asked(pod("p", gpu=1), "a"))
    assert len(served.unscheduled) == 1
    await served.post("filter", asked(pod("p", gpu=1), "b"))
    assert len(served.unscheduled) == 0


@pytest.mark.parametrize("nodes", [1, 500, 5000])
async def test_an_answer_leaves_in_one_write(served: Served, nodes: int) -> None:
    """Headers and body apart meet Nagle and the delayed acknowledgement: 46 ms for each pod."""
    body = asked(pod("p", gpu=1), *(f"gpu-node-{i:04}.example" for i in range(nodes)))
    await served.post("filter", body)  # opens the connection
    with mock.patch.object(web_protocol, "StreamWriter", _Counting):
        _Counting.writes.clear()
        status, text = await served.post("filter", body)
    assert status == 200
    assert len(_Counting.writes) == 1
    assert _Counting.writes[0] > len(text)  # the headers are in it


# ---- not yet, or not any more


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
async def test_an_extender_without_synced_watches_says_so(served: Served, verb: str) -> None:
    served.known.fresh = False
    status, text = await served.post(verb, asked(pod("p"), "a"))
    assert status == 503
    assert "a" not in text.split()


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
async def test_an_answer_that_took_too_long_is_none(served: Served, verb: str) -> None:
    with mock.patch.object(served.known, "ledger", Slow(served)):
        status, text = await served.post(verb, asked(pod("p", gpu=1), "a", "b"))
    assert (status, text) == (503, "not answered in time\n")
    assert (await served.post(verb, asked(pod("p", gpu=1), "a", "b")))[0] == 200


async def test_a_call_that_is_late_when_its_body_is_there_changes_nothing(served: Served) -> None:
    def trusted() -> bool:
        served.clock.now += served.settings.call_seconds + 1.0
        return True

    with mock.patch.object(served.known, "trusted", trusted):
        status, _ = await served.post("filter", asked(pod("p", gpu=1), "a"))
    assert status == 503
    assert not len(served.unscheduled)


class Slow:
    """A ledger from which a snapshot takes longer than a call may."""

    def __init__(self, served: Served) -> None:
        self._clock, self._ledger = served.clock, served.known.ledger
        self._takes = served.settings.call_seconds + 1.0

    def asked(self, found: Pod) -> WatchedPod:
        return self._ledger.asked(found)

    def snapshot(self) -> Snapshot:
        self._clock.now += self._takes
        return self._ledger.snapshot()


# ---- strangers


async def test_no_certificate_no_handshake(served: Served, pki: Pki) -> None:
    with pytest.raises(aiohttp.ClientError):
        await served.post("filter", asked(pod("p"), "a"), pki.stranger())


async def test_a_certificate_of_another_authority_is_refused(served: Served, pki: Pki) -> None:
    other = new_authority("other", datetime.now(UTC))
    with pytest.raises(aiohttp.ClientError):
        await served.post("filter", asked(pod("p"), "a"), pki.caller(authority=other))


async def test_another_name_is_refused(served: Served, pki: Pki) -> None:
    status, _ = await served.post("filter", asked(pod("p"), "a"), pki.caller("system:node:a"))
    assert status == 403


async def test_a_server_certificate_is_no_callers(served: Served, pki: Pki) -> None:
    context = pki.stranger()
    context.load_cert_chain(pki.directory / "tls.crt", pki.directory / "tls.key")
    with pytest.raises(aiohttp.ClientError):
        await served.post("filter", asked(pod("p"), "a"), context)


async def test_plain_http_is_no_handshake(served: Served) -> None:
    with pytest.raises(aiohttp.ClientError):
        await served.session.post(f"http://127.0.0.1:{served.port}/filter", data=b"{}")


async def test_a_silent_connection_is_closed(hasty: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hasty.port)
    assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.close()


async def test_a_body_that_does_not_come_is_not_waited_for(hasty: Served) -> None:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", hasty.port, ssl=hasty.caller, server_hostname="127.0.0.1"
    )
    writer.write(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
    assert b"408" in await asyncio.wait_for(reader.readline(), 60)
    writer.close()


# ---- anything else


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"<script>", 400),
        (b'{"Pod": {"metadata": {"uid": "<script>"}}}', 400),
        (b"x" * (256 * 1024 + 1), 413),
    ],
)
async def test_what_is_no_question(served: Served, body: bytes, status: int) -> None:
    answer = await served.post("filter", body)
    assert answer[0] == status
    assert "script" not in answer[1]


async def test_other_paths_and_methods(served: Served) -> None:
    assert (await served.post("bind", b"{}"))[0] == 404
    async with served.session.get(served.url("filter"), ssl=served.caller) as answer:
        assert answer.status == 405
    assert (await served.post("metrics", b""))[0] == 404


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.binary(max_size=200))
async def test_no_body_makes_it_fail(served: Served, data: bytes) -> None:
    for verb in ("filter", "prioritize", "preempt"):
        status, _ = await served.post(verb, data)
        assert 400 <= status < 500


async def test_a_bug_shows_no_trace(served: Served) -> None:
    with mock.patch.object(served.known, "ledger", None):
        status, text = await served.post("filter", asked(pod("p"), "a"))
    assert status == 500
    assert "Traceback" not in text
    assert "NoneType" not in text


async def test_two_hundred_at_once(served: Served) -> None:
    calls = [served.post("filter", asked(pod(f"p{i}", gpu=1), "a", "b")) for i in range(200)]
    answers = await asyncio.gather(*calls)
    assert {status for status, _ in answers} == {200}
    assert all(json.loads(text)["NodeNames"] == ["b"] for _, text in answers)


# ---- certificates


async def test_a_new_certificate_is_shown_without_a_restart(served: Served, pki: Pki) -> None:
    before = await _serial(served)
    pki.write()
    served.tls.refresh()
    assert await _serial(served) != before
    (pki.directory / "tls.key").write_text("half written")
    served.tls.refresh()
    assert served.tls.usable
    assert (await served.post("filter", asked(pod("p"), "b")))[0] == 200


async def test_callers_of_a_new_authority_are_admitted_beside_those_of_the_old(
    pki: Pki, served: Served
) -> None:
    following = new_authority("test-ca", datetime.now(UTC))
    caller = pki.caller(authority=following)
    question = asked(pod("p"), "b")
    with pytest.raises((OSError, aiohttp.ClientError)):
        await served.post("filter", question, caller)
    both = pki.authority.certificate + following.certificate
    (pki.directory / "ca.crt").write_bytes(both)
    served.tls.refresh()
    for each in (caller, served.caller):
        assert (await served.post("filter", question, each))[0] == 200


async def test_a_file_without_an_authority_leaves_the_one_before_in_use(
    pki: Pki, served: Served
) -> None:
    for content in (b"rubbish", b""):
        (pki.directory / "ca.crt").write_bytes(content)
        served.tls.refresh()
        assert (await served.post("filter", asked(pod("p"), "b")))[0] == 200
    (pki.directory / "ca.crt").unlink()
    served.tls.refresh()
    assert served.tls.usable
    assert (await served.post("filter", asked(pod("p"), "b")))[0] == 200


async def _serial(served: Served) -> object:
    _, writer = await asyncio.open_connection(
        "127.0.0.1", served.port, ssl=served.caller, server_hostname="127.0.0.1"
    )
    connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
    shown = connection.getpeercert()
    writer.close()
    assert shown is not None
    return shown["serialNumber"]
