"""The executor on the pool: results, errors, deaths, cancellation, and an early end."""

from __future__ import annotations

import os
import time
from concurrent.futures import CancelledError, wait

import pytest

from bankshot.oracle.errors import Died
from bankshot.oracle.workers.executor import PoolExecutor


def double(number):
    return 2 * number


def fail():
    raise ValueError("no")


def die():
    os._exit(3)


def unsendable():
    return lambda: None


@pytest.fixture(scope="module")
def executor():
    with PoolExecutor(2) as made:
        yield made


def test_results_and_errors(executor):
    assert list(executor.map(double, range(9))) == [2 * n for n in range(9)]
    with pytest.raises(ValueError, match="no"):
        executor.submit(fail).result()


def test_a_dead_process_fails_only_its_own_call(executor):
    futures = [executor.submit(double, 1), executor.submit(die), executor.submit(double, 2)]
    wait(futures)
    assert (futures[0].result(), futures[2].result()) == (2, 4)
    with pytest.raises(Died, match="the process that ran it exited with code 3"):
        futures[1].result()
    assert executor.submit(double, 3).result() == 6


def test_unpicklable_results_are_errors(executor):
    for call in (unsendable, lambda: None):
        with pytest.raises(Exception, match=r"pickle|local|lambda"):
            executor.submit(call).result()
    assert executor.submit(double, 3).result() == 6


def test_the_end_waits_for_all_calls():
    with PoolExecutor(1) as made:
        futures = [made.submit(double, number) for number in range(4)]
    assert [each.result() for each in futures] == [0, 2, 4, 6]


def test_a_shutdown_waits_unless_it_is_told_not_to():
    made = PoolExecutor(1)
    future = made.submit(time.sleep, 0.5)
    made.shutdown(wait=False)
    assert not future.done()
    made.shutdown()
    assert future.done()
    assert not made._thread.is_alive()


def test_an_early_shutdown_does_not_wait():
    start = time.monotonic()
    executor = PoolExecutor(1)
    running, waiting = executor.submit(time.sleep, 600), executor.submit(double, 1)
    while not running.running():
        time.sleep(0.01)
    executor.__exit__(KeyError, KeyError(), None)
    assert time.monotonic() - start < 300
    assert waiting.cancelled()
    with pytest.raises((Died, CancelledError)):
        running.result()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(double, 1)
