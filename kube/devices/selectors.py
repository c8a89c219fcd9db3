"""Evaluates selectors on devices: compiles each text once, and evaluates each device once.

Two devices that are equal in all that a text reads are one to it.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from kube.devices.cel.compiler import compiled
from kube.devices.cel.faults import CelError, NotReadable
from kube.devices.cel.parser import parse
from kube.devices.cel.reads import Reads, reads
from kube.devices.cel.scope import BUDGET, Budget, Run
from kube.devices.cel.values import Domains, quantity, version
from scheduling.model.devices.resource_slice import Attribute, AttributeKind, DeviceContent
from scheduling.model.devices.selectors import Answer

LONGEST: Final = 10 * 1024
"""The API server takes no longer selector (CELSelectorExpressionMaxLength)."""

STEPS: Final = 5_000
"""Steps of one evaluation, some 5 ms; real selectors take 5 to 50."""

TEXTS_KEPT: Final = 1_000
DEVICES_KEPT: Final = 50_000
"""Answers kept for one text. It reads few attributes, so few devices are distinct to it."""

ANSWERS_KEPT: Final = 1_000_000
"""Answers kept for all texts together: then all are forgotten, some 100 MB."""

UNREAD: Final = ""
"""The name of an attribute that says which of the others could not be read; it sorts first."""

UNREADABLE: Final = "an attribute or a capacity of the device cannot be read"


Reader = Callable[[DeviceContent], Hashable]


class CelSelectors:
    """The selectors of all claims and classes; it never raises, and bounds what it keeps."""

    def __init__(self, texts: int = TEXTS_KEPT, answers: int = ANSWERS_KEPT) -> None:
        self._texts: dict[str, Selector] = {}
        self._readers: dict[tuple[str, ...], tuple[Reader, ...]] = {}
        self._most = texts
        self._most_answers = answers

    def evaluate(self, selector: str, device: DeviceContent) -> Answer:
        """Return what a selector says of a device."""
        return self.of(selector).answer(device)

    def seen(
        self, selectors: tuple[str, ...], devices: Sequence[DeviceContent]
    ) -> Sequence[Hashable]:
        """Return all that selectors read of each device; None where some cannot be read."""
        readers = self._readers.get(selectors)
        if readers is None:
            what = frozenset(chain.from_iterable(self.of(each).reads for each in selectors))
            if len(self._readers) >= self._most:
                self._readers.clear()
            readers = self._readers[selectors] = tuple(map(_reader, sorted(what)))
        return [
            None if _unread(device) else tuple([read(device) for read in readers])
            for device in devices
        ]

    def fault(self, selector: str, device: DeviceContent) -> str:
        """Say why there is no answer; "" where there is one."""
        return self.of(selector).explain(device)

    def of(self, text: str) -> "Selector":
        """Return the selector of a text; the one that was made first makes way."""
        found = self._texts.get(text)
        if found is None:
            while len(self._texts) >= self._most:
                del self._texts[next(iter(self._texts))]
            found = self._texts[text] = Selector(text)
        return found

    def trim(self) -> None:
        """Forget all answers where there are too many; to be called between two cycles."""
        if sum(each.kept for each in self._texts.values()) > self._most_answers:
            for each in self._texts.values():
                each.forget()


class Selector:
    """One text, and its answers by what it reads of a device."""

    def __init__(self, text: str) -> None:
        self._code = compile_text(text)
        self._answers: dict[Hashable, Answer] = {}

    @property
    def reads(self) -> Reads:
        """What the text reads of a device; nothing where it says the same of all."""
        return self._code.reads

    @property
    def kept(self) -> int:
        """How many answers are kept."""
        return len(self._answers)

    def forget(self) -> None:
        """Forget all answers."""
        self._answers.clear()

    def answer(self, device: DeviceContent) -> Answer:
        """Return the answer for a device, evaluated once for all devices that read alike."""
        if self._code.run is None:
            return self._code.answer
        if _unread(device):
            return Answer.UNSUPPORTED
        key = _seen(self._code.reads, device)
        found = self._answers.get(key)
        if found is None:
            found, fault = self._evaluate(device)
            if fault is not UNREADABLE:
                self._keep(key, found)
        return found

    def _keep(self, key: Hashable, answer: Answer) -> None:
        if len(self._answers) >= DEVICES_KEPT:
            self._answers.clear()
        self._answers[key] = answer

    def explain(self, device: DeviceContent) -> str:
        """Say why there is no answer for a device; "" where there is one."""
        if self._code.run is None:
            return self._code.fault
        return _unread(device) or self._evaluate(device)[1]

    def _evaluate(self, device: DeviceContent) -> tuple[Answer, str]:
        assert self._code.run is not None, "what does not compile is not evaluated"
        try:
            seen = variables(device)
        except (CelError, NotReadable):
            return Answer.ERROR, UNREADABLE
        try:
            result = self._code.run({**seen, BUDGET: Budget(STEPS)})
        except NotReadable as fault:
            return Answer.UNSUPPORTED, str(fault)
        except CelError as fault:
            return Answer.ERROR, str(fault)
        if type(result) is not bool:
            return Answer.ERROR, "the result is neither true nor false"
        return (Answer.MATCHES if result else Answer.DOES_NOT_MATCH), ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A text that was compiled; without `run`, `answer` and `fault` hold for every device."""

    run: Run | None = None
    reads: Reads = frozenset()
    answer: Answer = Answer.UNSUPPORTED
    fault: str = ""


