"""Demonstrations: transcripts to imitate, played through the real environment, and their player.

The observations are the environment's, down to the character, so what a model reads while it
imitates is what it will read when it acts. What went wrong in a demonstration is there to be read
and not to be learnt: an assistant's turn with an error or a repair carries `"weight": 0`, as in
OpenAI's fine-tuning format, and `adapters.training.models.tokenized_examples` leaves it out of the
loss. The turn after it is learnt: how to go on.

Reinforcement learning can only make likelier what a model sometimes does. A model from scratch does
nothing yet, so it first imitates; and if it imitated an expert to perfection, nothing would be left
to improve. `NoisyDemonstrator` masters every call, but most of the time it forgets the condition of
a query or answers without asking. (An expert imitated only halfway does not do: its mistakes are
slips of copying, spread over everything, and a few thousand rollouts cannot mend those.)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import sqlglot
from sqlglot import expressions as exp

from toolgym import registration
from toolgym.calls import ToolCall, render_call
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, prompt_messages, turn_messages
from toolgym.policies import ExpertPolicy, Policy, Situation
from toolgym.tasks import Task, TaskSet
from toolgym.tries import seed_of_try


def playable_tasks(tasks: TaskSet[Task], n: int | None, seed: int) -> TaskSet[Task]:
    """All playable tasks or `n` of them, in an order chosen by the seed.

    A task whose gold leaves a choice open, or whose file is gone, would teach that right answers
    are wrong; its task set refuses it, with a reason.

    Raises:
        ConfigurationError: `n` is below 1, or none is playable.
    """
    if n is not None and n < 1:
        raise ConfigurationError(f"n must be at least 1, or None for all tasks; got {n}.")
    shuffled = tasks.shuffle(seed)
    chosen = shuffled.playable() if n is None else shuffled.first_playable(n)
    if not len(chosen):
        raise ConfigurationError(tasks.nothing_playable())
    return chosen


Habit = Literal["careful", "careless", "guess"]

HABITS: Final[Mapping[Habit, float]] = {"careful": 0.30, "careless": 0.50, "guess": 0.20}
"""How often an episode is played in which way; the shares sum to 1."""
STUMBLES: Final = 0.08
"""How often a call that does not end the episode is garbled first."""
_GUESSES: Final = 100
_LONGEST_LOSS: Final = 24  # characters that a garbled call has lost at most


class NoisyDemonstrator(ExpertPolicy):
    """An expert with mistakes: each episode is played in one habit, drawn by its seed.

    Now and then it garbles a call, reads the error, and makes the call again as it should be, so a
    model that imitates it has seen errors. It spoils what the environment's own expert does, so it
    plays wherever there is one; a novice (`ToolEnv.novice`) knows better which mistakes are made in
    its environment, and is played instead.

    Args:
        habits: How likely each is; see `HABITS`.
        stumbles: See `STUMBLES`.

    careful: as the expert plays. careless: without the conditions of its SQL, and with the answer
    read from what that returned. guess: a number for an answer as soon as a query is due. Where
    the environment has a novice, habits and stumbles are the novice's own.
    """

    name = "sloppy"

    def __init__(
        self, seed: int = 0, habits: Mapping[Habit, float] = HABITS, stumbles: float = STUMBLES
    ) -> None:
        super().__init__()
        self._seed = seed
        self._habits = dict(habits)
        self._stumbles = stumbles

    def _play(self, situation: Situation) -> Generator[Any, str, None]:
        draw = random.Random(f"toolgym-sloppy-{self._seed}-{situation.seed}")
        habit = draw.choices(list(self._habits), list(self._habits.values()))[0]
        env = situation.env
        novice = env.novice(draw)
        if novice is not None:
            yield from novice
            return
        expert = env.expert()
        action = next(expert)
        while True:
            if habit == "guess" and _is_query(action, env):
                yield _guess(env, draw)
                return
            call = careless(action, env) if habit == "careless" else _as_call(action)
            if not env.tools[call.name].terminal and draw.random() < self._stumbles:
                yield garbled(call, draw)
            observation = yield call
            try:
                action = expert.send(observation)
            except StopIteration:
                return


def has_novice(env_id: str) -> bool:
    """Whether an environment brings a novice of its own, who plays in place of the habits.

    Nothing is made: one that a function makes, and one that nobody has registered, has none.
    """
    try:
        made_by = registration.environment_creator(env_id)
    except ConfigurationError:
        return False
    return getattr(made_by, "novice", ToolEnv.novice) is not ToolEnv.novice


def careless(action: Any, env: ToolEnv[Any]) -> ToolCall:
    """The same call with every SQL argument stripped of its conditions."""
    call = _as_call(action)
    spoilt = {key: without_conditions(str(call.arguments[key])) for key in _sql_of(call, env)}
    return ToolCall(call.name, {**call.arguments, **spoilt})


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
    except (sqlglot.errors.SqlglotError, RecursionError):
        return sql
    if not isinstance(tree, exp.Select) or not (tree.args.get("where") or tree.args.get("having")):
        return sql
    tree.set("where", None)
    tree.set("having", None)
    aggregates = any(column.find(exp.AggFunc) for column in tree.selects)
    if not aggregates or tree.args.get("group"):
        tree = tree.limit(1)
    return tree.sql(dialect="sqlite")


def garbled(call: ToolCall, draw: random.Random) -> str:
    """The text of a call that has lost a piece, as a model that slips would write it."""
    text = render_call(call)
    inner = text.index("{") + 1, text.rindex("}")
    start = draw.randrange(*inner)
    return text[:start] + text[min(start + draw.randint(1, _LONGEST_LOSS), inner[1]) :]


def _as_call(action: Any) -> ToolCall:
    """A call, in whichever form an expert gives it."""
    if isinstance(action, ToolCall):
        return action
    return ToolCall(str(action["name"]), dict(action.get("arguments") or {}))


def _sql_of(call: ToolCall, env: ToolEnv[Any]) -> list[str]:
    """The arguments of a call that hold SQL."""
    spec = env.tools[call.name]
    return [key for key in call.arguments if spec.code_argument(key) == "sql"]


def _is_query(action: Any, env: ToolEnv[Any]) -> bool:
    call = _as_call(action)
    return not env.tools[call.name].terminal and bool(_sql_of(call, env))


def _guess(env: ToolEnv[Any], draw: random.Random) -> ToolCall:
    """A call of the terminal tool with a number wherever it needs something."""
    terminal = next(spec for spec in env.tools.values() if spec.terminal)
    return ToolCall(terminal.name, {key: draw.randrange(_GUESSES) for key in terminal.required})


Demonstrator = Literal["sloppy", "expert"]

LAST_WORD: Final = "done"
"""Closes a transcript: trainers go on until a turn without a call, so that turn must be learnt."""


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
        ConfigurationError: n is below 1, no task is playable, or the environment has no expert.
    """
    if n < 1:
        raise ConfigurationError(f"demonstrations must be at least 1, got {n}.")
    env = registration.make(env_id, **env_kwargs)
    ids = playable_tasks(env.tasks, n, seed).ids
    policy: Policy = NoisyDemonstrator(seed) if demonstrator == "sloppy" else ExpertPolicy()
    tries = ((ids[number % len(ids)], seed * 1_000_003 + number) for number in range(n))
    transcripts = []
    for _ in play_episodes(env, policy, tries):
        transcripts.append(_transcript(env))
        if progress is not None:
            progress(len(transcripts), n)
    return transcripts


