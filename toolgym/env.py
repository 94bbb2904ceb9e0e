"""`ToolEnv`: a Gymnasium environment whose actions are what a model wrote.

`step` takes a text (or an already parsed call), finds the calls in it, binds their arguments, runs
the tools, and answers with text. Whatever the agent gets wrong is an observation; see
`toolgym.errors` for what is not, and `ToolEnv._execute_tool` for the one boundary between the two.
A family says how an episode begins, what its tools do, and how an expert would play.
"""

from __future__ import annotations

import json
import math
import random
from abc import abstractmethod
from collections.abc import Generator, Hashable
from typing import Any, ClassVar, Generic, Literal, TypeVar

import gymnasium as gym
from gymnasium.error import ResetNeeded

from toolgym.calls import ToolCall, bind_call, errors, parse_calls
from toolgym.episode import Episode, Info, Outcome, Turn, budget_notice
from toolgym.errors import ConfigurationError, EnvironmentFault, ToolError
from toolgym.family import TaskFamily
from toolgym.rewards import Ledger, Mistake, RewardConfig
from toolgym.sanitize import encodable, escape_control_tokens
from toolgym.spaces import UnicodeText
from toolgym.tasks import Task, TaskSet
from toolgym.tools import ToolSpec, tools_of

T = TypeVar("T", bound=Task)
HOW_TO_CALL = 'Call a tool like this: <tool_call>{"name": ..., "arguments": {...}}</tool_call>'


