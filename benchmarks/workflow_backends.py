"""What a call to a server costs in the client: workflows in flight against the ideal.

A server that answers every request after 50 ms, in a process of its own, is asked by 64 workflows
at the same time, each a chain of calls that wait for one another. If asking cost nothing, all would
be done after (calls of one chain) x (50 ms): the latency-bound ideal. Side by side, in one run:

    python benchmarks/workflow_backends.py

* `execute, one by one`: the waiting face, one workflow at a time, as a floor;
* `openai, typed`: the library `openai` as its manual uses it, without a workflow around it;
* `aexecute`: workflows, over `toolgym.chat`.

The share of the ideal is for information: 64 requests of 50 ms in flight fill a processor, and a
model takes seconds, of which a millisecond is no part worth counting. What is demanded is that a
call costs no more processor time, with its workflow, limits and retries, than the library alone.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import openai

from aflowgym import aexecute, execute, load_tasks, parse
from aflowgym.backends.openai import OpenAIBackend
from toolgym.chat import ChatClient, ChatSettings

CHAIN = (
    "Custom -> AnswerGenerate -> Revise -> Format -> Custom -> AnswerGenerate -> Revise -> Format"
)
CALLS = 8
SERVER = Path(__file__).resolve().parent.parent / "tests" / "chat_server.py"


class Measured(NamedTuple):
    """The share of the latency-bound ideal, and the processor time of one call in milliseconds."""

    share: float
    cpu: float


def main() -> None:
    """Measure, and print the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--workflows", type=int, default=64)
    options.add_argument("--latency", type=float, default=0.05)
    options.add_argument("--repeats", type=int, default=3, help="The best of so many is shown.")
    given = options.parse_args()
    count, ideal = given.workflows, CALLS * given.latency
    with server(given.latency) as url:
        runs = {
            "execute, one by one": lambda: one_by_one(url),
            "openai, typed": lambda: typed(url, count),
            "aexecute": lambda: workflows(url, count),
        }
        rows = {name: best(run, ideal, given.repeats) for name, run in runs.items()}
    print(f"{count} workflows of {CALLS} calls, {given.latency * 1000:g} ms each")
    print(f"{'latency-bound ideal':30} {count / ideal:7.1f} workflows/s  100 %")
    for name, (share, cpu) in rows.items():
        share /= count if name.endswith("one by one") else 1
        rate = f"{share * count / ideal:7.1f} workflows/s {share * 100:4.0f} %"
        print(f"{name:30} {rate}  {cpu:.2f} ms of processor time a call")
    reached = rows["aexecute"].cpu <= rows["openai, typed"].cpu
    print(f"no dearer than the library alone: {'yes' if reached else 'NO'}")
    sys.exit(0 if reached else 1)


@contextmanager
def server(latency: float) -> Iterator[str]:
    """A scripted server in a process of its own; yields its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SERVER)]
    arguments = ["--port", str(port), "--latency", str(latency)]
    process = subprocess.Popen([*command, *arguments])
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def best(run: Callable[[], Coroutine[Any, Any, Measured]], ideal: float, repeats: int) -> Measured:
    """The fastest of some runs, with its time as a share of the ideal."""
    shortest = min(asyncio.run(run()) for _ in range(repeats))
    return Measured(ideal / shortest.share, shortest.cpu)


class Clock:
    """Seconds since it was made, and processor time by call."""

    def __init__(self) -> None:
        self.begin, self.used = time.perf_counter(), time.process_time()

    def read(self, calls: int) -> Measured:
        """The seconds in place of the share, for `best`."""
        used = time.process_time() - self.used
        return Measured(time.perf_counter() - self.begin, used * 1000 / calls)


def settings(url: str, concurrency: int = 64) -> ChatSettings:
    """How the server is asked."""
    return ChatSettings(model="any", base_url=url, concurrency=concurrency)


async def workflows(url: str, count: int) -> Measured:
    """What so many workflows take together, after a round to warm up."""
    task = load_tasks("bundled", "train")[0]
    tree = parse(CHAIN, kind=task.kind).workflow
    backend = OpenAIBackend(ChatClient(settings(url, count)))
    await asyncio.gather(*(aexecute(tree, task, backend, seed=-seed) for seed in range(count)))
    clock = Clock()
    await asyncio.gather(*(aexecute(tree, task, backend, seed=seed) for seed in range(count)))
    return clock.read(count * CALLS)


async def typed(url: str, count: int) -> Measured:
    """The same calls by the library alone."""
    client = openai.AsyncOpenAI(api_key="none-needed", base_url=url, max_retries=0)
    messages: Any = [{"role": "user", "content": "Solve this problem. " * 20}]

    async def chain(calls: int) -> None:
        for seed in range(calls):
            await client.chat.completions.create(
                model="any", messages=messages, seed=seed, max_tokens=1024, temperature=0.7
            )

    await asyncio.gather(*(chain(1) for _ in range(count)))
    clock = Clock()
    await asyncio.gather(*(chain(CALLS) for _ in range(count)))
    measured = clock.read(count * CALLS)
    await client.close()
    return measured


async def one_by_one(url: str) -> Measured:
    """One workflow on the waiting face."""
    task = load_tasks("bundled", "train")[0]
    tree = parse(CHAIN, kind=task.kind).workflow
    backend = OpenAIBackend(ChatClient(settings(url)))
    execute(tree, task, backend, seed=-1)
    clock = Clock()
    execute(tree, task, backend, seed=0)
    measured = clock.read(CALLS)
    backend.client.close()
    return measured


if __name__ == "__main__":
    main()
