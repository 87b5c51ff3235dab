"""Test that writers of one process get SQLite's write lock in FIFO order."""

import threading
import time

from backlog_site.sqlite.base import FifoLock

WRITERS = 12


def wait_until_waiting(turns: FifoLock, count: int) -> None:
    while len(turns) < count:
        time.sleep(0.001)


def test_who_came_first_goes_first() -> None:
    turns, served = FifoLock(), []
    until = time.monotonic() + 60

    def write(number: int) -> None:
        with turns.taken(until):
            served.append(number)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    with turns.taken(until):
        for number, writer in enumerate(writers):
            writer.start()
            wait_until_waiting(turns, number + 2)
        assert served == []
    for writer in writers:
        writer.join()
    assert served == list(range(WRITERS))


def test_who_waits_in_vain_goes_on_and_holds_nobody_up() -> None:
    turns = FifoLock()
    with turns.taken(time.monotonic()):
        with turns.taken(time.monotonic()):
            assert len(turns) == 2
        assert len(turns) == 1
    assert len(turns) == 0
