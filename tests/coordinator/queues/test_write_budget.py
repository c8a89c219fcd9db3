"""Few writes a second go to queues, and each queue is written seldom."""

from coordinator.queues.write_budget import EACH, MOST, WINDOW, WriteBudget


def test_a_queue_is_written_again_after_some_seconds() -> None:
    budget = WriteBudget()
    assert budget.again_at("a") < 0
    budget.spend(10.0, "a")
    assert budget.again_at("a") == 10.0 + EACH
    assert budget.again_at("b") < 0


def test_all_queues_together_have_so_many_writes_in_any_second() -> None:
    budget = WriteBudget()
    for at in range(MOST - 1):
        budget.spend(10.0 + at / 10, f"q{at}")
    assert budget.free_at < 10.0
    budget.spend(10.9, "last")
    assert budget.free_at == 10.0 + WINDOW
    budget.spend(11.0, "more")
    assert budget.free_at == 10.1 + WINDOW


def test_a_write_of_no_status_counts_for_all_and_for_no_queue() -> None:
    budget = WriteBudget()
    for _ in range(MOST):
        budget.spend(10.0)
    assert budget.free_at == 10.0 + WINDOW
    assert budget.again_at("a") < 0


def test_a_queue_that_is_made_again_begins_anew() -> None:
    budget = WriteBudget()
    budget.spend(10.0, "a")
    budget.forget("a")
    assert budget.again_at("a") < 0
