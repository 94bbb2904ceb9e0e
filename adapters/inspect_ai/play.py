"""One episode as a solver of Inspect.

The loop is ours. Inspect's own would check the arguments of a call against the schema first, and
answer a mistake in its own words, so that no repair and no helpful error was ever seen. Here what
the model wrote goes to `ToolEnv.step` as it is: a text as a text, native calls as calls.

A call whose arguments are no JSON reaches a solver as the text of an error only; `call_as_written`
takes them out again. What the agent did wrong is the next message. A fault of the machine is
raised: Inspect records it as the error of the sample. A limit of Inspect (messages, tokens, time)
ends the episode without an answer, and it is scored as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, get_args

import anyio
import anyio.to_thread
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
from inspect_ai.util import LimitExceededError

from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.episode import Turn
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.messages import system_prompt, tools_in_words
from toolgym.records import EpisodeRecord
from toolgym.tasks import seed_of

Tools = Literal["native", "text"]
"""How a model is told of the tools: by its provider's interface, or in the system prompt."""
EPISODE: Final = "toolgym/episode"
"""Where the store of a sample keeps the record of its episode."""
_BEFORE: Final = "arguments:\n\n"
_BEHIND: Final = "\n\nError details: "
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def named_after_toolgym(function: AnyFunction) -> AnyFunction:
    """The function, as one of the package `toolgym`.

    Inspect puts the package of a function before its name, and adapters lie in another one.
    """
    function.__module__ = "toolgym"
    return function


def checked_tools(tools: str) -> Tools:
    """The word, if it is one of `Tools`.

    Raises:
        ConfigurationError: It is not.
    """
    for known in get_args(Tools):
        if tools == known:
            return known  # type: ignore[no-any-return]
    raise ConfigurationError(f'tools is "native" or "text", not {tools!r}.')


@solver  # type: ignore[untyped-decorator, unused-ignore]
@named_after_toolgym
def play(env_id: str, tools: str = "native", env_kwargs: dict[str, Any] | None = None) -> Solver:
    """Play the episode of a sample, whose id is that of its task.

    Args:
        env_id: A registered environment.
        tools: How the model is told of the tools, `Tools`.
        env_kwargs: For `gym.make`.
    """
    how = checked_tools(tools)

    def begin(state: TaskState) -> ToolEnv[Any]:
        env = registration.make(env_id, **env_kwargs or {})
        task_id = str(state.sample_id)
        env.reset(seed=seed_of(task_id), options={"task_id": task_id})
        return env

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        env = await anyio.to_thread.run_sync(begin, state)

        def keep() -> None:
            number = state.epoch - 1
            record = EpisodeRecord.of(env.episode, env_id, seed_of(env.task.id), number)
            state.store.set(EPISODE, record.to_json())

        try:
            await converse(env, state, how)
        except (EnvironmentFault, LimitExceededError, anyio.get_cancelled_exc_class()):
            keep()
            raise
        keep()
        return state

    return solve


async def converse(env: ToolEnv[Any], state: TaskState, how: Tools) -> None:
    """Let the model and the environment talk until the episode is over.

    Raises:
        EnvironmentFault: The machine failed.
    """
    state.messages = opening(env, how)
    offered = native_tools(env) if how == "native" else []
    model = get_model()
    while not env.episode.over and not state.completed:
        state.output = await model.generate(state.messages, tools=offered)
        if state.output.stop_reason == "model_length":
            return  # nothing can be added to a context that is full
        said = state.output.message
        state.messages.append(said)
        await anyio.to_thread.run_sync(env.step, as_written(said))
        state.messages.extend(answers(said, env.episode.turns[-1]))


def opening(env: ToolEnv[Any], how: Tools) -> list[ChatMessage]:
    """The instructions and the question."""
    told = system_prompt(env)
    if how == "text":
        told = f"{told}\n\n{tools_in_words(env.tools)}"
    return [ChatMessageSystem(content=told), ChatMessageUser(content=env.user_prompt())]


def native_tools(env: ToolEnv[Any]) -> list[ToolInfo]:
    """The tools as Inspect hands them to a provider."""
    return [
        ToolInfo(
            name=spec.name,
            description=spec.description,
            parameters=ToolParams.model_validate(spec.parameters),
        )
        for spec in env.tools.values()
    ]


def as_written(said: ChatMessageAssistant) -> Any:
    """A message of the model as an action."""
    if not said.tool_calls:
        return said.text
    calls = [call_as_written(call) for call in said.tool_calls]
    return {"role": "assistant", "content": said.text, "tool_calls": calls}


def call_as_written(call: ToolCall) -> dict[str, Any]:
    """A native call with the arguments as the model wrote them.

    Inspect keeps those that it could not read in the text of its error only, up to 16 kB of them.
    """
    arguments: Any = call.arguments
    if call.parse_error:
        written = call.parse_error.partition(_BEFORE)[2].rpartition(_BEHIND)[0]
        arguments = written or arguments
    return {"type": "function", "function": {"name": call.function, "arguments": arguments}}


def answers(said: ChatMessageAssistant, turn: Turn) -> list[ChatMessage]:
    """What the model is told after a turn: a result for each native call, or a text."""
    calls = said.tool_calls or []
    if not calls:
        return [ChatMessageUser(content=turn.observation)]
    notice = turn.observation[len("\n\n".join(turn.results)) :]
    texts = [*turn.results, *[""] * (len(calls) - len(turn.results))]
    texts[-1] += notice
    return [
        ChatMessageTool(content=text, tool_call_id=call.id, function=call.function)
        for call, text in zip(calls, texts, strict=False)
    ]
