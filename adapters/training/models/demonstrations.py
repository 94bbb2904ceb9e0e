"""Demonstrations: transcripts for supervised training, and the policies that generate them.

Demonstrations are played in the environment, so a model reads the same observations in supervised
training as in rollouts. A turn that fails stays in the transcript with `"weight": 0`, as in
OpenAI's fine-tuning format, and `adapters.training.models.tokenized_examples` excludes it from the
loss. Later turns remain in the loss.

Two policies modify the behavior of the expert:

- Recoveries. A model that imitates an expert without mistakes never encounters an error. With
  `recoveries`, some calls first fail because of a wrong name. These calls are then corrected with
  the help of the error message and the environment's tools.
- Habits. Reinforcement learning can only reinforce behavior that a model sometimes shows.
  `NoisyDemonstrator` makes valid calls, but in most episodes it drops the conditions of a query or
  answers without a query. Reinforcement learning can improve a model that imitates this policy.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import sqlglot
from sqlglot import expressions as exp

from toolgym import registration
from toolgym.calls import ToolCall, parse_calls
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, prompt_messages, turn_messages
from toolgym.policies import ExpertPolicy, Policy, Situation
from toolgym.tasks import Task, TaskSet
from toolgym.tries import seed_of_try

Play = Generator[Any, str, None]
Demonstrator = Literal["sloppy", "expert"]
Habit = Literal["careful", "careless", "guess"]

HABITS: Final[Mapping[Habit, float]] = {"careful": 0.30, "careless": 0.50, "guess": 0.20}
"""Share of the episodes that `NoisyDemonstrator` plays with each habit."""
LAST_WORD: Final = "done"
"""Last assistant turn of a transcript.

