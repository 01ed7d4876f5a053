"""A `concurrent.futures` executor on the worker pool, for work that users may also run on their own executor.

Unlike `ProcessPoolExecutor` it survives the death of a process: only the call that the process ran fails, with `Died`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ...sim.fast_dataclass import frozen
from ..errors import Died
from .pool import Report, TaskError, TaskProgress, WorkerPool

if TYPE_CHECKING:
    from types import TracebackType

P = ParamSpec("P")
T = TypeVar("T")


@frozen
class _Call:
    number: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]


def _do(call: _Call, _: Report) -> Any:
    return call.function(*call.arguments, **call.named)


class PoolExecutor(Executor):
    """An executor on `count` processes, which share the processors. An exception that leaves the context kills them."""

    def __init__(self, count: int) -> None:
        from multiprocessing import Pipe

        self._lock = Lock()
        self._futures: dict[int, Future[Any]] = {}
        self._waiting: deque[_Call] = deque()
        self._submitted = 0
        self._open = True
        self._killed = False
        self._woken, self._wake = Pipe(duplex=False)
        self._pool = WorkerPool(count, _do)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with self._lock:
            if not self._open:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._submitted += 1
            future: Future[T] = Future()
            self._futures[self._submitted] = future
            self._waiting.append(_Call(self._submitted, fn, args, kwargs))
        self._notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._open = False
            while cancel_futures and self._waiting:
                self._futures.pop(self._waiting.popleft().number).cancel()
        self._notify()
        if wait:
            self._thread.join()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._killed = kind is not None
        self.shutdown(cancel_futures=self._killed)
        return None

    def _notify(self) -> None:
        with suppress(OSError):  # the thread has ended
            self._wake.send_bytes(b"0")

    # ---- in the thread that serves the pool ----

    def _run(self) -> None:
        try:
            with self._pool:
                while not self._killed and (self._open or self._futures):
                    self._assign()
                    for call, heard in self._pool.hear([self._woken]):
                        if not isinstance(heard, TaskProgress):
                            self._settle(call, heard.error if isinstance(heard, TaskError) else None, heard)
                    while self._woken.poll():
                        self._woken.recv_bytes()
        finally:
            self._wake.close()
            for future in list(self._futures.values()):
                if not future.cancel():
                    future.set_exception(Died("the executor was shut down"))

    def _settle(self, call: _Call, error: BaseException | None, heard: Any) -> None:
        future = self._futures.pop(call.number)
        future.set_result(heard.result) if error is None else future.set_exception(error)

    def _assign(self) -> None:
        for worker in self._pool.idle:
            while (call := self._next()) is not None:
                try:
                    worker.give(call)
                except Exception as error:  # the call cannot be pickled
                    self._settle(call, error, None)
                    continue
                break

    def _next(self) -> _Call | None:
        """Return the next call that has not been cancelled, if any."""
        with self._lock:
            while self._waiting:
                call = self._waiting.popleft()
                if self._futures[call.number].set_running_or_notify_cancel():
                    return call
                del self._futures[call.number]
        return None
