"""Records what the tables of kube-scheduler's allocator ask and what it answers.

`make allocator-records` runs the tests of k8s.io/dynamic-resource-allocation with a file of ours in
the place of one of theirs (`recorder/`), and writes one line of JSON for each distinct input. No
names or sentences of theirs are kept: a record is named by the hash of its input.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.toolchain import find_go, needed_version

MODULE = "k8s.io/dynamic-resource-allocation"
VERSIONS = {"1.36.3": "v0.36.3", "1.37.2": "v0.37.2"}
PACKAGE = "structured/internal/incubating"
RECORDER = Path(__file__).parent / "recorder" / "allocator_test.go"
RECORDS = Path(__file__).parent / "allocator.jsonl"

Record = dict[str, Any]


def records() -> Iterator[Record]:
    """Yield the records as they were written."""
    with RECORDS.open() as lines:
        yield from map(json.loads, lines)


def main() -> None:
    """Record the tables of every version."""
    merged: dict[str, Record] = {}
    for version, module in VERSIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            for path in sorted(_record(module, Path(folder)).glob("*.json")):
                _merge(merged, path.stem, version, json.loads(path.read_bytes()))
    lines = (json.dumps(merged[name], separators=(",", ":")) for name in sorted(merged))
    RECORDS.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(merged)} inputs in {RECORDS.name}")  # noqa: T201


def _record(module: str, folder: Path) -> Path:
    """Run the tests of one version on a copy of the module; return where the records lie."""
    found = _found(module)
    source, written = folder / "module", folder / "records"
    shutil.copytree(found, source)
    written.mkdir()
    place = source / PACKAGE
    place.chmod(0o755)
    (place / RECORDER.name).unlink()
    shutil.copy(RECORDER, place)
    go = find_go(needed_version([source / "go.mod"]), print)
    command = [str(go), "test", "-mod=readonly", "-count=1", "-run", "^TestAllocator$"]
    environment = {**os.environ, "MUSTER_RECORDS": str(written)}
    subprocess.run([*command, f"./{PACKAGE}"], cwd=source, env=environment, check=True)
    for path in source.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)  # the module cache is read-only, and so would the copy stay
    return written


def _found(module: str) -> Path:
    """Return where the module lies, fetched if need be."""
    go = find_go((1, 26), print)
    command = [str(go), "mod", "download", "-json", f"{MODULE}@{module}"]
    answer = subprocess.run(command, cwd="/", check=True, capture_output=True)
    return Path(json.loads(answer.stdout)["Dir"])


def _merge(merged: dict[str, Record], name: str, version: str, record: Record) -> None:
    """Put the answers of the versions to one input together."""
    asked = record["Input"]
    asked["Node"] = {"metadata": asked["Node"]["metadata"]}
    for claim in asked["Claims"] or ():
        claim.pop("status", None)
    kept = merged.setdefault(
        name, {"Name": name, "Input": asked, "Selectors": record["Selectors"], "Answers": {}}
    )
    kept["Answers"][version] = [record["Answer"], record["AllFeatures"]]


if __name__ == "__main__":
    main()
