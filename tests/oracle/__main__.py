"""`python -m tests.oracle`: does kube-scheduler do what Muster says, in as many cases as asked?"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.oracle.stage import Stage
from tests.oracle.trial import Disagreement, Tally, try_wave

WAVE = 16
"""Worlds side by side; each of them twice."""


def main(argv: list[str]) -> int:
    """Run the cases and print what was found; 1 where anything disagreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--only", help="run one case: its seed as printed")
    options = parser.parse_args(argv)
    seeds = [f"{options.seed}/{at}" for at in range(options.cases)]
    tally = run([options.only] if options.only else seeds, options.seconds)
    return 1 if tally.unsound or tally.incomplete else 0


def run(seeds: list[str], seconds: float) -> Tally:
    """Try the seeds wave by wave, for so many seconds at most, and print what was found."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, Stage.open(Path(folder) / "cluster") as stage:
        end = time.monotonic() + seconds
        for start in range(0, len(seeds), WAVE):
            if time.monotonic() > end:
                break
            try_wave(stage, seeds[start : start + WAVE], tally)
            sys.stderr.write(f"{tally.cases} of {len(seeds)} cases\n")
    wrong = [f"unsound: {_told(each)}" for each in tally.unsound]
    wrong += [f"undecided: {_told(each)}" for each in tally.undecided]
    wrong += [f"incomplete: {_told(each)}" for each in tally.incomplete]
    sys.stdout.write("\n".join([*tally.lines(), *wrong, ""]))
    return tally


def _told(wrong: Disagreement) -> str:
    return f"--only {wrong.seed}: {wrong.what}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
