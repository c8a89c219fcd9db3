"""The image is built as it should be. There may be no engine, so its text is judged."""

import re

import pytest

from tests.packaging.image_root import Step, said, stages
from tests.packaging.tree import ROOT, programs


@pytest.fixture
def last() -> list[Step]:
    return stages()[-1]


def test_the_last_stage_runs_nothing_and_copies_what_was_made(last: list[Step]) -> None:
    assert len(stages()) > 1
    assert said(last, "RUN") == []
    assert said(last, "ADD") == []
    assert said(last, "COPY") == ["--from=build /opt/muster /opt/muster"]


def test_it_is_built_on_a_slim_image_with_a_tag() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE_IMAGE=python:3\.\d+-slim$", text, flags=re.MULTILINE)
    for stage in stages():
        assert said(stage, "FROM")[0].startswith("${BASE_IMAGE}")


def test_it_runs_as_a_numeric_user_that_is_not_root(last: list[Step]) -> None:
    (user,) = said(last, "USER")
    assert all(int(number) > 0 for number in user.split(":"))


def test_a_program_is_one_word(last: list[Step]) -> None:
    assert said(last, "ENTRYPOINT") == ['["python", "-m"]']
    assert said(last, "CMD") == ['["coordinator"]']
    assert said(last, "HEALTHCHECK") == []


def test_nothing_is_compiled_or_installed_without_its_hash() -> None:
    commands = [run for stage in stages() for run in said(stage, "RUN")]
    assert not [run for run in commands if re.search(r"\bapt\b|apt-get|apk|curl|wget|gcc", run)]
    for run in commands:
        if " install " in run:
            hashed = "--require-hashes" in run and "--only-binary :all:" in run
            ours = "--no-index" in run and "--no-deps" in run
            assert hashed or ours, run


def test_every_program_is_copied_and_nothing_else() -> None:
    given = (
        {"pyproject.toml", "README.md", "LICENSE"}
        | {"requirements/build.txt", "requirements/runtime.txt"}
        | set(programs())
    )
    copied = [rest.split()[:-1] for rest in said(stages()[0], "COPY")]
    assert {name for names in copied for name in names} == given

    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in ignore if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == given
    first_last = max(i for i, rule in enumerate(rules) if rule.startswith("!"))
    for secret in ("**/*.key", "**/*.pem", "**/*.crt", "**/*.p12", "**/kubeconfig"):
        assert rules.index(secret) > first_last  # the last rule that matches decides
