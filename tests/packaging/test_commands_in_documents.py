"""Every command in the documents is one that its program takes.

A fenced block without a language is shell: commands, or a transcript whose typed lines begin with
`$ `. What is no command has a language: `text` for messages and outputs.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import click
import pytest
import yaml

from benchmarks.cases import CASES
from cli.__main__ import COMMANDS, main
from cli.lazy_group import behind_command
from tests.manifests.base import documents
from tests.packaging.shell_blocks import (
    DOCUMENTS,
    Command,
    commands,
    fenced,
    page_of,
    scripts,
    words_of,
)
from tests.packaging.test_documents import pages
from tests.packaging.tree import ROOT

MANIFESTS = [
    each
    for path in sorted((ROOT / "manifests").rglob("*.yaml"))
    for each in documents(path)
    if isinstance(each, dict)
]
VERBS = {
    *("apply", "create", "delete", "describe", "edit", "exec", "get", "label", "annotate", "logs"),
    *("diff", "patch", "port-forward", "rollout", "scale", "wait", "auth", "kustomize"),
}
ROLLOUTS = {"restart", "status", "undo"}
OF_KUBERNETES = {
    *("all", "configmap", "configmaps", "deployment", "deployments", "event", "events", "lease"),
    *("namespace", "node", "nodes", "pod", "pods", "secret", "serviceaccount", "service", "svc"),
    *("mutatingwebhookconfiguration", "mutatingwebhookconfigurations"),
    *("validatingwebhookconfiguration", "validatingwebhookconfigurations"),
    "clusterrolebinding",
    *("validatingadmissionpolicybinding", "validatingadmissionpolicybindings"),
    *("clusterqueues", "cohorts", "localqueues", "queues", "resourceflavors"),
    "workloadpriorityclasses",
}
OF_RAY = {f"ray{kind}{end}" for kind in ("cluster", "job", "service") for end in ("", "s")}
TAKEN_AS_THEY_ARE = {
    "helm": "make test-long renders and installs the chart with it",
    "docker": "pushes to a registry, which no test has",
    "kind": "needs Docker",
    "minikube": "needs Docker",
    "jq": "reads what muster prints",
    **dict.fromkeys(("mkdir", "cat", "sed", "umask", "for", "done"), "the shell's own, or POSIX"),
    "source": "runs a script that muster prints",
    "xargs": "runs what it is given",
}
"""Programs of which only the name is checked, with the reason."""


def kinds_served() -> set[str]:
    """What kubectl calls the kinds of Muster's definitions."""
    return {
        name
        for each in MANIFESTS
        if each.get("kind") == "CustomResourceDefinition"
        for names in (each["spec"]["names"],)
        for name in (names["plural"], names["singular"], *names.get("shortNames", ()))
    }


def check_muster(words: tuple[str, ...]) -> None:
    name, *arguments = behind_command(words[1:], COMMANDS)
    if name.startswith("-"):
        return
    command = main.get_command(click.Context(main), name)
    assert command is not None, f"no command {name}"
    command.make_context(name, [*arguments])


def check_kubectl(words: tuple[str, ...]) -> None:
    if words[1] == "muster":
        check_muster(words[1:])
        return
    options = dict(pairwise(words))
    verb, *names = _arguments(words[1:])
    assert verb in VERBS, verb
    if verb == "rollout":
        assert names.pop(0) in ROLLOUTS, words
    for option in ("-f", "-k"):
        path = options.get(option, "-")
        if path.startswith("manifests/"):
            assert (ROOT / path).exists(), path
    if not {"-f", "-k"} & {*words} and names:
        _check_kind(names[0])


_WITH_VALUE = frozenset(("-n", "-o", "-f", "-k", "-l", "-p", "--namespace", "--context", "--type"))


