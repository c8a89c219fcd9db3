"""Reads forms as they are written on a command line: `workers,gpus=8,min=1,max=4`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cli.endings import Unusable
from cli.managing.forms import GroupForm, Target
from cli.managing.values import check_amount, check_count, check_name

_COUNTS: Final = {"replicas": 0, "min": 0, "max": 0, "hosts": 1, "gpus": 0}
"""Keys that are whole numbers, with the least of each."""

_AMOUNTS: Final = {"cpus": "cpu", "memory": "memory"}
_HEAD: Final = ("cpus", "memory", "gpus", "gpu", "image")
_GROUP: Final = ("replicas", "min", "max", "hosts", *_HEAD)


def read_head(text: str) -> GroupForm:
    """Read what the head is to get."""
    return GroupForm(**_fields("--head", text.split(","), _HEAD))


def read_groups(texts: Iterable[str]) -> tuple[GroupForm, ...]:
    """Read worker groups, each of a name of its own."""
    found = [_group(each) for each in texts]
    seen: set[str] = set()
    for each in found:
        if each.name in seen:
            raise Unusable(f"--group: {each.name} is there twice; allowed: each group once")
        seen.add(each.name)
    return tuple(found)


def _group(text: str) -> GroupForm:
    name, *rest = text.split(",")
    if "=" in name:
        raise Unusable(f'--group: "{text:.80}"; allowed: NAME,key=value,... with the name first')
    check_name("--group", name)
    return GroupForm(name=name, **_fields(f"--group {name}", rest, _GROUP))


def _fields(option: str, parts: Iterable[str], allowed: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in _pairs(option, parts):
        if key not in allowed:
            raise Unusable(f'{option}: "{key:.80}"; allowed: {", ".join(allowed)}')
        if key in found:
            raise Unusable(f"{option}: {key} is there twice; allowed: each once")
        found[key] = _value(f"{option}: {key}", key, value)
    return found


def _value(field: str, key: str, value: str) -> object:
    if key in _COUNTS:
        return check_count(field, value, _COUNTS[key])
    return check_amount(field, _AMOUNTS[key], value) if key in _AMOUNTS else value


def _pairs(option: str, parts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for each in parts:
        key, is_pair, value = each.partition("=")
        if not is_pair or not key:
            raise Unusable(f'{option}: "{each:.80}"; allowed: key=value')
        yield key, value


def read_map(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Read `key=value,key=value`; an empty value takes the key away."""
    return dict(_pairs(option, (part for text in texts for part in text.split(",") if part)))


def read_targets(texts: Iterable[str]) -> tuple[Target, ...]:
    """Read how many replicas groups are to have: `workers=4`, or `workers=1..8`."""
    found: Mapping[str, str] = read_map("GROUP=N", texts)
    return tuple(_target(group, count) for group, count in found.items())


def _target(group: str, count: str) -> Target:
    least, is_range, most = count.partition("..")
    low = check_count(group, least)
    high = check_count(group, most) if is_range else low
    if low > high:
        raise Unusable(f"{group}: {count}; allowed: MIN..MAX with MIN at most MAX")
    return Target(group, low, high)
