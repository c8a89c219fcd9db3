"""Links from a Ray cluster to other pages, Ray's dashboard and Grafana for two, by templates."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from cli.endings import Unusable

SETTING: Final = "MUSTER_LINKS"
_FIELDS: Final = ("namespace", "name")
_FIELD: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r"[\w.-]{1,40}")
_SCHEMES: Final = ("http", "https")


@dataclass(frozen=True, slots=True)
class Link:
    """What a link is called, and the address with `{namespace}` and `{name}` in it."""

    name: str
    template: str

    def address(self, namespace: str, name: str) -> str:
        """Return the address for one cluster; what is filled in stays within its part of it."""
        values: Mapping[str, str] = {"namespace": namespace, "name": name}
        return _FIELD.sub(lambda found: quote(values[found[1]], safe=""), self.template)


def read_links(said: Iterable[str]) -> tuple[Link, ...]:
    """Read `NAME=TEMPLATE` each; raises Unusable, which names what is wrong."""
    return tuple(map(_link, said))


def _link(said: str) -> Link:
    name, equals, template = said.partition("=")
    if not equals or _NAME.fullmatch(name) is None:
        raise _wrong(said, "NAME=TEMPLATE, the name of letters, digits, '_', '.' and '-'")
    unknown = [each for each in _FIELD.findall(template) if each not in _FIELDS]
    if unknown or "{" in _FIELD.sub("", template) or "}" in _FIELD.sub("", template):
        raise _wrong(said, "{namespace} and {name}, and no other braces")
    link = Link(name, template)
    _check(said, link.address("namespace", "name"))
    return link


def _check(said: str, address: str) -> None:
    if not address.isprintable() or " " in address or "\\" in address:
        raise _wrong(said, "an address without spaces, backslashes and control characters")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _wrong(said, f"an address ({error})") from error
    if parts.scheme not in _SCHEMES or not host:
        raise _wrong(said, "an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _wrong(said, "an address without user and password: everyone sees it")


def _wrong(said: str, allowed: str) -> Unusable:
    return Unusable(f"{SETTING} or --link: {said!a}; allowed: {allowed}")
