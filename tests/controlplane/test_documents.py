"""The shell commands of README.md and of the pages below docs/ are run, and end as the pages say.

On one control plane with Muster installed by the first block of docs/install.md; kwok plays the
installation's pods, and the programs run beside it. What would change the installation is sent as
a dry run on the server. A command that cannot be run here is in `NOT_RUN`, with the reason. The
tutorials are walked instead, for real: test_walks.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import yaml

from cli.endings import FINE, INTERRUPTED, NO, WRONG_USE
from cli.imports.systems import SYSTEMS, System
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.muster import NAMESPACE, start_muster
from testbed.nodes import GPU, NodeSpec, copies
from testbed.options import Options
from testbed.waiting import wait_until
from tests.cli.imports import test_mcad, test_volcano
from tests.controlplane.site import Site, equipped
from tests.controlplane.walk import WALKED
from tests.packaging.shell_blocks import DOCUMENTS, commands, fenced, page_of, scripts, words_of
from tests.packaging.tree import ROOT

TEAM, SPARE = "team", "spare"
PAGES = [
    each
    for each in DOCUMENTS
    if page_of(each).startswith(("README", "docs/")) and each.parent.name != "decisions"
    if each not in WALKED
]
NOT_RUN = {
    "make": "runs the tests, builds or measures",
    "docker": "pushes to a registry, which no test has",
    "helm": "tests/charts installs the chart, with the Helm of make test-long",
    "python": "measures for minutes, or makes other control planes: the tests and benchmarks do",
    ".venv/bin/python": "the same",
    "kubectl krew": "tests/download holds the manifest against the rules of krew",
    "kubectl logs": "kwok's pods write none",
    "kubectl rollout": "restart has no dry run, and kwok's pods end no rollout",
    "kubectl exec": "nothing runs in kwok's pods",
    "kubectl token": "a token has no dry run",
    "kubectl ray": "another plugin of kubectl",
    "muster logs": "kwok's pods write none: test_real_jobs.py reads those of real ones",
    "muster redis": "of a component of its own: make test-redis installs it",
}
"""By program, or kubectl's verb."""

_ELSEWHERE = "of another overlay: tests/controlplane/test_overlays.py installs and removes it"
NOT_HERE = {
    'kubectl create -k "github.com/ray-project/kuberay/ray-operator/config/default?ref=v1.6.2"': (
        "downloads KubeRay, which the testbed has built"
    ),
    "kubectl -n team patch raycluster train --type=json \\\n"
    """  -p '[{"op": "remove", "path": "/metadata/finalizers"}]'""": (
        "for a RayCluster whose Redis is gone for good: make test-redis"
    ),
    "kubectl delete mutatingadmissionpolicybinding muster-gate": _ELSEWHERE,
    "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration "
    "muster-app-wrapper": _ELSEWHERE,
}
"""Single commands."""

ENDS: dict[str, int] = {
    # Nobody is there to ask, and without that they need --yes.
    "muster release --all": WRONG_USE,
    "muster release team/train": WRONG_USE,
    "muster release": WRONG_USE,
    "muster suspend team/train": WRONG_USE,
    "muster suspend team/two": WRONG_USE,
    "muster delete team/train": WRONG_USE,
    "muster delete lab/forgotten": WRONG_USE,
    "muster delete --job team/nightly": WRONG_USE,
    "muster edit team/train --delete-pod train-workers-worker-x7k2p": WRONG_USE,
    "muster uninstall": WRONG_USE,
    "muster uninstall --keep-crds": WRONG_USE,
    # It is there, and is left as it is.
    "kubectl create -f manifests/app-wrapper/crds": 1,
    # A dry run leaves the binding there that the command before it deletes.
    "kubectl delete gangqueues --all": 1,
    # It is there: the dry run before it took nothing away.
    "kubectl create -f queue.yaml": 1,
    # No certificate: nothing runs in the pods that kwok plays.
    "muster doctor": NO,
    # What it shows differs: here the API server calls the webhook on loopback.
    "kubectl diff -k overlay": 1,
    "muster status --watch --interval 5": INTERRUPTED,
    "muster dashboard": INTERRUPTED,
    "muster dashboard --link 'ray=https://ray.example.com/{namespace}/{name}/'": INTERRUPTED,
    "muster dashboard --link 'grafana=https://grafana.example.com/d/ray?var-namespace={namespace}"
    "&var-cluster={name}'": INTERRUPTED,
    # Those before it in the queue wait for the same nodes.
    "muster create -f train-2.yaml --if-fits": NO,
    # Nothing runs in the submitter's pod.
    "muster submit team/nightly --like train --retries 2 --follow -- python train.py": INTERRUPTED,
}
"""How a command ends otherwise than with 0."""

