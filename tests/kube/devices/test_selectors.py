"""Selectors of devices: the answers of kube-scheduler's own evaluator, and what bounds ours.

selectors.json holds expressions, devices and what Kubernetes 1.37.2 answers: of the table in
k8s.io/dynamic-resource-allocation/cel, and of random expressions. record_cel.go.txt wrote it.
"""

import contextlib
import json
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.devices.cel.faults import CelError, NotReadable
from kube.devices.cel.parser import parse
from kube.devices.cel.reads import reads
from kube.devices.cel.scope import BUDGET, Budget
from kube.devices.cel.values import Domains, Quantity, quantity, version
from kube.devices.selectors import LONGEST, STEPS, CelSelectors, Selector, compile_text
from scheduling.model.devices.resource_slice import Attribute, AttributeKind, DeviceContent
from scheduling.model.devices.selectors import Answer

RECORDED = json.loads(Path(__file__).with_name("selectors.json").read_text())
NO_FUNCTION = "'1'.find('[0-9]*')"


def attribute(written: dict[str, Any]) -> Any:
    kind, value = next(iter(written.items()))
    if kind.startswith("version"):
        return [version(each) for each in value] if kind == "versions" else version(value)
    return value


def by_domain(named: dict[str, Any], driver: str) -> Domains:
    found = Domains()
    for name, value in named.items():
        domain, _, short = name.rpartition("/")
        found.setdefault(domain or driver, {})[short] = value
    return found


def answered(expression: str, device: dict[str, Any]) -> str:
    """Evaluate with lists as well, which devices of the core have not."""
    code = compile_text(expression)
    if code.run is None:
        return "unsupported" if code.answer is Answer.UNSUPPORTED else "error"
    driver = device.get("driver", "")
    attributes = {n: attribute(a) for n, a in device.get("attributes", {}).items()}
    capacity = {n: quantity(c["value"]) for n, c in device.get("capacity", {}).items()}
    variables = {
        "driver": driver,
        "allowMultipleAllocations": device.get("allowMultipleAllocations", False),
        "attributes": by_domain(attributes, driver),
        "capacity": by_domain(capacity, driver),
    }
    try:
        result = code.run({**variables, BUDGET: Budget(STEPS)})
    except NotReadable:
        return "unsupported"
    except CelError:
        return "error"
    return str(result).lower() if isinstance(result, bool) else "error"


@pytest.mark.parametrize("part", ["table", "random"])
def test_answers_are_those_of_kubernetes(part: str) -> None:
    devices = RECORDED["devices"]
    ours = [(c, answered(c["expression"], devices[c["device"]])) for c in RECORDED[part]]
    wrong = [(c, a) for c, a in ours if a not in (c["answer"], "unsupported")]
    left_out = [c["expression"] for c, a in ours if a == "unsupported"]
    assert wrong == []
    if part == "table":
        assert len(ours) == 71
        assert [each for each in left_out if "find(" not in each] == []
        assert len(left_out) == 1
    else:
        assert len(left_out) < len(ours) / 8


# ---- devices


def device(**attributes: str | int) -> DeviceContent:
    def value(given: str | int) -> Attribute:
        if isinstance(given, bool):
            return Attribute(AttributeKind.BOOLEAN, int(given))
        kind = AttributeKind.STRING if isinstance(given, str) else AttributeKind.INTEGER
        return Attribute(kind, given)

    return DeviceContent(
        "gpu.example.com",
        tuple(sorted((name, value(given)) for name, given in attributes.items())),
        (("memory", "80Gi"),),
    )


OF_GPU = 'device.attributes["gpu.example.com"]'


@pytest.mark.parametrize(
    ("text", "answer", "said"),
    [
        (f'{OF_GPU}.model == "H100"', Answer.MATCHES, ""),
        (f'{OF_GPU}.model == "A100"', Answer.DOES_NOT_MATCH, ""),
        (f"{OF_GPU}.other == 1", Answer.ERROR, "no such key"),
        ("device.driver ==", Answer.ERROR, "'end' stands where a value is expected"),
        ("device.driver == 1", Answer.ERROR, "no such overload of =="),
        ("gpu.driver == ''", Answer.ERROR, "the name gpu is not declared"),
        ("sets.contains([1], [1])", Answer.UNSUPPORTED, "the name sets"),
        ("device.colour == 1", Answer.ERROR, "a device has no field colour"),
        (f"{OF_GPU}.healthy", Answer.MATCHES, ""),
        (f"{OF_GPU}.model", Answer.ERROR, "the result is neither true nor false"),
        (NO_FUNCTION + ' == ""', Answer.UNSUPPORTED, "the function find"),
        (f'{OF_GPU}.?model.orValue("") == ""', Answer.UNSUPPORTED, "optional values"),
        (f"{OF_GPU}.index > 0.5", Answer.UNSUPPORTED, "numbers with a fraction"),
        ("x" * (LONGEST + 1), Answer.UNSUPPORTED, f"more than {LONGEST} bytes"),
        ("(" * 60 + "true" + ")" * 60, Answer.UNSUPPORTED, "more than 40 levels of nesting"),
    ],
)
def test_an_answer_says_why_there_is_none(text: str, answer: Answer, said: str) -> None:
    selectors, gpu = CelSelectors(), device(model="H100", healthy=True, index=1)
    assert selectors.evaluate(text, gpu) is answer
    assert selectors.fault(text, gpu) == said


