"""Run the grading function over many submissions: on local processes, or on a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

from tqdm.auto import tqdm

from autograder.classroom.grading import close
from autograder.judge.judge_errors import JudgeError

Payloads = dict[str, dict[str, Any]]
Task = Callable[[dict[str, Any]], Any]
MAX_LOSSES = 3
WATCH_S = 1.0


def run_all(
    payloads: Payloads, task: Task, *, jobs: int, scheduler: str | None, total: int, show_bar: bool
) -> Iterator[tuple[str, Any]]:
    """Yield key and result of each submission as it is finished; only a few are in memory at a time.

    Args:
        payloads: what to grade, by key.
        task: what is done with each, in a grading process.
        jobs: local processes.
        scheduler: address of a Dask scheduler, in their place.
        total: of how many these are the rest, for the progress bar (with the time left).
        show_bar: whether to show it.
    """
    bar = tqdm(total=total, initial=total - len(payloads), unit="submission", disable=not show_bar)
    with bar:
        finished = _on_cluster(payloads, task, scheduler) if scheduler else _locally(payloads, task, jobs)
        for key, row in finished:
            bar.update()
            yield key, row


def _locally(payloads: Payloads, task: Task, jobs: int) -> Iterator[tuple[str, Any]]:
    left = dict(payloads)
    losses = 0
    while left:
        try:
            for key, row in _with_pool(left, task, max(1, min(jobs, len(left)))):
                del left[key]
                yield key, row
        except BrokenProcessPool:  # a grading process was killed; what it had in hand is graded again
            losses += 1
            if losses > MAX_LOSSES:
                raise JudgeError(f"grading processes were lost {losses} times; is there too little memory?") from None


def _with_pool(payloads: Payloads, task: Task, jobs: int) -> Iterator[tuple[str, Any]]:
    from autograder.judge.judge import NEEDED_BY_CHECKS

    # Each grading process is forked from one that has imported what all need, which takes four seconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["autograder.classroom.grading", "autograder.judge.judge", *NEEDED_BY_CHECKS])
    queue = iter(list(payloads.items()))
    running: dict[Future[Any], str] = {}
    with ProcessPoolExecutor(jobs, context, _end_with, (os.getpid(),)) as pool:
        try:
            while True:
                while len(running) < 2 * jobs and (item := next(queue, None)) is not None:
                    running[pool.submit(task, item[1])] = item[0]
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_with(pid: int) -> None:
    """Have this grading process, with its sandbox, end soon after the run that it works for was killed."""

    def watch() -> None:
        while _is_alive(pid):
            time.sleep(WATCH_S)
        with suppress(Exception):
            close()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _on_cluster(payloads: Payloads, task: Task, address: str) -> Iterator[tuple[str, Any]]:
    from distributed import Client, as_completed

    with Client(address, timeout=30) as client:
        queue = iter(list(payloads.items()))
        keys: dict[str, str] = {}
        window = 2 * max(1, sum(client.nthreads().values()))
        running = as_completed(with_results=False)

        def submit() -> None:
            item = next(queue, None)
            if item is not None:
                future = client.submit(task, item[1], key=f"{task.__name__}-{item[0]}", retries=MAX_LOSSES, pure=False)
                keys[future.key] = item[0]
                running.add(future)

        for _ in range(window):
            submit()
        for future in running:
            yield keys.pop(future.key), future.result()
            future.release()
            submit()
