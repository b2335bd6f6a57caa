"""What is needed next is made in the background while the present one is used."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Made = TypeVar("Made")

AHEAD = 2  # so many are ready, or being made


def prefetched(make: Callable[[int], Made], count: int) -> Iterator[Made]:
    """``make(0)`` to ``make(count - 1)``, one after the other, by one thread that runs ahead."""
    context = copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as pool:
        waiting: deque[Future[Made]] = deque()
        try:
            for number in range(count + AHEAD):
                if number < count:
                    waiting.append(pool.submit(context.run, make, number))
                if number >= AHEAD:
                    yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