FILLED = {
    "NAMESPACE/NAME": "team/tune",
    "[NAMESPACE/]NAME": "team/tune",
    "raycluster NAME": "raycluster train",
    "gangqueue NAME": "gangqueue research",
    "pod NAME": "pod $(kubectl get pods -l ray.io/cluster=tune -o name | sed -n '1s,pod/,,p')",
    "[[NAMESPACE/]GANG]": "",
    "[NAME]": "",
    "NAME": "tune",
    "[REASON]": "",
    "REASON": "Pending",
    "-f FILE": "-f train.yaml",
    "SYSTEM": "kueue",
    "SHELL": "bash",
}
"""What placeholders stand for, in this order."""

INSTEAD = {
    "muster release -n team --yes": f"muster release -n {SPARE} --yes",
    "muster queue tune": "muster queue research",
    "muster why team/two": "muster why team/tune",
    "muster release -n team": f"muster release -n {SPARE} --dry-run",
}
"""Names that there are, and another namespace where a command really writes."""

RENAMED = {
    "docs/defragmentation.md": {"team/large": "team/tune", "team/two": "team/eval"},
    "docs/managing.md": {
        "team/train ": "team/made ",
        "train-workers-worker-x7k2p": "$(kubectl get pods -o name "
        "-l ray.io/cluster=made,ray.io/group=workers | sed -n '1s,pod/,,p')",
        "-f train.yaml": "-f made.yaml",
    },
    "docs/roles.md": {
        "muster edit team/train --queue": "muster edit team/eval --queue",
        "team/train ": "team/given ",
        "team/nightly": "team/weekly",
        "queue create research": "queue create trial",
        "team,lab": "trial",
        "queue edit research": "queue edit trial",
    },
}
"""By page, names in the place of those that are there already, or are not."""

MENTIONED = re.compile(
    r"(muster (why|fit|import( volcano)?|create( --like| --fault-tolerance| NEW --like OLD)?|edit|"
    r"scale|submit|what-if|queue create)|kubectl (apply( -k)?|describe( (node|gang|raycluster))?|"
    r"replace( -f)?|delete (job )?--cascade=orphan))$"
)
"""In the prose the names of commands, not commands."""


# ---- the installation


def workplace(parent: Path) -> Path:
    """A checkout with an overlay, and the files that the pages name."""
    at = Path(tempfile.mkdtemp(dir=parent))
    shutil.copytree(ROOT / "manifests", at / "manifests")
    (at / "overlay").mkdir()
    text = {"resources": ["../manifests/overlays/self-signed"]}
    (at / "overlay" / "kustomization.yaml").write_text(yaml.safe_dump(text))
    for name in ("train", "train-2"):
        (at / f"{name}.yaml").write_text(yaml.safe_dump(train(name)))
    made = train("made", 4)
    made["spec"]["workerGroupSpecs"][0]["groupName"] = "workers"
    (at / "made.yaml").write_text(yaml.safe_dump(made))
    shown = trustme.CA().issue_cert("muster.example.com")
    shown.cert_chain_pems[0].write_to_path(str(at / "tls.crt"))
    shown.private_key_pem.write_to_path(str(at / "tls.key"))
    queue = test_volcano.queue("a", deserved={"cpu": 8})
    (at / "queues-of-volcano.yaml").write_text(yaml.safe_dump(queue))
    return at


def train(name: str = "train", workers: int = 2, namespace: str = TEAM) -> Json:
    """The RayCluster of docs/first-gang.md, with so many workers."""
    (text,) = fenced(ROOT / "docs" / "first-gang.md", "yaml")
    found: Json = yaml.safe_load(text)
    found["metadata"].update(name=name, namespace=namespace)
    (group,) = found["spec"]["workerGroupSpecs"]
    group.update(replicas=workers, minReplicas=workers, maxReplicas=workers)
    return found


