"""`ToolEnv`: a Gymnasium environment whose actions are messages with tool calls.

`step` takes a string (or parsed calls), finds the calls in it, binds their arguments, runs the
tools, and returns text. Mistakes of the agent become observations. Infrastructure errors raise
exceptions (`toolgym.errors`). `ToolEnv._execute_tool` distinguishes the agent's mistakes from
infrastructure errors.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Generator, Hashable
from typing import Any, ClassVar, Generic, Literal, TypeVar

import gymnasium as gym
from gymnasium.error import ResetNeeded

from toolgym.calls import ToolCall, bind_call, errors, parse_calls
from toolgym.episode import Episode, Info, Outcome, Turn, budget_notice
from toolgym.errors import ConfigurationError, EnvironmentFault, ToolError
from toolgym.family import TaskFamily
from toolgym.rewards import Ledger, Mistake, RewardConfig
from toolgym.sanitize import (
    change_texts,
    encodable,
    escape_control_tokens,
    unescape_control_tokens,
)
from toolgym.spaces import UnicodeText
from toolgym.tasks import Task, TaskSet
from toolgym.tools import ToolSpec, tools_of

T = TypeVar("T", bound=Task)


class ToolEnv(gym.Env[str, Any], Generic[T]):
    """Base class of environments with tools.

    Subclasses add `begin`, `expert` and methods marked `@tool`.

    Args:
        tasks: The tasks of the environment; each episode uses one of them.
        step_limit: Maximum number of calls in an episode; the terminal call is not counted.
        parsing: "lenient" repairs malformed calls that have exactly one possible interpretation and
            records each repair. "strict" rejects all malformed calls.
        rewards: Weights of the score, as a dict or a `RewardConfig`.
        render_mode: None or "ansi".

    Raises:
        ConfigurationError: An argument is invalid, or the class has no `begin`.

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
    """The tools by name: those of the class, unless the environment was created with other
    tools."""
    waits: bool = False
    """Whether a tool waits for a server. If so, several environments are stepped concurrently in
    threads."""
    family: ClassVar[TaskFamily] = TaskFamily()
    """The family of the tasks, used by commands such as `toolgym tasks stats`."""

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
        if type(self).begin is ToolEnv.begin:
            raise ConfigurationError(
                f"{type(self).__name__} has no method `begin(self, task)`: write one that prepares"
                " an episode of the task and returns the question for the agent."
            )
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

    # Methods for subclasses to override -----------------------------------------------------------

    def begin(self, task: T) -> str:
        """Prepare an episode for the given task and return the question for the agent.

        Every subclass must override this method.

        Raises:
            EnvironmentFault: A resource that the task needs is missing, such as a file.
        """
        raise NotImplementedError

    def expert(self) -> Generator[Any, str, None]:
        """Play the current episode as an expert: yield actions and receive observations.

        The expert should derive its answer from the observations, not from the gold answer, so that
        a model can solve every task that the expert solves.
        """
        raise ConfigurationError(f"{type(self).__name__} has no `expert` method.")

    def novice(self, draw: random.Random) -> Generator[Any, str, None] | None:
        """Play the current episode like a beginner, with valid calls but often with a wrong answer.

        A model that is trained from scratch first learns to imitate this novice, before
        reinforcement learning. If this method returns None (the default), the model imitates random
        variations of the expert instead.
        """
        return None

    def example_call(self, tool_name: str) -> dict[str, Any]:
        """Return an example call of the tool, valid in the current episode, for error messages.

        Returns:
            `{"name": ..., "arguments": {...}}`, or {} to keep the generic example in the error
            message.
        """
        return {}

    def no_call(self, text: str) -> ToolError:
        """Return the error for a message without a call.

        Args:
            text: The message.
        """
        return errors.no_call(self.tools)

    def second_hint(self, call: ToolCall, error: ToolError) -> str:
        """Return additional help for the error message of a failed call that is repeated.

        Without such help, a deterministic policy that receives the same error again would repeat
        the failed call until no calls are left. A subclass can return text that its tools can also
        show, such as the columns of a table. The text must not depend on the gold answer.

        Args:
            call: The failed call; `call.error` contains the error if the call failed before a tool
                ran.
            error: The error of the call.

        Returns:
            A few lines of text, or "" for no additional help. The default implementation lists the
            tools with their arguments.
        """
        signatures = [f"{spec.name}({', '.join(spec.fields)})" for spec in self.tools.values()]
        return f"The tools and their arguments: {', '.join(signatures)}."

    # The Gymnasium interface ----------------------------------------------------------------------

    def reset(  # type: ignore[override]  # a TypedDict is a dict of known keys
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, Info]:
        """Begin an episode.

        Args:
            seed: Seed that determines the task. The same seed selects the same task on every
                machine.
            options: `{"task_id": ...}` selects the task by its id.

        Returns:
            A pair: the result of `user_prompt()`, which is also the first user message of a chat,
                and the first `info` dict.

        Raises:
            TaskRefused: The task selected by id cannot be played.
            ConfigurationError: The task or the option does not exist.
            EnvironmentFault: A resource that the task needs is missing.
        """
        super().reset(seed=seed)
        unknown = set(options or {}) - {"task_id"}
        if unknown:
            raise ConfigurationError(f"the only option of reset is task_id, got {sorted(unknown)}.")
        task_id = (options or {}).get("task_id")
        if task_id is not None:
            task = self.tasks.require(str(task_id))
        else:
            drawn = int(self.np_random.integers(2**31)) if seed is None else seed
            task = self.tasks.draw(drawn)
        self._episode = Episode(task, Ledger(self.reward_config), self.step_limit)
        question = self.begin(task)
        if not isinstance(question, str):
            raise ConfigurationError(
                f"{type(self).__name__}.begin returned {question!r:.80}: it must return the"
                " question for the agent, a str."
            )
        self._episode.question = safe_text(question)
        return self.user_prompt(), self._episode.info((), ())

    def step(self, action: Any) -> tuple[str, float, bool, bool, Info]:  # type: ignore[override]
        """Run the calls in an action.

        Args:
            action: Text generated by a model, a parsed call, or a list of calls. If the policy
                could not act, an `EnvironmentFault` can be passed instead of an action and is then
                raised. Any other object results in an error observation.

        Returns:
            Observation, change of the score, terminated (answered), truncated (no calls left), and
            info.

        Raises:
            EnvironmentFault: An infrastructure error occurred; the episode is unscored.
        """
        if isinstance(action, EnvironmentFault):
            self.episode.fail(action)
            raise action
        calls = tuple(parse_calls(action, self.tools, parsing=self.parsing))
        return self._take_turn(action, calls)

    def call(self, tool_name: str, /, *args: Any, **kwargs: Any) -> str:
        """Call one tool from Python. The call is counted and changes the score as in `step`.

        Returns:
            The observation.
        """
        bound = bind_call(tool_name, kwargs, self.tools, self.parsing, args=args)
        return self._take_turn(bound, (bound,))[0]

    def render(self) -> str | None:
        """Return the episode so far as text, or None without `render_mode="ansi"`."""
        if self.render_mode is None:
            return None
        episode = self.episode
        lines = [f"? {episode.question}"]
        for turn in episode.turns:
            lines += [f"> {_action_text(turn.action)}", turn.observation]
        return "\n".join([*lines, f"score {episode.ledger.score():.3f}"])

    # Attributes and methods for tools and callers -------------------------------------------------

    @property
    def episode(self) -> Episode:
        """The current episode.

        Raises:
            ResetNeeded: `reset` has not been called yet.
        """
        if self._episode is None:
            raise ResetNeeded("call reset() first.")
        return self._episode

    @property
    def task(self) -> T:
        """The current task."""
        return self.episode.task  # type: ignore[return-value]

    @property
    def outcome(self) -> Outcome:
        """The outcome of the episode, to be compared with other rollouts of the same task."""
        return self.episode.outcome

    def tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools, except hidden ones, in the OpenAI function format."""
        return [spec.schema() for spec in self.tools.values() if not spec.hidden]

    def user_prompt(self, question: str | None = None) -> str:
        """Return the first message for the agent: the question and the maximum number of calls.

        Args:
            question: The question of a recorded episode; None means the question of the current
                episode.
        """
        return f"{self.episode.question if question is None else question}\n{self.budget_line()}"

    def budget_line(self) -> str:
        """Return the sentence that states how many calls the agent can make."""
        ends = " or ".join(spec.name for spec in self.tools.values() if spec.terminal)
        return (
            f"You have {self.step_limit} calls; {ends} is free and ends the episode:"
            " give it before they are used up."
        )

    def reach(self, progress: float, best: bool = True) -> None:
        """Record the progress of a state that the agent reached, from 0 to 1. Called by tools.

        Args:
            best: Whether the best state of the episode determines the progress. If False, the last
                state determines the progress, so trying every possibility brings no reward.
        """
        self.episode.ledger.reach(progress, best)

    def submit(
        self,
        correct: bool,
        message: str = "Answer recorded. The episode is over.",
        mistake: Mistake = "",
    ) -> str:
        """Record the verdict and return the observation. Called by terminal tools.

        Args:
            correct: Whether the answer is correct.
            message: The observation.
            mistake: In environments in which some questions have no answer, the agent's mistake
                about this: "refused_answerable", "answered_unanswerable" or "".
        """
        if self.episode.ledger.mistake is not None:
            self.episode.ledger.mistake = mistake
        self.episode.ledger.answered = True
        self.episode.ledger.correct = bool(correct)
        return message

    def finish(self) -> float:
        """Close the episode if it is still open, and return its score.

        An episode without an answer is charged the cost `unanswered`. Calling `finish` again
        changes nothing.

        Returns:
            The score of the episode; nan after a fault.
        """
        return self.episode.finish()

    # One turn -------------------------------------------------------------------------------------

    def _take_turn(
        self, action: Any, calls: tuple[ToolCall, ...]
    ) -> tuple[str, float, bool, bool, Info]:
        """Run the calls of an action in order, record the turn, and return the results of `step`.

        Raises:
            EnvironmentFault: The machine failed; the episode is unscored and the turn is not
                recorded.
        """
        episode = self.episode
        before, steps_before = episode.ledger.score(), episode.steps_left
        recorded = encodable(str.__str__(action)) if isinstance(action, str) else action
        made = calls
        if not calls:
            words = recorded if isinstance(recorded, str) else type(action).__name__
            made = (ToolCall("", {"text": words}, (), self.no_call(words)),)
        outcomes = [self._run_call(call) for call in made]
        results = tuple([safe_text(text) for text, _ in outcomes])
        mistakes = tuple([error for _, error in outcomes])
        observation = "\n\n".join(results) + self._budget_notice(steps_before)
        score = episode.ledger.score()
        gained = score - before
        reward = 0.0 if math.isnan(gained) else gained
        episode.turns.append(Turn(recorded, calls, results, observation, reward, mistakes))
        info = episode.info(calls, mistakes, score)
        return observation, reward, episode.terminated, episode.truncated, info

    def _run_call(self, call: ToolCall) -> tuple[str, ToolError | None]:
        """Run one call and charge its costs. Return the text for the agent and the error."""
        episode = self.episode
        ledger = episode.ledger
        if episode.over:
            ledger.charge("after_end")
            over = errors.episode_over()
            return str(over), over
        fingerprint = _fingerprint(call)
        if call.error is not None:
            return self._refuse_call(call.error, call, (fingerprint, call.error.message))
        if call.repairs:
            ledger.charge("repaired_call")
        if fingerprint in episode.seen:
            ledger.charge("repeat")
        episode.seen.add(fingerprint)
        spec = self.tools[call.name]
        try:
            text = self._execute_tool(spec, call.arguments)
        except ToolError as error:
            return self._refuse_call(error, call, fingerprint)
        if spec.terminal:
            ledger.answered = episode.over = True
        else:
            self._spend_step()
        return text, None

    def _execute_tool(self, spec: ToolSpec, arguments: dict[str, Any]) -> str:
        """Run a tool, and convert unexpected exceptions to an `EnvironmentFault`.

        Only this method distinguishes mistakes of the agent from faults of the machine.
        """
        if spec.function is None:
            raise ConfigurationError(f"tool {spec.name!r} has no function.")
        try:
            for value in arguments.values():
                if type(value) is not str or "\\" in value:  # few calls have such a value
                    arguments = change_texts(arguments, unescape_control_tokens)
                    break
            return str(spec.function(self, **arguments))
        except ToolError:
            raise
        except EnvironmentFault as fault:
            self.episode.fail(fault)
            raise
        except Exception as problem:
            ours = EnvironmentFault(
                f"the tool {spec.name!r} failed on {arguments!r}: {problem!r}.",
                "Correct what it names."
                if isinstance(problem, ConfigurationError)
                else "This is a fault of the environment; please report it.",
            )
            self.episode.fail(ours)
            raise ours from problem

    def _refuse_call(
        self, error: ToolError, call: ToolCall, words: Hashable
    ) -> tuple[str, ToolError]:
        """Charge a failed call, and return its error with an example that works in this episode.

        Args:
            words: Identifies equal calls. From the second equal call on, `second_hint` is appended
                to the error.
        """
        episode = self.episode
        episode.ledger.charge("failed_call")
        self._spend_step()
        example = error.example
        if call.error is not None or example.get("name") not in self.tools:
            name = example.get("name", call.name)
            name = name if name in self.tools else next(iter(self.tools))
            example = self.example_call(name) or example
        safe = ToolError(error.code, encodable(error.message), encodable(error.hint), example)
        text = str(safe)
        if (words, error.code) in episode.failed:
            try:
                text = f"{text}\n{self.second_hint(call, error)}".rstrip("\n")
            except ToolError:  # such as a query that takes too long
                pass
            except EnvironmentFault as fault:
                self.episode.fail(fault)
                raise
        episode.failed.add((words, error.code))
        if any(spec.hidden for spec in self.tools.values()):  # the only message was the answer
            text = f"{text}\n{self.submit(False)}"
            episode.over = True
        return text, safe

    def _spend_step(self) -> None:
        episode = self.episode
        episode.ledger.charge("step")
        episode.steps_left -= 1
        if episode.steps_left == 0:
            self.finish()

    def _budget_notice(self, steps_before: int) -> str:
        """Return the line with the number of calls left if this number falls to 3, 1 or 0, or else
        ""."""
        left = self.episode.steps_left
        is_due = left <= 3 and any(left <= mark < steps_before for mark in (0, 1, 3))
        return budget_notice(left) if is_due and (left == 0 or not self.episode.over) else ""


def _fingerprint(call: ToolCall) -> Hashable:
    """Return a key that is equal for calls of the same tool with equal arguments in any order."""
    arguments = call.arguments
    if not arguments:
        return call.name
    if len(arguments) == 1:
        ((key, value),) = arguments.items()
        if type(value) is str:
            return call.name, key, value
    return json.dumps([call.name, arguments], sort_keys=True, default=repr)


def safe_text(text: str) -> str:
    """Return text with the control tokens of chat templates escaped and surrogates replaced."""
    return escape_control_tokens(encodable(text))


def _action_text(action: Any) -> str:
    """Return an action in a readable form."""
    if isinstance(action, ToolCall):
        arguments = json.dumps(action.to_json()["arguments"], ensure_ascii=False)
        return encodable(f"{action.name}({arguments})")
    return encodable(str(action))
