"""`python -m tests.oracle`: compares verdicts with kube-scheduler in as many cases as asked."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec

from testbed.recipes import KUBERNETES_VARIABLE, chosen_kubernetes
from tests.oracle.devices.device_trial import try_device_case
from tests.oracle.stage import Stage
from tests.oracle.tally import Outcome, Tally
from tests.oracle.trial import try_case
from tests.oracle.worlds import world

SLOTS = tuple(f"w{at}" for at in range(16))
"""Where cases run side by side, one in each."""

Try = Callable[[Stage, str, str], Outcome]
"""Tries the case of a seed in a slot."""


def main(argv: list[str]) -> int:
    """Run the cases and print what was found; 1 where anything disagreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--kubernetes", default=chosen_kubernetes(), help="the version to ask")
    parser.add_argument("--only", help="run one case: its seed as printed")
    parser.add_argument("--devices", action="store_true", help="worlds of devices by claim")
    parser.add_argument("--present", help="only cases in which this constraint is present")
    options = parser.parse_args(argv)
    os.environ[KUBERNETES_VARIABLE] = options.kubernetes  # by it worlds are drawn and judged
    seeds = [f"{options.seed}/{at}" for at in range(options.cases)]
    if options.present:
        seeds = [seed for seed in seeds if options.present in world("w", seed).present]
    if options.only:
        seeds = [options.only]
    try_one = try_device_case if options.devices else try_case
    with opened(options.kubernetes) as stage:
        tally = run(stage, seeds, options.seconds, try_one)
    return 1 if tally.unsound or tally.incomplete or tally.misjudged else 0


@contextmanager
def opened(kubernetes: str) -> Iterator[Stage]:
    """Start a control plane of this version for cases; it ends with the block."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Stage.open(Path(folder) / "cluster", kubernetes, SLOTS) as stage,
    ):
        yield stage


def run(stage: Stage, seeds: list[str], seconds: float, try_one: Try = try_case) -> Tally:
    """Try the seeds, for so many seconds at most, and print what was found."""
    begin = time.monotonic()
    outcomes = _all(stage, seeds, begin + seconds, try_one)
    tally = Tally(outcomes, time.monotonic() - begin)
    sys.stdout.write("\n".join([*tally.lines(), *tally.wrongs(), ""]))
    return tally


def _all(stage: Stage, seeds: list[str], end: float, try_one: Try) -> list[Outcome]:
    """Try cases side by side until the end; each slot takes the next seed once it is free."""
    _learn(msgspec.Struct)
    left = iter(seeds)

    def work(slot: str) -> list[Outcome]:
        done = []
        while time.monotonic() < end and (seed := next(left, None)):
            done.append(try_one(stage, slot, seed))
        return done

    with ThreadPoolExecutor(len(SLOTS)) as pool:
        found = pool.map(work, SLOTS)
        return [outcome for outcomes in found for outcome in outcomes]


def _learn(kind: type[msgspec.Struct]) -> None:
    """Have msgspec read these types here: two threads that both use one first crash (0.22.0)."""
    for each in kind.__subclasses__():
        msgspec.json.Decoder(each)
        _learn(each)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
