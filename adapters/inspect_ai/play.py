"""An episode as a solver of Inspect.

The loop does not use Inspect's own tool execution, which would check arguments against the schema
and return its own error messages. Instead, `ToolEnv.step` receives each message of the model
unchanged: text as text and native calls as calls.

If the agent makes a mistake, the next message contains the error. An infrastructure error is raised
as an exception, which Inspect records as the error of the sample. If a limit of Inspect (messages,
tokens, time) ends the episode, the episode is scored as unanswered.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

import anyio
import anyio.to_thread
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    get_model,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
from inspect_ai.util import LimitExceededError

from toolgym import registration
from toolgym.calls.bind import decoded, unquoted
from toolgym.env import ToolEnv
from toolgym.errors import EnvironmentFault
from toolgym.messages import system_prompt
from toolgym.records import EpisodeRecord
from toolgym.tries import seed_of_try

Tools = Literal["native", "text"]
"""How the model sees the tools: through its provider's interface, or in the system prompt."""
EPISODE: Final = "toolgym/episode"
"""Key of the episode's record in the store of a sample."""
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def named_after_toolgym(function: AnyFunction) -> AnyFunction:
    """Set the module of a function, since Inspect adds the package to the function's name."""
    function.__module__ = "toolgym"
    return function


@solver  # type: ignore[untyped-decorator, unused-ignore]
@named_after_toolgym
def play(env_id: str, tools: Tools = "native", env_kwargs: dict[str, Any] | None = None) -> Solver:
    """Run the episode of a sample, whose id is the id of the task.

    Args:
        env_id: Id of a registered environment.
        tools: How the model sees the tools.
        env_kwargs: Arguments of the environment.
    """

    def begin(state: TaskState) -> ToolEnv[Any]:
        env = registration.make(env_id, **env_kwargs or {})
        task_id = str(state.sample_id)
        seed = seed_of_try(0, task_id, state.epoch - 1)
        env.reset(seed=seed, options={"task_id": task_id})
        return env

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        env = await anyio.to_thread.run_sync(begin, state)

        def keep() -> None:
            number = state.epoch - 1
            seed = seed_of_try(0, env.task.id, number)
            record = EpisodeRecord.of(env.episode, env_id, seed, number)
            state.store.set(EPISODE, record.to_json())

        try:
            await _converse(env, state, tools)
        except (EnvironmentFault, LimitExceededError, anyio.get_cancelled_exc_class()):
            keep()  # other errors, such as those of the provider, leave the sample unscored
            raise
        keep()
        return state

    return solve


async def _converse(env: ToolEnv[Any], state: TaskState, tools: Tools) -> None:
    """Play until the episode is over.

    Raises:
        EnvironmentFault: If the environment failed.
    """
    system, offered = system_prompt(env, in_words=tools == "text"), []
    if tools == "native":
        offered = [
            ToolInfo(
                name=spec.name,
                description=spec.description,
                parameters=ToolParams.model_validate(spec.parameters),
            )
            for spec in env.tools.values()
            if not spec.hidden
        ]
    messages: list[ChatMessage] = [
        ChatMessageSystem(content=system),
        ChatMessageUser(content=env.user_prompt()),
    ]
    state.messages, model = messages, get_model()
    while not env.episode.over and not state.completed:
        state.output = await model.generate(state.messages, tools=offered)
        if state.output.stop_reason == "model_length":
            return  # the context is full
        said = state.output.message
        state.messages.append(said)
        calls = said.tool_calls or []
        action: Any = said.text
        if calls:
            action = {"content": said.text, "tool_calls": [_as_written(call) for call in calls]}
        await anyio.to_thread.run_sync(env.step, action)
        turn = env.episode.turns[-1]
        if not calls:
            state.messages.append(ChatMessageUser(content=turn.observation))
            continue
        texts = [*turn.results, *[""] * (len(calls) - len(turn.results))]
        texts[-1] += turn.observation[len("\n\n".join(turn.results)) :]  # a notice about all calls
        for call, text in zip(calls, texts, strict=False):
            result = ChatMessageTool(content=text, tool_call_id=call.id, function=call.function)
            state.messages.append(result)


def _as_written(call: ToolCall) -> dict[str, Any]:
    """Return a native call with the arguments as the model wrote them.

    Inspect keeps arguments that it cannot parse only in the text of its error, up to 16 kB. If the
    arguments are a JSON string, Inspect treats that string as the first argument of the tool.
    """
    arguments: Any = call.arguments
    if call.parse_error:
        error = call.parse_error
        written = error.partition("arguments:\n\n")[2].rpartition("\n\nError details: ")[0]
        arguments = written or arguments
    elif len(arguments) == 1:
        [(name, value)] = arguments.items()
        inner = decoded(unquoted(value)) if isinstance(value, str) else None
        if isinstance(inner, dict) and name in inner:
            arguments = json.dumps(value)
    return {"type": "function", "function": {"name": call.function, "arguments": arguments}}