def definition(system: System, kind: str, plural: str) -> Json:
    """A definition of another system's kind, which takes everything."""
    version = {"mcad": "v1alpha1", "kueue": "v1beta1", "volcano": "v1beta1"}
    (name,) = (name for name, each in SYSTEMS.items() if each == system)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version[name], "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{system.group}"},
        "spec": {
            "group": system.group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def populate(site: Site) -> None:
    """Gangs that run and wait, queues, and what other systems' queues there are."""
    cluster = site.cluster
    for name in (TEAM, SPARE, "lab"):
        cluster.create_namespace(name)
    cluster.create_priority_class({"name": "high"}, 1000)
    cluster.create_priority_class({"name": "training"}, 100)
    here = {"matchLabels": {"kubernetes.io/metadata.name": TEAM}}
    queue = {"apiVersion": "muster.dev/v1alpha1", "kind": "GangQueue"}
    spec = {"quota": {GPU: 64}, "namespaceSelector": here}
    systems = [
        definition(system, kind, plural)
        for system in SYSTEMS.values()
        for kind, plural in system.kinds.items()
    ]
    apply(site, *systems)
    for each in systems:
        site.cluster.kubectl(
            *("wait", "--for=condition=Established", f"crd/{each['metadata']['name']}")
        )
    forgotten = train("forgotten", 0, "lab")
    forgotten["spec"]["workerGroupSpecs"] = []
    flavor = {"flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 8}]}]}
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": {"name": "q", "namespace": TEAM}}
    groups = {"resourceGroups": [{"coveredResources": ["cpu"], **flavor}]}
    apply(
        site,
        {**queue, "metadata": {"name": "research"}, "spec": spec},
        {**queue, "metadata": {"name": "company"}, "spec": {"quota": {GPU: 64}}},
        {**kueue, "kind": "ClusterQueue", "spec": {"namespaceSelector": {}, **groups}},
        {**kueue, "kind": "ResourceFlavor", "metadata": {"name": "f", "namespace": TEAM}},
        test_mcad.subtree("root", test_mcad.child("company", cpu=8)),
        train(),
        train("tune", 4),
        train("eval", 4),
        train("other", 1, SPARE),
        forgotten,
        extender_secret(),
    )
    wait_until(lambda: phase(site, "train") == "Running", "the first gang to run")
    wait_until(lambda: phase(site, "tune") == "Queued", "the second gang to wait")


def extender_secret() -> Json:
    """What certs writes for the extender, which no overlay here has."""
    metadata = {"name": "muster-extender-tls", "namespace": NAMESPACE}
    data = dict.fromkeys(("ca.crt", "client.crt", "client.key"), "bXVzdGVy")
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def apply(site: Site, *objects: Json) -> None:
    site.cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))


