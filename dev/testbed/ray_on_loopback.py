"""Runs Ray's command line on loopback and out of a pod; it is started with the Python of Ray.

Ray takes the machine's address wherever it is given that of loopback, or refuses more than one node
there, its autoscaler looks for the head at port 6379 of that address, and reads its token where a
pod has it. These are the only things of Ray that are changed; the API server's address is an
environment variable to it.
"""

import os
import sys

import ray._private.ray_constants
import ray._private.services
import ray.util
from ray.autoscaler._private.kuberay import node_provider, run_autoscaler
from ray.scripts import scripts

LOOPBACK = "127.0.0.1"
HEAD = "TESTBED_RAY_HEAD"
"""The environment variable with address and port of the head."""
TOKEN = "TESTBED_RAY_TOKEN"  # noqa: S105 - the name of a variable
"""The one with the file of the autoscaler's token."""
CA = "TESTBED_RAY_CA"
"""The one with the certificate authority of the API server."""


def _address(address: str | None = None) -> str:  # noqa: ARG001 - as Ray calls it
    return LOOPBACK


def _head(host: str, port: int) -> str:  # noqa: ARG001 - as Ray calls it
    return os.environ[HEAD]


def _credentials() -> tuple[dict[str, str], str, None]:
    with open(os.environ[TOKEN], encoding="utf-8") as file:  # noqa: PTH123
        return {"Authorization": f"Bearer {file.read().strip()}"}, os.environ[CA], None


# The environment has its opposite, for what Ray starts.
ray._private.ray_constants.ENABLE_RAY_CLUSTER = True  # noqa: SLF001
ray._private.services.get_node_ip_address = _address  # noqa: SLF001
ray.util.get_node_ip_address = _address
run_autoscaler.get_node_ip_address = _address
run_autoscaler.build_address = _head
node_provider.load_k8s_secrets = _credentials

if __name__ == "__main__":
    sys.exit(scripts.main())
