"""The output is YAML that every reader takes alike, and a value cannot leave its comment."""

import msgspec
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli.imports.manifest import document, remarks
from cli.imports.outcome import Outcome
from kube.objects.queues.queue import (
    GangQueue,
    GangQueueSpec,
    QueueSelector,
    QueueSelectorRequirement,
)


def outcome_of(*specs: tuple[str, GangQueueSpec]) -> Outcome:
    outcome = Outcome()
    for name, spec in specs:
        outcome.add(name, spec)
    return outcome


def read_back(text: str) -> list[GangQueue]:
    return [msgspec.convert(each, GangQueue) for each in yaml.safe_load_all(text) if each]


def test_a_queue_is_written_without_its_defaults_and_after_its_parent() -> None:
    text = document(
        outcome_of(
            ("b", GangQueueSpec(parent="z", quota={"cpu": "500m", "memory": 4})),
            ("a", GangQueueSpec(parent="b", namespace_selector=QueueSelector())),
            ("z", GangQueueSpec()),
        )
    )
    assert text == (
        "---\napiVersion: muster.dev/v1alpha1\nkind: GangQueue\nmetadata:\n  name: z\n"
        "---\napiVersion: muster.dev/v1alpha1\nkind: GangQueue\nmetadata:\n  name: b\n"
        "spec:\n  parent: z\n  quota:\n    cpu: 500m\n    memory: 4\n"
        "---\napiVersion: muster.dev/v1alpha1\nkind: GangQueue\nmetadata:\n  name: a\n"
        "spec:\n  parent: b\n  namespaceSelector: {}\n"
    )


TEXTS = st.one_of(
    st.text(max_size=20), st.sampled_from(["on", "No", "1e3", "0x1f", "1_0", "~", "null", "12:30"])
)


@given(TEXTS, TEXTS, st.sampled_from(["1", "1e3", "500m", "1E", ".5", 7]))
def test_whatever_texts_are_in_it_comes_back_as_it_was(key: str, text: str, amount: str) -> None:
    spec = GangQueueSpec(
        quota={key: amount},
        node_selector={key: text},
        namespace_selector=QueueSelector(
            match_labels={key: text},
            match_expressions=(QueueSelectorRequirement(key, "In", (text,)),),
        ),
    )
    (found,) = read_back(document(outcome_of(("q", spec))))
    assert found.spec == spec


def test_texts_that_other_readers_of_yaml_take_for_something_else_are_quoted() -> None:
    """Such as kubectl, to which 1e3 is a number and on is true."""
    odd = ["1e3", "on", "Y", "0x1f", "012", "1_000", "12:30", "2024-01-01", "~", ".5", "1E"]
    text = document(outcome_of(("q", GangQueueSpec(quota=dict.fromkeys(odd, 0)))))
    assert [each for each in odd if f'    "{each}": 0\n' not in text] == []


def test_no_value_ends_its_comment() -> None:
    """Labels of others' objects are printed in comments of what an administrator applies."""
    evil = "x\n---\napiVersion: v1\nkind: Secret\u2028#\r\x1b[2K\x85y"
    outcome = outcome_of(("q", GangQueueSpec()))
    outcome.leave_out(evil, evil, evil, evil)
    outcome.advise(evil, evil, evil, "do it")
    text = document(outcome)
    comments, _, rest = text.partition("---\n")
    assert [line[:2] for line in comments.splitlines()] == ["# ", "# "]
    assert len(read_back(text)) == 1
    assert rest.count("---") == 0
    assert all(line.isprintable() for line in remarks(outcome))


def test_long_values_are_cut() -> None:
    outcome = Outcome()
    outcome.leave_out("o", "f", "x" * 10_000, "why")
    (line,) = remarks(outcome)
    assert line == f"left out: o: f = {'x' * 200}...: why"
