"""Demonstrations: transcripts to imitate, played through the real environment.

Reinforcement learning can only make likelier what a model sometimes does. A model from scratch does
nothing yet, so it first imitates; and if it imitated an expert to perfection, nothing would be left
to improve. `SloppyPolicy` therefore knows the trade, and is careless: every call it makes is well
formed, and the right way is among its habits, but most of the time it forgets the condition of a
query or answers without asking. (A clean expert imitated only halfway does not do: its mistakes are
slips of copying, spread over everything, and a few thousand rollouts cannot mend those.)

It plays the environment's own expert and spoils what that one does, so it goes wherever an expert
is. The observations are the environment's, down to the character.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, Literal

import sqlglot
from sqlglot import expressions as exp

from toolgym import registration
from toolgym.calls import ToolCall
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, episode_messages
from toolgym.policies import ExpertPolicy, Policy, Situation

Habit = Literal["careful", "careless", "guess"]
Demonstrator = Literal["sloppy", "expert"]

HABITS: Final[Mapping[Habit, float]] = {"careful": 0.30, "careless": 0.50, "guess": 0.20}
"""How often an episode is played in which way; the shares sum to 1."""
LAST_WORD: Final = "done"
"""Closes a transcript: trainers go on until a turn without a call, so that turn must be learnt."""
_GUESSES: Final = 100


class SloppyPolicy:
    """The expert on a careless day: each episode is played in one habit, drawn by its seed.

    Args:
        seed: Of the habits and guesses.
        habits: How likely each is; see `HABITS`.

    careful: as the expert plays. careless: without the conditions of its SQL, and with the answer
    read from what that returned. guess: a number for an answer as soon as a query is due.
    """

    name = "sloppy"

    def __init__(self, seed: int = 0, habits: Mapping[Habit, float] = HABITS) -> None:
        self._seed = seed
        self._habits = dict(habits)
        self._playing: dict[int, Generator[Any, str, None]] = {}

    def act(self, situations: Sequence[Situation]) -> list[Any]:
        """The next call of each episode; nothing once the expert has no more to say."""
        return [self._next(situation) for situation in situations]

    def _next(self, situation: Situation) -> Any:
        try:
            if situation.slot not in self._playing:
                self._playing[situation.slot] = self._play(situation)
                return next(self._playing[situation.slot])
            return self._playing[situation.slot].send(situation.observation)
        except StopIteration:
            return ""

    def _play(self, situation: Situation) -> Generator[Any, str, None]:
        draw = random.Random(f"toolgym-sloppy-{self._seed}-{situation.seed}")
        habit = draw.choices(list(self._habits), list(self._habits.values()))[0]
        env, expert = situation.env, situation.env.expert()
        action = next(expert)
        while True:
            if habit == "guess" and _is_query(action, env):
                yield _guess(env, draw)
                return
            observation = yield careless(action, env) if habit == "careless" else action
            try:
                action = expert.send(observation)
            except StopIteration:
                return


def _call(action: Any) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call in either form that experts use."""
    if isinstance(action, ToolCall):
        return action.name, dict(action.arguments)
    return str(action["name"]), dict(action.get("arguments") or {})


def _code_arguments(action: Any, env: ToolEnv[Any]) -> list[str]:
    name, arguments = _call(action)
    spec = env.tools.get(name)
    return [key for key in arguments if spec is not None and spec.code_argument(key) == "sql"]


def _is_query(action: Any, env: ToolEnv[Any]) -> bool:
    name, _ = _call(action)
    return not env.tools[name].terminal and bool(_code_arguments(action, env))


def careless(action: Any, env: ToolEnv[Any]) -> ToolCall:
    """The same call with every SQL argument stripped of its conditions."""
    name, arguments = _call(action)
    for key in _code_arguments(action, env):
        arguments[key] = without_conditions(str(arguments[key]))
    return ToolCall(name, arguments)


def without_conditions(sql: str) -> str:
    """A query that asks of all rows what was asked of some.

    What would list many rows instead of a few is cut to the first one: the careless take the first
    thing they see.

    >>> without_conditions("SELECT MAX(price) FROM products WHERE category = 'home'")
    'SELECT MAX(price) FROM products'
    >>> without_conditions("SELECT price FROM products WHERE name = 'lamp'")
    'SELECT price FROM products LIMIT 1'
    """
    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except sqlglot.errors.ParseError:
        return sql
    if not isinstance(tree, exp.Select) or not (tree.args.get("where") or tree.args.get("having")):
        return sql
    tree.set("where", None)
    tree.set("having", None)
    aggregates = any(column.find(exp.AggFunc) for column in tree.selects)
    if not aggregates or tree.args.get("group"):
        tree = tree.limit(1)
    return tree.sql(dialect="sqlite")


def _guess(env: ToolEnv[Any], draw: random.Random) -> ToolCall:
    """A call of the terminal tool with a number wherever it needs something."""
    terminal = next(spec for spec in env.tools.values() if spec.terminal)
    return ToolCall(terminal.name, {key: draw.randrange(_GUESSES) for key in terminal.required})


def demonstrate(
    env_id: str,
    n: int,
    *,
    demonstrator: Demonstrator = "sloppy",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **env_kwargs: Any,
) -> list[list[Message]]:
    """Play n episodes and return their transcripts.

    Args:
        env_id: A registered environment with an expert.
        n: How many; beyond the number of tasks each is played again, in another habit.
        demonstrator: Who plays.
        seed: Chooses tasks and habits.
        progress: Called with how many are done and how many there are.
        env_kwargs: For the environment; the training split is its default.

    Returns:
        Chat messages, prompt included, each transcript closed by an assistant's `LAST_WORD`.

    Raises:
        ConfigurationError: n is below 1, or no task is playable.
    """
    if n < 1:
        raise ConfigurationError(f"demonstrations must be at least 1, got {n}.")
    env = registration.make(env_id, **env_kwargs)
    ids = env.tasks.shuffle(seed).first_playable(n).ids
    if not ids:
        raise ConfigurationError(f"no task of {env.tasks.name} is playable.")
    policy: Policy = SloppyPolicy(seed) if demonstrator == "sloppy" else ExpertPolicy()
    transcripts = []
    for slot in range(n):
        transcripts.append(_play(env, policy, slot, ids[slot % len(ids)], seed))
        if progress is not None:
            progress(slot + 1, n)
    return transcripts


def _play(env: ToolEnv[Any], policy: Policy, slot: int, task_id: str, seed: int) -> list[Message]:
    observation, _ = env.reset(options={"task_id": task_id})
    while not env.episode.over:
        situation = Situation(slot, env, observation, seed * 1_000_003 + slot)
        action = policy.act([situation])[0]
        if not action:
            env.finish()  # it has no more to say: a transcript that stops short
            break
        observation, *_ = env.step(action)
    return episode_messages(env, final=LAST_WORD)
