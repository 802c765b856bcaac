import threading

from tests.vertex_emulator.running import PATIENCE_SECONDS
from vertex_emulator.scheduling.work_queue import WorkQueue


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_key_added_twice_is_taken_once() -> None:
    queue = WorkQueue(Clock())
    queue.add("a")
    queue.add("a")
    assert queue.reserve_next_key_or_none(0) == "a"
    queue.release("a")
    assert queue.reserve_next_key_or_none(0) is None


def test_a_taken_key_returns_only_after_its_release() -> None:
    queue = WorkQueue(Clock())
    queue.add("a")
    assert queue.reserve_next_key_or_none(0) == "a"
    queue.add("a")
    assert queue.reserve_next_key_or_none(0) is None
    queue.release("a")
    assert queue.reserve_next_key_or_none(0) == "a"


def test_a_timer_rings_once_when_it_is_due() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    queue.add("a")
    queue.reserve_next_key_or_none(0)
    queue.release("a", delay=5)
    assert queue.reserve_next_key_or_none(0) is None
    clock.now = 5.0
    assert queue.reserve_next_key_or_none(0) == "a"
    queue.release("a")
    clock.now = 50.0
    assert queue.reserve_next_key_or_none(0) is None


def test_the_latest_release_sets_a_key_s_timer() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    for again in (1, 3):
        queue.add("a")
        assert queue.reserve_next_key_or_none(0) == "a"
        queue.release("a", delay=again)
    clock.now = 2.0
    assert queue.reserve_next_key_or_none(0) is None
    clock.now = 3.0
    assert queue.reserve_next_key_or_none(0) == "a"


def test_a_release_without_delay_cancels_the_timer() -> None:
    clock = Clock()
    queue = WorkQueue(clock)
    for again in (5, None):
        queue.add("a")
        assert queue.reserve_next_key_or_none(0) == "a"
        queue.release("a", delay=again)
    clock.now = 50.0
    assert queue.reserve_next_key_or_none(0) is None


def test_closing_lets_a_waiting_worker_go() -> None:
    queue = WorkQueue()
    taken: list[str | None] = ["never"]
    worker = threading.Thread(target=lambda: taken.append(queue.reserve_next_key_or_none()))
    worker.start()
    queue.close()
    worker.join(PATIENCE_SECONDS)
    assert taken == ["never", None]