def first_tries(task_ids: Iterable[str], seed: int) -> Iterator[tuple[str, int]]:
    """The first try at each task, for `play_episodes`."""
    return ((task_id, seed_of_try(seed, task_id, 0)) for task_id in task_ids)


def play_episodes(
    env: ToolEnv[Any], policy: Policy, tries: Iterable[tuple[str, int]]
) -> Iterator[None]:
    """Play episodes, and yield after each, while the environment still holds it.

    Args:
        policy: Who acts. An action without text ends its episode, unanswered.
        tries: For each episode the task's id and the seed of its situations.
    """
    for task_id, seed in tries:
        observation, _ = env.reset(options={"task_id": task_id})
        memory: dict[str, Any] = {}
        while not env.episode.over:
            (action,) = policy.act([Situation(env, observation, seed, memory)])
            if isinstance(action, str) and not action.strip():
                env.finish()
                break
            observation, *_ = env.step(action)
        yield


def _transcript(env: ToolEnv[Any]) -> list[Message]:
    messages = prompt_messages(env)
    for turn in env.episode.turns:
        spoken, *results = turn_messages(turn)
        if any(turn.errors) or any(call.repairs for call in turn.calls):
            spoken = {**spoken, "weight": 0}
        messages += [spoken, *results]
    return [*messages, {"role": "assistant", "content": LAST_WORD}]
