"""What policies cost is told as a ratio of Muster with them to Muster without."""

from benchmarks.burst import Burst, policy_rows
from benchmarks.kinds import MUSTER, UNPOLICED


def burst(seconds: float, cpu: float) -> Burst:
    return Burst(seconds, seconds, {"kube-apiserver": cpu}, {}, 1.0)


def test_both_rows_compare_with_policies_to_without_them() -> None:
    clock, cpu = policy_rows({UNPOLICED: [burst(10.0, 20.0)], MUSTER: [burst(11.0, 20.2)]})
    assert (clock.ours_are, clock.floor_is) == (MUSTER.name, UNPOLICED.name)
    assert (clock.ratios, cpu.ratios) == ((1.1,), (1.01,))
    assert (clock.met, cpu.met) == (False, True)