Rollouts of trainers continue until a turn without a call, so a model has to learn to produce one.
"""
_GUESSES: Final = 100
_KNOWN_NAMES: Final = 256
_UNKNOWN_SHARE: Final = 0.1  # share of wrong calls
_UNKNOWN_TOOLS: Final = ("search", "lookup", "inspect", "execute")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_EXAMPLE: Final = "\nThis works: "  # the text that `ToolError` writes before an example


class WrongCall(ToolCall):
    """A call that is meant to fail and has the weight 0 in a transcript."""


class RecoveringExpert(ExpertPolicy):
    """The environment's expert, except that some calls first fail and are then corrected.

    Args:
        seed: Random seed for the mistakes. It is combined with the seed of each situation.
        recoveries: Probability that a call first fails, from 0 to 1. Calls that end the episode are
            exempt.
    """

    def __init__(self, seed: int = 0, recoveries: float = 0.0) -> None:
        super().__init__()
        if not 0 <= recoveries <= 1:
            raise ConfigurationError(f"recoveries must be from 0 to 1, got {recoveries!r}.")
        self._seed, self._recoveries = seed, recoveries
        self._names: list[str] = []  # names in earlier calls

    def _plan(self, env: ToolEnv[Any], draw: random.Random) -> Play:
        return env.expert()

    def _play(self, situation: Situation) -> Play:
        """Play the plan. Before some calls, make a wrong call, read its error and correct it."""
        env, key = situation.env, f"{self._seed}-{situation.seed}"
        plan = self._plan(env, random.Random(f"toolgym-sloppy-{key}"))
        draw = random.Random(f"toolgym-recoveries-{key}")
        action = next(plan, None)
        while action is not None:
            # A whole message, in environments where the agent does not write calls.
            if isinstance(action, str):
                yield action
                return
            call = _as_call(action)
            # A mistake takes up to three steps: the wrong call, the correction and the due call.
            has_room = env.episode.steps_left - 3 >= env.step_limit // 2
            is_last = env.tools[call.name].terminal
            if not is_last and has_room and draw.random() < self._recoveries:
                wrong, right = wrong_call(call, env, self._names, draw)
                observation = yield wrong
                if observation.startswith("error[") and right is not None:
                    mending = _mending_call(call, right, env)
                    if mending is not None:
                        yield mending
            if self._recoveries and not is_last:
                self._names += _names_in(call, env)
                self._names = [*dict.fromkeys(self._names)][-_KNOWN_NAMES:]
            observation = yield call
            try:
                action = plan.send(observation)
            except StopIteration:
                return


class NoisyDemonstrator(RecoveringExpert):
    """The environment's expert, but with bad habits.

    Each episode is played
    with one habit, which is drawn with the seed of the episode.

    - `careful`: plays like the expert.
    - `careless`: omits the conditions of the SQL query and reads the answer from the result.
    - `guess`: answers with a number instead of running a query.

    If an environment has a novice (`ToolEnv.novice`), the novice plays the episodes instead.

    Args:
        seed: Random seed for the habits and the mistakes. It is combined with the seed of each
            situation.
        habits: Probability of each habit.
        recoveries: Probability that a call first fails, as for `RecoveringExpert`.
    """

    name = "sloppy"

    def __init__(
        self, seed: int = 0, habits: Mapping[Habit, float] = HABITS, recoveries: float = 0.0
    ) -> None:
        super().__init__(seed, recoveries)
        self._habits = dict(habits)

    def _plan(self, env: ToolEnv[Any], draw: random.Random) -> Play:
        habit = draw.choices(list(self._habits), list(self._habits.values()))[0]
        return env.novice(draw) or self._in_habit(habit, env, draw)

    def _in_habit(self, habit: Habit, env: ToolEnv[Any], draw: random.Random) -> Play:
        expert = env.expert()
        action = next(expert)
        while True:
            call = _as_call(action)
            spec = env.tools[call.name]
            sql = [key for key in call.arguments if spec.code_argument(key) == "sql"]
            if habit == "guess" and sql and not spec.terminal:
                last = next(spec for spec in env.tools.values() if spec.terminal)
                yield ToolCall(last.name, {key: draw.randrange(_GUESSES) for key in last.required})
                return
            if habit == "careless":
                spoilt = {key: without_conditions(str(call.arguments[key])) for key in sql}
                call = ToolCall(call.name, {**call.arguments, **spoilt})
            observation = yield call
            try:
                action = expert.send(observation)
            except StopIteration:
                return


def without_conditions(sql: str) -> str:
    """Return a query without its WHERE and HAVING clauses; a query that lists rows gets LIMIT 1.

    >>> without_conditions("SELECT MAX(price) FROM products WHERE category = 'home'")
    'SELECT MAX(price) FROM products'
    >>> without_conditions("SELECT price FROM products WHERE name = 'lamp'")
    'SELECT price FROM products LIMIT 1'
    """
    tree = _parsed(sql)
    if not isinstance(tree, exp.Select) or not (tree.args.get("where") or tree.args.get("having")):
        return sql
    tree.set("where", None)
    tree.set("having", None)
    aggregates = any(column.find(exp.AggFunc) for column in tree.selects)
    if not aggregates or tree.args.get("group"):
        tree = tree.limit(1)
    return tree.sql(dialect="sqlite")


def wrong_call(
    call: ToolCall, env: ToolEnv[Any], names: list[str], draw: random.Random
) -> tuple[WrongCall, str | None]:
    """Return a plausible call that probably fails, in place of a correct one.

    In SQL, the name of a table or column is replaced by a wrong name. In code of other languages,
    the names are swapped. Any other string is replaced by a wrong name. A tenth of the calls, and
    all calls without a string argument, call a tool that does not exist or is not available yet.

    Args:
        call: The correct call that is due.
        env: The environment. Words of the environment's current question serve as wrong names.
        names: Names in calls of earlier episodes, such as columns of other tables.
        draw: Random number generator.

    Returns:
        The wrong call and the correct name that was replaced. The name is a table or column name in
        SQL, "" in other code, or None if the error alone is enough to correct the call.
    """
    question = env.episode.question.split("\n", 1)[0]
    words = [word for word in _WORD.findall(question) if len(word) > 3 and word.islower()]
    inside = _names_in(call, env)
    known = {*inside, *_WORD.findall(" ".join(turn.observation for turn in env.episode.turns))}
    pool = [*draw.sample(names, min(len(names), len(words))), *words]
    wrong = [name for name in pool if name not in known]
    for key, text in call.arguments.items() if draw.random() > _UNKNOWN_SHARE else ():
        right, changed = None, text
        if not isinstance(text, str):
            continue
        match env.tools[call.name].code_argument(key):
            case None if wrong:
                changed = draw.choice(wrong)
            case "sql" if wrong and inside:
                right = draw.choice(inside)
                changed = re.sub(rf"(?<!\w){right}(?!\w)", draw.choice(wrong), text)
            case str(language) if language != "sql":
                right, turned = "", dict(zip(inside, [*inside[1:], *inside[:1]], strict=True))
                changed = _WORD.sub(lambda word: turned[word[0]], text)  # noqa: B023
        if changed != text:
            return WrongCall(call.name, {**call.arguments, key: changed}), right
    early = [
        name
        for name, spec in env.tools.items()
        if (spec.required or not spec.terminal)  # the call does not end the episode
        and env.example_call(name).get("name", name) != name
    ]
    if early and not call.arguments:
        return WrongCall(draw.choice(early), {}), None
    taken = {name for spec in env.tools.values() for name in (spec.name, *spec.aliases)}
    unknown = [name for name in _UNKNOWN_TOOLS if name not in taken] or ["_".join(env.tools)]
    return WrongCall(draw.choice(unknown), call.arguments), None


def _mending_call(due: ToolCall, right: str, env: ToolEnv[Any]) -> ToolCall | None:
    """Return the call to make between an error in code and the due call, based on observations.

    This is the earlier call whose observation showed the correct name, if there is one; otherwise
    it is the call that the error message suggests.
    """
    *earlier, failed = env.episode.turns
    for turn in earlier if right else ():
        if turn.calls and not any(turn.errors) and right in _WORD.findall(turn.observation):
            return turn.calls[0]
    example = failed.observation.partition(_EXAMPLE)[2].split("\n", 1)[0]
    offered = parse_calls(example, env.tools)
    works = (each for each in offered if each.error is None and not env.tools[each.name].terminal)
    return next((each for each in works if each.arguments != due.arguments), None)


def _names_in(call: ToolCall, env: ToolEnv[Any]) -> list[str]:
    """Return the names in a call, each once: tables and columns of SQL, words of other strings."""
    names: dict[str, None] = {}
    for key, text in call.arguments.items():
        if isinstance(text, str):
            found = _WORD.findall(text)
            if env.tools[call.name].code_argument(key) == "sql":
                tree = _parsed(text)
                nodes = tree.find_all(exp.Table, exp.Column) if isinstance(tree, exp.Query) else ()
                found = sorted({node.name for node in nodes if _WORD.fullmatch(node.name)})
            names |= dict.fromkeys(found)
    return [*names]


def _parsed(sql: str) -> Any:
    try:
        return sqlglot.parse_one(sql, read="sqlite")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def _as_call(action: Any) -> ToolCall:
    """Convert an action of an expert, which may be a dict, to a call."""
    if isinstance(action, ToolCall):
        return action
    return ToolCall(str(action["name"]), dict(action.get("arguments") or {}))


def has_novice(env_id: str) -> bool:
    """Return whether an environment has a novice.

    The result is False if the environment is made by a function or is not registered.
    """
    try:
        made_by = registration.environment_creator(env_id)
    except ConfigurationError:
        return False
    return getattr(made_by, "novice", ToolEnv.novice) is not ToolEnv.novice


def playable_tasks(tasks: TaskSet[Task], n: int | None, seed: int) -> TaskSet[Task]:
    """Return playable tasks in an order that the seed determines.

    Args:
        tasks: The tasks.
        n: Number of tasks; None means all.
        seed: Seed of the order.

    Raises:
        ConfigurationError: If `n` is below 1, or no task is playable.
    """
    if n is not None and n < 1:
        raise ConfigurationError(f"n must be at least 1, or None for all tasks; got {n}.")
    shuffled = tasks.shuffle(seed)
    chosen = shuffled.playable() if n is None else shuffled.first_playable(n)
    if not len(chosen):
        raise ConfigurationError(tasks.nothing_playable())
    return chosen


def demonstrate(
    env_id: str,
    n: int,
    *,
    demonstrator: Demonstrator = "sloppy",
    recoveries: float = 0.0,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **env_kwargs: Any,
) -> list[list[Message]]:
    """Play episodes and return their transcripts.

    Args:
        env_id: A registered environment with an expert.
        n: Number of episodes. If `n` exceeds the number of tasks, tasks are played again with a
            different seed.
        demonstrator: `sloppy` is `NoisyDemonstrator`, `expert` is `RecoveringExpert`.
        recoveries: Probability that a call first fails and is then corrected, from 0 to 1.
        seed: Seed of the task order and of the environment's random draws.
        progress: Function that is called after each episode with the number of episodes played and
            `n`.
        env_kwargs: Arguments of the environment. The environment's default split must be a training
            split.

    Returns:
        Chat messages of each episode, including the prompt. The last message is `LAST_WORD`.

    Raises:
        ConfigurationError: If `n` or `recoveries` is out of range, no task is playable, or the
            environment has no expert.
    """
    if n < 1:
        raise ConfigurationError(f"demonstrations must be at least 1, got {n}.")
    env = registration.make(env_id, **env_kwargs)
    ids = playable_tasks(env.tasks, n, seed).ids
    player = NoisyDemonstrator if demonstrator == "sloppy" else RecoveringExpert
    policy = player(seed, recoveries=recoveries)
    tries = ((ids[number % len(ids)], seed * 1_000_003 + number) for number in range(n))
    transcripts = []
    for _ in play_episodes(env, policy, tries):
        transcripts.append(transcript(env, LAST_WORD))
        if progress is not None:
            progress(len(transcripts), n)
    return transcripts


def first_tries(task_ids: Iterable[str], seed: int) -> Iterator[tuple[str, int]]:
    """Yield the id of each task with the seed of its first attempt, for `play_episodes`."""
    return ((task_id, seed_of_try(seed, task_id, 0)) for task_id in task_ids)


def play_episodes(
    env: ToolEnv[Any], policy: Policy, tries: Iterable[tuple[str, int]]
) -> Iterator[None]:
    """Play episodes and yield after each one, while the environment still holds the episode.

    Args:
        env: The environment.
        policy: The policy that acts. An empty action ends the episode without an answer.
        tries: Task id and seed of each episode.
    """
    for task_id, seed in tries:
        observation, _ = env.reset(seed=seed, options={"task_id": task_id})
        memory: dict[str, Any] = {}
        while not env.episode.over:
            (action,) = policy.act([Situation(env, observation, seed, memory)])
            if isinstance(action, str) and not action.strip():
                env.finish()
                break
            observation, *_ = env.step(action)
        yield


def transcript(env: ToolEnv[Any], final: str | None = None) -> list[Message]:
    """Return the current episode as chat messages.

    Messages of turns that failed or were repaired have the weight 0.

    Args:
        env: The environment. If the agent does not write calls, the transcript ends with its
            only message.
        final: Text of a final assistant turn without a call; None adds no turn.
    """
    messages, has_calls = prompt_messages(env), bool(env.tool_schemas())
    for turn in env.episode.turns:
        spoken, *results = turn_messages(turn)
        is_repaired = any(call.repairs for call in turn.calls)
        if any(turn.errors) or is_repaired or isinstance(turn.action, WrongCall):
            spoken = {**spoken, "weight": 0}
        messages += [spoken, *results] if has_calls else [spoken]
    return (
        messages
        if final is None or not has_calls
        else [*messages, {"role": "assistant", "content": final}]
    )