def _arguments(words: tuple[str, ...]) -> Iterator[str]:
    """What of a command line is no option, and not the value of one."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            return
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            yield word


def _check_kind(name: str) -> None:
    kind, slash, of = name.partition("/")
    known = OF_KUBERNETES | OF_RAY | kinds_served()
    assert {each.partition(".")[0] for each in kind.split(",")} <= known, name
    if slash and kind == "deployment":
        assert of in {each["metadata"]["name"] for each in MANIFESTS if "metadata" in each}, name


def check_make(words: tuple[str, ...]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (\S+)$", makefile, re.MULTILINE)
    for word in words[1:]:
        variable, equals, _ = word.partition("=")
        if equals:
            assert re.search(rf"\b{variable}\b", makefile), word
        else:
            assert word in targets, word


def check_python(words: tuple[str, ...]) -> None:
    """A module that exists, with options that its source names."""
    assert words[1] == "-m", words
    module, arguments = words[2], words[3:]
    spec = find_spec(module)
    assert spec is not None, f"no module {module}"
    if module == "pytest":
        assert all((ROOT / each).exists() for each in arguments if "/" in each), arguments
        return
    source = "\n".join(_sources(module))
    for each in arguments:
        option = each.strip("[]").partition("=")[0]
        if option.startswith("--"):
            assert f'"{option}"' in source, f"{module} has no option {option}"
    if module == "benchmarks":
        named = [each for each in arguments if re.fullmatch(r"[a-z][a-z-]+", each)]
        assert {*named} <= {*CASES}, named


def _sources(module: str) -> Iterator[str]:
    """The source of a module, or of all files of a package."""
    parts = module.replace(".", "/")
    for path in (ROOT / parts, ROOT / "dev" / parts):
        alone = path.with_suffix(".py")
        files = [alone] if alone.exists() else path.glob("*.py")
        yield from (each.read_text(encoding="utf-8") for each in files)


CHECKS: dict[str, Callable[[tuple[str, ...]], None]] = {
    "muster": check_muster,
    "kubectl": check_kubectl,
    "make": check_make,
    "python": check_python,
    ".venv/bin/python": check_python,
}
FOUND = [
    command
    for path in DOCUMENTS
    for script in scripts(path)
    for command in commands(page_of(path), script)
]


def test_there_are_commands_of_each_program() -> None:
    """Or the blocks are not read any more."""
    assert {each.program for each in FOUND} >= {*CHECKS} - {"python"}
    assert len(FOUND) > 40


@pytest.mark.parametrize("command", FOUND, ids=lambda each: f"{each.page}: {' '.join(each.words)}")
def test_a_command_of_a_page_is_taken_by_its_program(command: Command) -> None:
    check = CHECKS.get(command.program)
    if check is None:
        hint = "a block that is no command has the language text"
        assert command.program in TAKEN_AS_THEY_ARE, f"{command.program}: not known; {hint}"
        return
    check(command.words)


@pytest.mark.parametrize("path", DOCUMENTS, ids=page_of)
def test_the_shell_parses_the_blocks_of_a_page(path: Path) -> None:
    for script in scripts(path):
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)  # noqa: PLW1510
        assert (done.returncode, done.stderr) == (0, ""), script


@pytest.mark.parametrize("path", DOCUMENTS, ids=page_of)
def test_commands_in_the_prose_exist_with_their_options(path: Path) -> None:
    for word in words_of(path):
        first, _, rest = word.partition(" ")
        if first == "muster" and re.match(r"[a-z]+\b", rest):
            _check_options(rest.split())
        elif first == "make" and rest:
            check_make(tuple(shlex.split(word)))
        elif (
            first in ("python", ".venv/bin/python")
            and rest.startswith("-m ")
            and "NAME" not in rest
        ):
            check_python(tuple(word.split()))


def _check_options(words: list[str]) -> None:
    """Placeholders stand for values in the prose, so only names are looked at."""
    pair = " ".join(words[:2])
    name = pair if pair in COMMANDS else words[0]
    command = main.get_command(click.Context(main), name)
    assert command is not None, f"muster {name}: no such command"
    group = isinstance(command, click.Group)
    taken = {option for each in command.params for option in each.opts} | {"--help", "-h"}
    used = {each.strip("[]") for each in words[1:] if each.strip("[]").startswith("-")}
    assert group or used <= taken, f"muster {' '.join(words)}: {used - taken}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=page_of)
def test_overlays_of_a_page_take_from_manifests_what_is_there(path: Path) -> None:
    for block in (*fenced(path, "yaml"), *fenced(path, "")):
        for name in re.findall(r"\.\./(manifests/[\w/.-]+)", block):
            assert (ROOT / name).exists(), name


def test_the_site_has_a_part_for_each_reader() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    parts = {name: [*pages(part)] for each in nav[1:] for name, part in each.items()}
    assert parts.keys() == {"For users", "For operators", "For integrators", "How it works"}
    assert set(parts["For users"]) >= {"first-gang.md", "labels.md", "troubleshooting.md", "cli.md"}
    assert set(parts["For operators"]) >= {
        *("install.md", "failures.md", "extender.md", "metrics.md"),
    }
    assert set(parts["For integrators"]) >= {"coexistence.md", "comparison.md"}
