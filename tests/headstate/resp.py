"""Servers that speak as much of Redis as the program asks for, where there is no Redis."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

HOST = "127.0.0.1"
INFO = "role:master\r\nused_memory:1024\r\nmaxmemory:4096\r\nmaster_repl_offset:10\r\n"


class FakeRedis:
    """Three servers with users of their own and keys in common, and three Sentinels."""

    def __init__(self) -> None:
        self._listening = [_Listening(self) for _ in range(6)]
        self.servers = [each.name for each in self._listening[:3]]
        self.sentinels = [each.name for each in self._listening[3:]]
        self.users: dict[str, dict[str, str]] = {each.name: {} for each in self._listening}
        self.keys: set[str] = set()
        self.password = ""
        self.gone = False
        """Whether all of them close each connection that asks for something."""

    def answer(self, at: str, words: list[str]) -> Any:
        """What a server says; None for an error."""
        command, rest = words[0].upper(), words[1:]
        if command == "AUTH":
            return "OK" if rest == ["muster", self.password] else None
        if command == "ACL":
            return self._acl(self.users[at], rest[0].upper(), rest[1:])
        if command == "UNLINK":
            gone = self.keys & {*rest}
            self.keys -= gone
            return len(gone)
        fixed = {
            "PING": "PONG",
            "CLIENT": "OK",
            "CONFIG": "OK",
            "INFO": INFO,
            "SENTINEL": self.servers[0].split(":"),
            "SCAN": ["0", sorted(self.keys)],
            "MEMORY": 100,
        }
        return fixed[command]

    def _acl(self, users: dict[str, str], what: str, words: list[str]) -> Any:
        match what:
            case "USERS":
                return [*users]
            case "LIST":
                return [f"user {name} {rule}" for name, rule in users.items()]
            case "SETUSER":
                users[words[0]] = " ".join(words[1:])
            case "DELUSER":
                for each in words:
                    users.pop(each, None)
        return "OK"

    def close(self) -> None:
        for each in self._listening:
            each.close()


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        while line := self.rfile.readline():
            words = [self._word() for _ in range(int(line[1:]))]
            if self.server.redis.gone:
                return
            said = self.server.redis.answer(self.server.name, words)
            self.wfile.write(b"-WRONGPASS not that\r\n" if said is None else _encoded(said))

    def _word(self) -> str:
        size = int(self.rfile.readline()[1:])
        return self.rfile.read(size + 2)[:-2].decode()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    redis: FakeRedis
    name: str


class _Listening:
    def __init__(self, redis: FakeRedis) -> None:
        self._server = _Server((HOST, 0), _Handler)
        self.name = self._server.name = f"{HOST}:{self._server.server_address[1]}"
        self._server.redis = redis
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _encoded(said: Any) -> bytes:
    if isinstance(said, int):
        return f":{said}\r\n".encode()
    if isinstance(said, list):
        return f"*{len(said)}\r\n".encode() + b"".join(map(_encoded, said))
    return f"${len(said.encode())}\r\n{said}\r\n".encode()


@contextmanager
def fake_redis() -> Iterator[FakeRedis]:
    found = FakeRedis()
    try:
        yield found
    finally:
        found.close()
