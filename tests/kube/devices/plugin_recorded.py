"""Records what the main table of plugin DynamicResources asks and what the plugin answers.

`make allocator-records` runs the plugin's own tests on a copy of the module with a file of ours in
the package (`recorder/`), and writes one line of JSON for each distinct input. No names or
sentences of theirs are kept: a record is named by the hash of its input.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from testbed.recipes import KUBERNETES
from testbed.toolchain import find_go, needed_version

VERSIONS = ("1.36.3", "1.37.2")
MODULE = "k8s.io/kubernetes"
PACKAGE = "pkg/scheduler/framework/plugins/dynamicresources"
SOURCE = "dynamicresources.go"
RECORDER = Path(__file__).parent / "recorder" / "plugin.go"
RECORDS = Path(__file__).parent / "plugin.jsonl"
ASKED = ("PreEnqueue", "PreFilter", "Filter")
"""Methods that are answered through the recorder."""

KEPT = ("name", "namespace", "uid", "labels", "ownerReferences", "deletionTimestamp")
"""What is kept of the metadata of an object."""

TIME, ANY_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "2026-01-01T00:00:00Z"
"""What is new in each run."""

Record = dict[str, Any]


def records() -> Iterator[Record]:
    """Yield the records as they were written."""
    with RECORDS.open() as lines:
        yield from map(json.loads, lines)


def main() -> None:
    """Record the table of every version."""
    merged: dict[str, Record] = {}
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as folder:
            for path in sorted(_record(version, Path(folder)).glob("*.json")):
                _merge(merged, version, json.loads(path.read_bytes()))
    lines = (json.dumps(merged[name], separators=(",", ":")) for name in sorted(merged))
    RECORDS.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(merged)} inputs in {RECORDS.name}")  # noqa: T201


def _record(version: str, folder: Path) -> Path:
    """Run the tests of one version on a copy of the module; return where the records lie."""
    module, source, written = folder / "module", folder / "kubernetes", folder / "records"
    shutil.copytree(KUBERNETES[version].directory, module)
    written.mkdir()
    go = find_go(needed_version([module / "go.mod"]), print)
    environment = {**os.environ, "MUSTER_RECORDS": str(written), "GOFLAGS": "-mod=mod"}
    run = partial(subprocess.run, cwd=module, env=environment, check=True)
    found = run([go, "list", "-m", "-f", "{{.Dir}}", MODULE], capture_output=True, text=True)
    shutil.copytree(found.stdout.strip(), source)
    for path in (source, *source.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)  # the module cache is read-only
    _lay_recorder(source / PACKAGE)
    run([go, "mod", "edit", f"-replace={MODULE}={source}"])
    run([go, "test", "-vet=off", "-count=1", "-run=^TestPlugin$", f"{MODULE}/{PACKAGE}"])
    return written


def _lay_recorder(package: Path) -> None:
    """Give the plugin's methods other names, and lay the recorder beside them."""
    source, count = re.subn(
        rf"^(func \(pl \*DynamicResources\) )({'|'.join(ASKED)})\(",
        r"\1answer\2(",
        (package / SOURCE).read_text(),
        flags=re.MULTILINE,
    )
    assert count == len(ASKED), f"{SOURCE} has other methods by now"
    (package / SOURCE).write_text(source)
    shutil.copy(RECORDER, package)


def _merge(merged: dict[str, Record], version: str, told: Record) -> None:
    """Put the answers of the versions to one input together."""
    answers, features = told.pop("Answers"), sorted(told.pop("Features"))
    asked = json.loads(TIME.sub(ANY_TIME, json.dumps(_trimmed(told))))
    key = json.dumps([asked, features], sort_keys=True)
    name = hashlib.sha256(key.encode()).hexdigest()[:12]
    kept = merged.setdefault(
        name, {"Name": name, "Features": features, "Input": asked, "Answers": {}}
    )
    kept["Answers"][version] = answers


def _trimmed(told: Record) -> Record:
    """Leave out what says nothing: times at which objects were made, and the like."""
    for kind, found in told.items():
        for each in [found] if kind == "Pod" else found if isinstance(found, list) else ():
            each["metadata"] = {k: v for k, v in each["metadata"].items() if k in KEPT}
    for each in told["Nodes"] or ():
        each["status"] = {k: v for k, v in each["status"].items() if k == "allocatable"}
        each.pop("spec", None)
    return told


if __name__ == "__main__":
    main()
