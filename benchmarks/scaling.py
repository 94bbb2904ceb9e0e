"""What environments cost a training on many GPUs: measured steps, simulated rollouts.

The processor time of resets, steps and scores is measured on this machine, from episodes of the
environment's expert whose queries nobody has seen. From these, and from assumptions about the model
that the table's head names, rollouts on 8 to 1,024 GPUs are simulated event by event: every episode
writes a turn on its GPU, waits for a core that plays it, and goes on. Nothing here ran on a GPU.

    python benchmarks/scaling.py [--env sqlgym/Explore-v0] [--gpus 8,64,256,1024] [--seconds 0.004]

Three places where environments may run are compared: in the trainer's processes (one for each
GPU), in one server that all GPUs ask, and in a server for each 64 GPUs. A process plays one step
after the other: threads do not make Python and SQLite faster (docs/sql-guard.md).
`together` waits after every turn until all episodes of a GPU have written theirs, as TRL's loop
does; `apart` does not, as the agent loops of verl and SkyRL do not.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from toolgym import policies, registration
from toolgym.env import ToolEnv
from toolgym.policies import Situation

GPUS_PER_SERVER = 64
PLACES = ("beside each GPU", "one server", f"a server for {GPUS_PER_SERVER} GPUs")
_fresh = count()


@dataclass(frozen=True)
class Costs:
    """Processor seconds of the parts of an episode, one number for each that was measured."""

    resets: list[float]
    steps: list[float]
    turns: list[int]


@dataclass(frozen=True)
class Load:
    """What GPUs do, by assumption.

    Attributes:
        rollouts: Episodes that a GPU plays at the same time.
        tokens: Mean of what a model writes in a turn; geometric, since few are long.
        second_per_token: Of one episode, with all of its GPU's episodes in the batch.
        network: Seconds to a server and back.
    """

    rollouts: int
    tokens: int
    second_per_token: float
    network: float


def unseen(action: Any) -> Any:
    """The same action; its query is one that nobody has seen, so no cache answers it."""
    if isinstance(action, dict) and "sql" in action.get("arguments", {}):
        sql = action["arguments"]["sql"].rstrip("; ")
        return {**action, "arguments": {**action["arguments"], "sql": f"{sql} -- {next(_fresh)}"}}
    return action


def measure(env_id: str, episodes: int, env_kwargs: dict[str, Any]) -> Costs:
    """Play episodes of the expert, and time each part by the processor."""
    env: ToolEnv[Any] = registration.make(env_id, **env_kwargs)
    expert = policies.ExpertPolicy()
    ids = env.tasks.shuffle(0).first_playable(episodes).playable().ids
    costs = Costs([], [], [])
    for number in range(-len(ids), episodes):  # each task once before, as in any second epoch
        begun = time.process_time()
        seen, _ = env.reset(options={"task_id": ids[number % len(ids)]})
        spent, steps = time.process_time() - begun, []
        while not env.episode.over:
            action = unseen(expert.act([Situation(number, env, seen, 0)])[0])
            begun = time.process_time()
            seen, *_ = env.step(action)
            steps.append(time.process_time() - begun)
        if number >= 0:
            costs.resets.append(spent)
            costs.steps.extend(steps)
            costs.turns.append(len(steps))
    return costs


Episode = list[tuple[float, float]]
"""For each turn, seconds to write it and to play it; the first plays the reset."""


@dataclass
class Writer:
    """Episodes that wait for each other after every turn: all of a GPU, or a single one."""

    episodes: list[Episode]
    place: Process
    turn: int = 0
    unanswered: int = 0
    answered: float = 0.0


class Process:
    """A process that plays steps, one after the other."""

    def __init__(self) -> None:
        self._free = 0.0

    def play(self, at: float, seconds: float) -> float:
        """When a step that arrives then is over; steps must arrive in order of time."""
        self._free = max(at, self._free) + seconds
        return self._free


def episodes_of(load: Load, costs: Costs, draw: random.Random) -> list[Episode]:
    """What the episodes of one GPU will take, turn by turn."""
    made = []
    step_draw = random.Random(draw.random())  # so that texts are as long whatever steps take
    for _ in range(load.rollouts):
        episode = [(0.0, step_draw.choice(costs.resets))]
        for _ in range(draw.choice(costs.turns)):
            tokens = math.ceil(draw.expovariate(1 / load.tokens))
            episode.append((tokens * load.second_per_token, step_draw.choice(costs.steps)))
        made.append(episode)
    return made


def simulate(
    gpus: int, load: Load, costs: Costs, places: Sequence[Process], *, together: bool, seed: int = 0
) -> float:
    """Seconds until every episode of a batch of rollouts is over.

    Args:
        gpus: Each writes `load.rollouts` episodes.
        load: How fast.
        costs: What resets and steps take; each is one of those that were measured.
        places: Where they are played; a GPU asks the one of its number modulo how many there are.
        together: A GPU's episodes are played when all have written their turn, and write the next
            when all have been played.
        seed: The same seed gives the same episodes, whatever the places.
    """
    draw, order = random.Random(seed), count()
    events: list[tuple[float, int, Writer, float]] = []

    def write(writer: Writer, at: float) -> None:
        turns = [each[writer.turn] for each in writer.episodes if writer.turn < len(each)]
        writer.unanswered = len(turns)
        longest = max((seconds for seconds, _ in turns), default=0.0)
        for seconds, step in turns:
            ready = at + (longest if together else seconds)
            heapq.heappush(events, (ready, next(order), writer, step))

    for gpu in range(gpus):
        episodes, place = episodes_of(load, costs, draw), places[gpu % len(places)]
        for part in [episodes] if together else [[episode] for episode in episodes]:
            write(Writer(part, place), 0.0)
    end = 0.0
    while events:
        at, _, writer, step = heapq.heappop(events)
        writer.answered = max(writer.answered, writer.place.play(at, step) + load.network)
        end = max(end, writer.answered)
        writer.unanswered -= 1
        if not writer.unanswered:
            writer.turn += 1
            write(writer, writer.answered)
    return end


def places_for(name: str, gpus: int) -> list[Process]:
    """The processes of a placement."""
    count_of = {PLACES[0]: gpus, PLACES[1]: 1, PLACES[2]: math.ceil(gpus / GPUS_PER_SERVER)}
    return [Process() for _ in range(count_of[name])]


def overheads(gpus: int, load: Load, costs: Costs, *, together: bool) -> list[float]:
    """By which share environments make the rollouts longer, at each of the places."""
    near, free = replace(load, network=0.0), Costs([0.0], [0.0], costs.turns)
    alone = simulate(gpus, near, free, places_for(PLACES[0], gpus), together=together)
    shares = []
    for name in PLACES:
        own = near if name == PLACES[0] else load
        longer = simulate(gpus, own, costs, places_for(name, gpus), together=together)
        shares.append(longer / alone - 1)
    return shares


def main() -> None:
    """Measure, simulate and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="sqlgym/Explore-v0")
    parser.add_argument("--dataset", help="a name, or a folder")
    parser.add_argument("--episodes", type=int, default=200, help="that are measured")
    parser.add_argument("--gpus", default="8,64,256,1024")
    parser.add_argument("--rollouts", type=int, default=64, help="of a GPU at the same time")
    parser.add_argument("--tokens", type=int, default=150, help="of a turn, on average")
    parser.add_argument("--second-per-token", type=float, default=0.012)
    parser.add_argument("--network", type=float, default=0.001, help="seconds to a server and back")
    parser.add_argument(
        "--slower", type=float, default=1.0, help="steps take so many times as long"
    )
    asked = parser.parse_args()
    costs = measure(asked.env, asked.episodes, {"dataset": asked.dataset} if asked.dataset else {})
    print(
        f"{asked.env}: {len(costs.turns)} episodes of {statistics.mean(costs.turns):.1f} turns;"
        f" reset {1e6 * statistics.median(costs.resets):,.0f} us, step"
        f" {1e6 * statistics.median(costs.steps):,.0f} us (mean"
        f" {1e6 * statistics.mean(costs.steps):,.0f}, slowest"
        f" {1e6 * max(costs.steps):,.0f}), {1 / statistics.mean(costs.steps):,.0f} steps a second"
        f" and core"
    )
    costs = replace(costs, steps=[asked.slower * step for step in costs.steps])
    load = Load(asked.rollouts, asked.tokens, asked.second_per_token, asked.network)
    print(
        f"assumed: {load.rollouts} rollouts a GPU, {load.tokens} tokens a turn,"
        f" {1e3 * load.second_per_token:g} ms a token, {1e3 * load.network:g} ms to a server and"
        f" back, steps {asked.slower:g} times as long as measured"
    )
    numbers = [int(word) for word in asked.gpus.split(",")]
    print(f"{'what rollouts take longer by':32}" + "".join(f"{gpus:>9}" for gpus in numbers))
    for together in (True, False):
        columns = [overheads(gpus, load, costs, together=together) for gpus in numbers]
        way = "together" if together else "apart"
        for name, row in zip(PLACES, zip(*columns, strict=True), strict=True):
            print(f"{way + ', ' + name:32}" + "".join(f"{100 * share:8.2f}%" for share in row))


if __name__ == "__main__":
    main()