class ToolEnv(gym.Env[str, Any], Generic[T]):
    """An environment of tools; a subclass adds `begin`, `expert` and methods marked `@tool`.

    Args:
        tasks: What episodes are drawn from.
        step_limit: Calls that an episode allows; the terminal call is free.
        parsing: "lenient" repairs what can be repaired and records it; "strict" is the wall that
            tools with plain Python signatures are, for comparison.
        rewards: Weights of the score, a dict or a `RewardConfig`.
        render_mode: None or "ansi".

    Raises:
        ConfigurationError: An argument is out of range; the message says which and why.

    A complete environment:

    >>> from toolgym import Task, TaskSet, ToolEnv, tool
    >>> class Echo(ToolEnv):
    ...     '''Say the word.'''
    ...     def begin(self, task):
    ...         return task.question
    ...     def expert(self):
    ...         yield {"name": "say", "arguments": {"word": self.task.extra["word"]}}
    ...     @tool(terminal=True)
    ...     def say(self, word: str) -> str:
    ...         '''Say a word and be done.
    ...
    ...         Args:
    ...             word: The word.
    ...         '''
    ...         return self.submit(word == self.task.extra["word"])
    >>> env = Echo(TaskSet([Task("a", "Say hi.", extra={"word": "hi"})]))
    >>> _ = env.reset(seed=0)
    >>> env.step('<tool_call>{"name": "say", "arguments": {"word": "hi"}}</tool_call>')[1:3]
    (1.0, True)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]
    tools: dict[str, ToolSpec]
    """The tools by name: those of the class, unless the environment was made with fewer."""
    waits: bool = False
    """A tool waits for a server, so several environments are stepped at the same time."""
    family: ClassVar[TaskFamily] = TaskFamily()
    """What is known of the tasks beyond playing them; the commands on data sets ask it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.tools = tools_of(cls)

    def __init__(
        self,
        tasks: TaskSet[T],
        *,
        step_limit: int = 15,
        parsing: Literal["lenient", "strict"] = "lenient",
        rewards: RewardConfig | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if isinstance(step_limit, bool) or not isinstance(step_limit, int) or step_limit < 2:
            raise ConfigurationError(
                f"step_limit must be an integer of at least 2, got {step_limit!r}."
            )
        if parsing not in ("lenient", "strict"):
            raise ConfigurationError(f'parsing must be "lenient" or "strict", got {parsing!r}.')
        if render_mode not in (None, "ansi"):
            raise ConfigurationError(f'render_mode must be None or "ansi", got {render_mode!r}.')
        self.tasks = tasks
        self.step_limit = step_limit
        self.parsing = parsing
        self.reward_config = RewardConfig.of(rewards)
        self.render_mode = render_mode
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self._episode: Episode | None = None

    # What a family provides -----------------------------------------------------------------------

    @abstractmethod
    def begin(self, task: T) -> str:
        """Prepare an episode of this task and return what the agent is asked.

        Raises:
            EnvironmentFault: What the task needs is not there.
        """

    def expert(self) -> Generator[Any, str, None]:
        """Play the current episode as an expert: yield actions, receive observations.

        It takes its answer from what it was shown, never from the gold, so that what it cannot read
        a model cannot either.
        """
        raise ConfigurationError(f"{type(self).__name__} has no expert; write its `expert` method.")

    def novice(self, draw: random.Random) -> Generator[Any, str, None] | None:
        """Play the current episode as one who masters the tools and not yet the trade.

        A model from scratch imitates this before it learns: reinforcement can only make likelier
        what it sometimes does. None: there is no such player, and the expert's play is spoilt.
        """
        return None

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """A whole call of this tool that works in this episode, for error messages.

        Returns:
            `{"name": ..., "arguments": {...}}`, or {} to keep the generic example of the error.
        """
        return {}

    # The Gymnasium contract -----------------------------------------------------------------------

    def reset(  # type: ignore[override]  # a TypedDict is a dict of known keys
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, Info]:
        """Begin an episode.

        Args:
            seed: Chooses the task, the same on every machine.
            options: `{"task_id": ...}` asks for one task.

        Returns:
            The question, the budget and how to call; and the first `info`.

        Raises:
            TaskRefused: The task asked for cannot be played fairly.
            ConfigurationError: There is no such task or no such option.
            EnvironmentFault: What the task needs is not there.
        """
        super().reset(seed=seed)
        unknown = set(options or {}) - {"task_id"}
        if unknown:
            raise ConfigurationError(f"reset takes the option task_id only, got {sorted(unknown)}.")
        task_id = (options or {}).get("task_id")
        if task_id is not None:
            task = self.tasks.require(str(task_id))
        else:
            drawn = int(self.np_random.integers(2**31)) if seed is None else seed
            task = self.tasks.draw(drawn)
        self._episode = Episode(task, Ledger(self.reward_config), self.step_limit)
        question = safe_text(self.begin(task))
        self._episode.question = question
        return f"{question}\n{self.budget_line()} {HOW_TO_CALL}", self._episode.info((), ())

    def step(self, action: Any) -> tuple[str, float, bool, bool, Info]:  # type: ignore[override]
        """Run the calls in an action.

        Args:
            action: What a model wrote, or a parsed call, or several; anything else is an error
                observation, but for the fault that kept a policy from acting, which is raised.

        Returns:
            Observation, change of the score, terminated (answered), truncated (budget spent), info.

        Raises:
            EnvironmentFault: The machine failed; the episode is unscored.
        """
        if isinstance(action, EnvironmentFault):
            self._leave_unscored(action)
            raise action
        calls = tuple(parse_calls(action, self.tools, parsing=self.parsing))
        return self._take_turn(action, calls)

    def call(self, tool_name: str, /, *args: Any, **kwargs: Any) -> str:
        """Call one tool from Python; it spends budget and earns reward as in `step`.

        Returns:
            The observation.
        """
        bound = bind_call(tool_name, kwargs, self.tools, self.parsing, args=args)
        return self._take_turn(bound, (bound,))[0]

    def render(self) -> str | None:
        """The episode so far as text, with `render_mode="ansi"`."""
        if self.render_mode is None:
            return None
        episode = self.episode
        lines = [f"? {episode.question}"]
        for turn in episode.turns:
            lines += [f"> {_action_text(turn.action)}", turn.observation]
        return "\n".join([*lines, f"score {episode.ledger.score():.3f}"])

    # What tools and callers use -------------------------------------------------------------------

    @property
    def episode(self) -> Episode:
        """The current episode.

        Raises:
            ResetNeeded: `reset` was not called yet.
        """
        if self._episode is None:
            raise ResetNeeded("call reset() before anything else.")
        return self._episode

    @property
    def task(self) -> T:
        """The task being played."""
        return self.episode.task  # type: ignore[return-value]

    @property
    def outcome(self) -> Outcome:
        """Correct or not, and the bin of the progress; it is compared within a group."""
        return self.episode.outcome

    def tool_schemas(self) -> list[dict[str, Any]]:
        """The tools in the OpenAI function format."""
        return [spec.schema() for spec in self.tools.values()]

    def budget_line(self) -> str:
        """The sentence on the agent's budget."""
        ends = " or ".join(spec.name for spec in self.tools.values() if spec.terminal)
        return (
            f"You have {self.step_limit} calls; {ends} is free and ends the episode:"
            " give it before they are used up."
        )

    def reach(self, progress: float, best: bool = True) -> None:
        """For tools: the agent reached a state worth `progress`, 0 to 1.

        Args:
            best: Only the best state of an episode counts; otherwise the last one, so that trying
                everything earns no more than the last try.
        """
        self.episode.ledger.reach(progress, best)

    def submit(
        self,
        correct: bool,
        message: str = "Answer recorded. The episode is over.",
        mistake: Mistake = "",
    ) -> str:
        """For terminal tools: record the verdict and return what the agent is told.

        Args:
            mistake: Where a question may have no answer, what was mistaken about that.
        """
        if self.episode.ledger.mistake is not None:
            self.episode.ledger.mistake = mistake
        self.episode.ledger.answered = True
        self.episode.ledger.correct = bool(correct)
        return message

    def finish(self) -> float:
        """Close the episode if it is open, once, and return its score.

        An episode without an answer pays `unanswered`; calling this again changes nothing.

        Returns:
            The episode's score; nan after a fault.
        """
        return self.episode.finish()

    # One turn -------------------------------------------------------------------------------------

    def _take_turn(
        self, action: Any, calls: tuple[ToolCall, ...]
    ) -> tuple[str, float, bool, bool, Info]:
        """Run the calls in order and record the turn.

        Args:
            action: What was given, for the transcript.
            calls: The calls that were found in it.

        Returns:
            What `step` returns.

        Raises:
            EnvironmentFault: The machine failed; the episode is unscored, the turn not recorded.
        """
        episode = self.episode
        before, steps_before = episode.ledger.score(), episode.steps_left
        outcomes = [self._run_call(call) for call in calls] or [self._refuse_no_call()]
        results = tuple(safe_text(text) for text, _ in outcomes)
        mistakes = tuple(error for _, error in outcomes)
        observation = "\n\n".join(results) + self._budget_notice(steps_before)
        score = episode.ledger.score()
        gained = score - before
        reward = 0.0 if math.isnan(gained) else gained
        recorded = encodable(str.__str__(action)) if isinstance(action, str) else action
        episode.turns.append(Turn(recorded, calls, results, observation, reward, mistakes))
        info = episode.info(calls, mistakes, score)
        return observation, reward, episode.terminated, episode.truncated, info

    def _run_call(self, call: ToolCall) -> tuple[str, ToolError | None]:
        """Run one call and charge what it costs: the text for the agent, and what went wrong."""
        episode = self.episode
        ledger = episode.ledger
        if episode.over:
            return self._refuse_after_end()
        if call.error is not None:
            return self._refuse_call(call.error, call.name)
        if call.repairs:
            ledger.charge("repaired_call")
        fingerprint = _fingerprint(call)
        if fingerprint in episode.seen:
            ledger.charge("repeat")
        episode.seen.add(fingerprint)
        spec = self.tools[call.name]
        try:
            text = self._execute_tool(spec, call.arguments)
        except ToolError as error:  # a tool that gives an example knows better than anyone
            return self._refuse_call(error, call.name, error.example)
        if spec.terminal:
            ledger.answered = episode.over = True
        else:
            self._spend_step()
        return text, None

    def _execute_tool(self, spec: ToolSpec, arguments: dict[str, Any]) -> str:
        """Run a tool; the one boundary between the agent's mistakes and everybody else's."""
        if spec.function is None:
            raise ConfigurationError(f"tool {spec.name!r} has no function.")
        try:
            return str(spec.function(self, **arguments))
        except ToolError:
            raise
        except EnvironmentFault as fault:
            self._leave_unscored(fault)
            raise
        except Exception as problem:
            ours = EnvironmentFault(
                f"the tool {spec.name!r} failed on {arguments!r}: {problem!r}.",
                "This is a fault of the environment; please report it.",
            )
            self._leave_unscored(ours)
            raise ours from problem

    def _leave_unscored(self, fault: EnvironmentFault) -> None:
        """End the episode without a score, and keep the reason."""
        self.episode.ledger.faulted = True
        self.episode.over = True
        self.episode.fault = encodable(str(fault))

    def _refuse_call(
        self, error: ToolError, tool_name: str = "", example: dict[str, Any] | None = None
    ) -> tuple[str, ToolError]:
        """A failed call: it costs a step, and its example is one that works in this episode."""
        self.episode.ledger.charge("failed_call")
        self._spend_step()
        name = error.example.get("name", tool_name)
        name = name if name in self.tools else next(iter(self.tools))
        if example and example.get("name") not in self.tools:  # a tool that is not offered here
            example = None
        working = example or self.example_call(name) or error.example
        safe = ToolError(error.code, encodable(error.message), encodable(error.hint), working)
        return str(safe), safe

    def _refuse_after_end(self) -> tuple[str, ToolError]:
        self.episode.ledger.charge("after_end")
        error = errors.episode_over()
        return str(error), error

    def _refuse_no_call(self) -> tuple[str, ToolError]:
        if self.episode.over:
            return self._refuse_after_end()
        return self._refuse_call(errors.no_call(self.tools))

    def _spend_step(self) -> None:
        episode = self.episode
        episode.ledger.charge("step")
        episode.steps_left -= 1
        if episode.steps_left == 0:
            self.finish()

    def _budget_notice(self, steps_before: int) -> str:
        """The line that tells how much is left, when three steps and when one step are left."""
        episode = self.episode
        left = episode.steps_left
        if left > 3:
            return ""
        if left == 0 and steps_before > 0:
            return budget_notice(0)
        if not episode.over and any(left <= mark < steps_before for mark in (1, 3)):
            return budget_notice(left)
        return ""


def _fingerprint(call: ToolCall) -> Hashable:
    """Equal for calls of one tool with equal arguments, in whatever order they were written."""
    arguments = call.arguments
    if not arguments:
        return call.name
    if len(arguments) == 1:
        ((key, value),) = arguments.items()
        if type(value) is str:
            return call.name, key, value
    return json.dumps([call.name, arguments], sort_keys=True, default=repr)


def safe_text(text: str) -> str:
    """Text that can be encoded and holds nothing that a chat template takes for a control token."""
    return escape_control_tokens(encodable(text))


def _action_text(action: Any) -> str:
    """An action as a person reads it."""
    if isinstance(action, ToolCall):
        arguments = json.dumps(action.arguments, default=repr, ensure_ascii=False)
        return encodable(f"{action.name}({arguments})")
    return encodable(str(action))