@pytest.mark.parametrize(
    "text",
    [
        f'device.driver == "gpu.example.com" && {OF_GPU}.type == "gpu"',
        f'{OF_GPU}.productName.lowerAscii().matches("^.*h100.*$")',
        f'{OF_GPU}["productName"].contains("H100") && !({OF_GPU}.index in [5, 7])',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
        f'"healthy" in {OF_GPU} ? {OF_GPU}.healthy : false',
        f'has({OF_GPU}.type) && {OF_GPU}.productName.split(" ")[0] == "NVIDIA"',
        'cel.bind(g, device.attributes["gpu.example.com"], g.index % 2 == 1 && g.type != "mig")',
        '!("mig" in device.attributes["other.example.com"])',
    ],
)
def test_selectors_as_users_write_them_are_read(text: str) -> None:
    gpu = device(type="gpu", productName="NVIDIA H100 80GB", index=3, healthy=True)
    assert CelSelectors().evaluate(text, gpu) is Answer.MATCHES


def test_what_cannot_be_read_is_passed_over_only_where_the_rest_decides() -> None:
    selectors, gpu = CelSelectors(), device(model="H100")
    unreadable = f'{OF_GPU}.model.matches("(a*)*")'
    assert selectors.evaluate(f"{unreadable} || true", gpu) is Answer.MATCHES
    assert selectors.evaluate(f"{unreadable} && false", gpu) is Answer.DOES_NOT_MATCH
    assert selectors.evaluate(f"{unreadable} || false", gpu) is Answer.UNSUPPORTED
    assert selectors.evaluate(f"{OF_GPU}.none || {unreadable}", gpu) is Answer.UNSUPPORTED


TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


@pytest.mark.parametrize(
    "text",
    [
        # What is out of bounds is never absorbed: Kubernetes' own limit is not, either.
        f"{TEN}.all(x, {TEN}.all(y, {TEN}.all(z, x + y + z > 0))) || true",
        "cel.bind(a, 'xxxxxxxxxx', " * 12 + "a.size() > 0" + ")" * 12,
        "".join(f"cel.bind(a{n}, a{n - 1} + a{n - 1}, " for n in range(1, 30)).replace(
            "a0", "'xxxxxxxx'"
        )
        + "true"
        + ")" * 29,
        f'{TEN}.all(x, {TEN}.all(y, {OF_GPU}.model.matches(".*.*x")))',
    ],
)
def test_time_and_memory_of_an_evaluation_are_bounded(text: str) -> None:
    selector, gpu = Selector(text), device(model="x" * 64)
    started = perf_counter()
    answer = selector.answer(gpu)
    assert perf_counter() - started < 2
    assert answer in (Answer.UNSUPPORTED, Answer.MATCHES)
    if TEN in text:
        assert (answer, selector.explain(gpu)) == (
            Answer.UNSUPPORTED,
            "more steps than one evaluation is given",
        )


# ---- what is kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f'{OF_GPU}.model == "H100"', 1),
        (f'{OF_GPU}["uuid"] != "1"', 100),
        (f'cel.bind(g, {OF_GPU}, g.model == "H100" && g.index >= 0)', 8),
        (f'"model" in {OF_GPU}', 100),
        ('device.driver == "gpu.example.com"', 1),
    ],
)
def test_devices_alike_in_what_is_read_are_asked_once(text: str, kept: int) -> None:
    selector = Selector(text)
    for number in range(100):
        content = device(model="H100", uuid=str(number), index=number % 8)
        assert selector.answer(content) is not Answer.ERROR
    assert selector.kept == kept


def test_a_variable_of_a_loop_that_hides_another_reads_no_less() -> None:
    tree = parse(f'cel.bind(g, {OF_GPU}, [1].all(g, g == 1) && g["a"] == 1)')
    assert ("attributes", "gpu.example.com", "a") in reads(tree)


def test_texts_and_answers_are_bounded() -> None:
    selectors = CelSelectors(texts=2, answers=3)
    gpus = [device(uuid=str(number)) for number in range(4)]
    texts = [f'{OF_GPU}.uuid == "{number}"' for number in range(3)]
    asked = [selectors.evaluate(text, gpu) for text in texts for gpu in gpus]
    assert [a is Answer.MATCHES for a in asked] == [n == g for n in range(3) for g in range(4)]
    assert selectors.of(texts[1]).kept == 4
    selectors.trim()
    assert selectors.of(texts[1]).kept == 0
    assert selectors.of(texts[0]).kept == 0  # the oldest text made way, and is compiled anew


def test_a_device_that_cannot_be_read_is_an_error_for_itself_alone() -> None:
    broken = DeviceContent("d", (("v", Attribute(AttributeKind.VERSION, "one")),))
    selectors = CelSelectors()
    assert selectors.evaluate("device.driver == 'd'", broken) is Answer.ERROR
    assert selectors.evaluate("device.driver == 'd'", DeviceContent("d")) is Answer.MATCHES


# ---- junk


@given(st.text(alphabet="device.atrbus[]()\"'&|!=<>+-*/%?:,0123 \\x{}`\u00e9", max_size=60))
def test_no_text_raises(text: str) -> None:
    CelSelectors().evaluate(text, device(model="H100"))


@given(st.text(max_size=20))
def test_any_string_is_no_quantity_or_one(text: str) -> None:
    with contextlib.suppress(CelError, NotReadable):
        assert isinstance(quantity(text), Quantity)


def test_quantities_are_exact() -> None:
    assert quantity("1500m").amount == Fraction(3, 2)
    assert quantity("1Ki") == quantity("1024") < quantity("1.1e3")
    assert quantity("1E") < quantity("1Ei")