def phase(site: Site, name: str) -> str:
    path = ("get", "gang", name, "-n", TEAM, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
    return site.cluster.kubectl(*path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("documents")
    with Cluster.start(folder / "root", Options()) as cluster:
        cluster.add_nodes([*copies(NodeSpec("gpu", cpus=96, memory="768Gi", gpus=8), 5)])
        site = equipped(cluster, folder / "site", TEAM)
        first, *_ = scripts(ROOT / "docs" / "install.md")
        at = workplace(site.folder)
        shutil.rmtree(at / "overlay")
        for each in statements(first):
            if not reason_not_to_run(each):
                done = site.run(each, at, FOR_REAL="yes")
                assert done.returncode == FINE, (each, done.stdout, done.stderr)
        cluster.kubectl("create", "-f", str(ROOT / "manifests" / "app-wrapper" / "crds"))
        # The testbed applies these on the server's side, under another manager of fields.
        cluster.kubectl(
            "delete", "validatingadmissionpolicies,mutatingwebhookconfigurations", "--all"
        )
        start_muster(cluster)
        # Otherwise what is applied next would add a Service to the address on loopback.
        name = "mutatingwebhookconfiguration/muster-webhook"
        written = yaml.safe_load(cluster.kubectl("get", name, "-o", "yaml"))
        written["metadata"] = {"name": written["metadata"]["name"]}
        how = ("apply", "set-last-applied", "--create-annotation", "-f", "-")
        cluster.kubectl(*how, input=yaml.safe_dump(written))
        populate(site)
        yield site
    cluster.remove_data()


# ---- the commands


def statements(script: str) -> Iterator[str]:
    """The commands of a script, each with its continuation lines and here-documents."""
    kept = ""
    for line in script.splitlines():
        kept = f"{kept}\n{line}" if kept else line
        if is_whole(kept):
            if kept.strip():
                yield kept.strip()
            kept = ""
    assert not kept, f"it does not end: {kept}"


def is_whole(text: str) -> bool:
    """Say whether a command ends here; bash, which is slow to start, is asked where it may not."""
    if text.endswith("\\"):
        return False
    if "\n" not in text and not re.search(r"<<|^(for|if|while|case)\b", text):
        return True
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    return done.returncode == 0 and not done.stderr


def reason_not_to_run(text: str) -> str:
    """Why a command cannot be run here; empty where it is."""
    if text in NOT_HERE:
        return NOT_HERE[text]
    for each in commands("", text):
        verbs = [word for word in each.words[1:] if f"{each.program} {word}" in NOT_RUN]
        for name in (each.program, *(f"{each.program} {word}" for word in verbs)):
            if name in NOT_RUN:
                return NOT_RUN[name]
    return ""


def of_prose(path: Path) -> Iterator[str]:
    """Whole commands of muster and kubectl that stand in the prose."""
    for word in words_of(path):
        if word.startswith(("muster ", "kubectl ")) and not MENTIONED.match(word):
            yield word


BLOCKS = [
    pytest.param(page_of(path), block, id=f"{page_of(path)}, block {number}")
    for path in PAGES
    for number, script in enumerate(scripts(path), start=1)
    if (block := [each for each in statements(script) if not reason_not_to_run(each)])
]
WORDS = [
    pytest.param(text, id=f"{page_of(path)}: {text}")
    for text, path in {text: path for path in reversed(PAGES) for text in of_prose(path)}.items()
    if not reason_not_to_run(text)
]


# Those of the prose first: blocks of tutorials create Ray clusters, and leave some.


@pytest.mark.long
@pytest.mark.parametrize("text", WORDS)
def test_a_command_of_the_prose_ends_as_its_page_says(site: Site, text: str) -> None:
    ends_as_documented(site, text, workplace(site.folder))


@pytest.mark.long
@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_the_commands_of_a_block_end_as_its_page_says(
    site: Site, page: str, block: list[str]
) -> None:
    at = workplace(site.folder)
    if "mkdir overlay" in block:
        shutil.rmtree(at / "overlay")
    for text in block:
        ends_as_documented(site, text, at, page)


def ends_as_documented(site: Site, text: str, at: Path, page: str = "") -> None:
    command = renamed(filled(text), page)
    done = site.run(command, at, interrupted=ENDS.get(text) == INTERRUPTED)
    said = f"{command}\n{done.stdout}{done.stderr}"
    assert done.returncode == ENDS.get(text, FINE), said
    assert "Traceback" not in done.stderr, said


def filled(text: str) -> str:
    """A command with names that there are."""
    return INSTEAD.get(with_names(text), with_names(text))


def renamed(command: str, page: str) -> str:
    """A command with what stands for a name in this page."""
    command = f"{command} "
    for name, other in RENAMED.get(page, {}).items():
        command = command.replace(name, other)
    return command.rstrip()


def with_names(text: str) -> str:
    """A command with names in the place of its placeholders."""
    for placeholder, name in FILLED.items():
        text = text.replace(placeholder, name)
    return text.rstrip()


def test_what_is_not_run_is_still_in_the_pages() -> None:
    """And there is a reason for each program that is left out, and for no other."""
    texts = [each for path in PAGES for each in (*scripts(path), *of_prose(path))]
    left_out = {
        name
        for text in texts
        for each in commands("", text)
        for name in (each.program, *(f"{each.program} {word}" for word in each.words[1:]))
        if name in NOT_RUN
    }
    whole = {each for text in texts for each in statements(text)}
    assert left_out | (whole & NOT_HERE.keys()) == {*NOT_RUN, *NOT_HERE}
    assert {*ENDS, *INSTEAD} <= whole | {with_names(each) for each in whole}
    assert len(BLOCKS) > 20
    assert len(WORDS) > 40
