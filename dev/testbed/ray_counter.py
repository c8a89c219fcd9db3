"""Run by the Python that has Ray: makes a detached actor, or asks the one that is there.

usage: ray_counter.py ADDRESS make|ask; prints `counted`, the actor's count and how many jobs are on
record, among what Ray prints
"""

import sys
from typing import Any

import ray
import ray._private.services
from ray._raylet import GcsClient

_ADDRESS, _WHAT = sys.argv[1:]

# Ray takes the machine's address wherever it is given that of loopback.
ray._private.services.get_node_ip_address = lambda *_: "127.0.0.1"  # noqa: SLF001


@ray.remote(num_cpus=1)
class Counter:
    """Counts in its memory, which is lost with it."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> int:
        """Count one more."""
        self.count += 1
        return self.count


ray.init(address=_ADDRESS, namespace="test", log_to_driver=False, logging_level="error")
if _WHAT == "make":
    made: Any = Counter  # the decorator's type is not known here
    counter = made.options(name="counter", lifetime="detached").remote()
else:
    counter = ray.get_actor("counter")
count = ray.get(counter.add.remote(), timeout=60)
print("counted", count, len(GcsClient(address=_ADDRESS).get_all_job_info()), flush=True)
