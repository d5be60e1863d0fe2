"""Pools of processes that end with who made them."""

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

__all__ = ["workers"]


@contextmanager
def workers(count: int | None, context: Any = None) -> Iterator[ProcessPoolExecutor]:
    """So many processes. An interrupt of the user is the parent's, who ends them; so does any error in the block,
    without what is still to be done."""
    pool = ProcessPoolExecutor(count, context, signal.signal, (signal.SIGINT, signal.SIG_IGN))
    try:
        yield pool
    except BaseException:
        for process in list(pool._processes.values()):
            process.terminate()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
