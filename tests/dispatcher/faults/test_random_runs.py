"""Gangs come, go and move while things break at random steps; in the end each has run whole, once.

`make test-clusters RUNS=200` plays as many; a run is played again by its number.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from testbed.errors import TestbedError
from testbed.waiting import wait_until
from tests.dispatcher.faults.plan import DELETE, DRAIN, SUBMIT, Blow, blows
from tests.dispatcher.faults.stand import Stand
from tests.dispatcher.faults.trap import Late, Trap, Unanswered

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(900)]

RUNS = int(os.environ.get("MUSTER_TEST_RUNS", "3"))
HEALED = 60.0
"""Seconds from the end of the last fault until all that fits runs."""

_AIM_SECONDS = 4.0
"""For a step to be reached: it need not follow from what was done. Then it breaks where it is."""


@pytest.mark.parametrize("seed", range(RUNS))
def test_each_gang_runs_whole_once(stand: Stand, seed: int) -> None:
    run = Run(stand)
    run.submit()
    for blow in blows(seed):
        run.take(blow)
    run.end()


class Run:
    """The gangs of one run."""

    def __init__(self, stand: Stand) -> None:
        self.alive: list[str] = []
        self._stand, self._site = stand, stand.site
        self._steps: list[str] = []

    def submit(self) -> None:
        """Create one more."""
        self.alive.append(self._stand.new_name())
        self._site.submit(self.alive[-1])

    def take(self, blow: Blow) -> None:
        """Have something done, and something break at a step that may follow."""
        trap = self._stand.trap(Late if blow.is_late else Unanswered, blow.step)
        try:
            self._do(blow)
            self._aim(trap, blow)
            terms = self._stand.terms()
            with ExitStack() as broken:
                for each in blow.breakages:
                    broken.enter_context(each(self._stand, trap.where or "east"))
                if not blow.is_late:
                    trap.open()
            if blow.is_late:
                wait_until(lambda: self._stand.terms() != terms, "a successor", HEALED)
        finally:
            trap.open()

    def end(self) -> None:
        """See that all that fits runs, and what waits follows when that is gone."""
        for member in self._site.members:
            self._site.drain(member, "Active")
        while self.alive:
            wait_until(self._is_full, "all that fits to run", HEALED, seen=self._seen)
            for name in self.alive:
                self._see_not_half(name)
            for name in self._running():
                self._delete(name)
        assert self._stand.witness.findings == [], self._steps

    # ---- what is done

    def _do(self, blow: Blow) -> None:
        running = self._running()
        self._steps.append(str(blow))
        if blow.deed == SUBMIT or not running:
            self.submit()
            return
        name, where = list(running.items())[int(blow.choice * len(running))]
        if blow.deed == DELETE:
            self._delete(name)
        elif blow.deed == DRAIN:
            for each in self._site.members:
                self._site.drain(each, "Drained" if each == where else "Active")
        else:
            self._site.members[where].delete("RayCluster", name)

    def _delete(self, name: str) -> None:
        self.alive.remove(name)
        self._site.manager.delete("RayCluster", name)

    def _aim(self, trap: Trap, blow: Blow) -> None:
        try:
            wait_until(lambda: trap.is_set_off, "the step", _AIM_SECONDS)
        except TestbedError:
            self._steps.append(f"{blow.step.name} was not reached")

    # ---- what is seen

    def _running(self) -> dict[str, str]:
        """By gang that runs whole its member."""
        return {name: where for name in self.alive if (where := self._stand.runs_on(name))}

    def _is_full(self) -> bool:
        return len(self._running()) == min(len(self._site.members), len(self.alive))

    def _see_not_half(self, name: str) -> None:
        bound = {each: len(plot.bound(name)) for each, plot in self._site.members.items()}
        whole = bool(self._stand.runs_on(name))
        assert whole or not any(bound.values()), (name, bound, self._steps)

    def _seen(self) -> object:
        records = {name: self._site.dispatch(name) for name in self.alive}
        return self._steps, self._running(), records