def compile_text(text: str) -> Compiled:
    """Compile a text; it never raises."""
    if len(text.encode("utf-8", "replace")) > LONGEST:
        return Compiled(fault=f"more than {LONGEST} bytes")
    try:
        tree = parse(text)
        return Compiled(compiled(tree), reads(tree))
    except NotReadable as fault:
        return Compiled(fault=str(fault))
    except CelError as fault:
        return Compiled(answer=Answer.ERROR, fault=str(fault))


# ---- devices as CEL sees them


def variables(device: DeviceContent) -> dict[str, Any]:
    """Return the fields of `device`; CelError where a value cannot be read."""
    attributes, capacity = Domains(), Domains()
    for name, attribute in device.attributes:
        domain, short = _qualified(name, device.driver)
        attributes.setdefault(domain, {})[short] = _value(attribute)
    for name, text in device.capacity:
        domain, short = _qualified(name, device.driver)
        capacity.setdefault(domain, {})[short] = _quantity(text)
    return {
        "driver": device.driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": attributes,
        "capacity": capacity,
    }


def _unread(device: DeviceContent) -> str:
    """Say which attribute of a device was not read; "" where all were."""
    first = device.attributes[:1]
    return str(first[0][1].value) if first and first[0][0] == UNREAD else ""


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, short = name.partition("/")
    return (domain, short) if slash else (driver, name)


def _value(attribute: Attribute) -> Any:
    match attribute.kind:
        case AttributeKind.BOOLEAN:
            return bool(attribute.value)
        case AttributeKind.VERSION:
            return version(str(attribute.value))
    return attribute.value


@lru_cache(maxsize=4096)
def _quantity(text: str) -> Any:
    return quantity(text)


def _seen(what: Reads, device: DeviceContent) -> Hashable:
    """Return all that a text reads of a device."""
    return tuple([_reader(each)(device) for each in what])


@lru_cache(maxsize=4096)
def _reader(path: tuple[str, ...]) -> Reader:
    """Return what reads this of a device."""
    match path:
        case ("driver",):
            return lambda device: device.driver
        case ("attributes", domain, name):
            whole = f"{domain}/{name}"
            return lambda device: device.attribute(whole)
        case ("attributes",):
            return lambda device: (device.attributes, device.driver)
        case ("capacity",):
            return lambda device: (device.capacity, device.driver)
    return lambda device: device.allow_multiple_allocations
