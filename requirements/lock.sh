#!/bin/sh
# Pins what pyproject.toml asks for in runtime.txt, build.txt, cli.txt, docs.txt, ray.txt, ray-2.52.txt, sbom.txt and dev.txt; `make lock` calls it.
# usage: lock.sh BIN [--upgrade], BIN being where pip-compile and dependency-groups are
set -eu

bin=$1
shift
cd "$(dirname "$0")/.."

# The pins must not depend on the machine: no configuration of pip's, no local archives.
export PIP_CONFIG_FILE=/dev/null
unset PIP_FIND_LINKS PIP_EXTRA_INDEX_URL PIP_NO_INDEX

# usage: pin NAME SOURCE... [options]: writes requirements/NAME.txt; "-" is standard input
pin() {
    name=$1
    shift
    out=requirements/$name.txt
    # pip-compile keeps the pins of the file it writes, and must find it without our comment.
    "$bin/pip-compile" --quiet --no-config --generate-hashes --strip-extras --allow-unsafe \
        --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
        --no-emit-options --output-file "$out" "$@"
    {
        echo "# Written by \`make lock\` from pyproject.toml."
        sed -e 's/-r -$/pyproject.toml (group '"$name"')/' \
            -e '/^# The following packages are considered to be unsafe/d' "$out"
    } >"$out.new"
    mv "$out.new" "$out"
}

pin runtime "$@" pyproject.toml
"$bin/dependency-groups" build | pin build "$@" -
"$bin/dependency-groups" cli | pin cli "$@" -
"$bin/dependency-groups" docs | pin docs "$@" -
"$bin/dependency-groups" ray | pin ray "$@" -
"$bin/dependency-groups" ray-2.52 | pin ray-2.52 "$@" -
"$bin/dependency-groups" sbom | pin sbom "$@" -
"$bin/dependency-groups" dev | pin dev "$@" \
    --constraint requirements/runtime.txt --constraint requirements/build.txt pyproject.toml -
