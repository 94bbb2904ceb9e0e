"""An episode as the handlers of an MCP server.

`ToolEnv.step` receives each call as the client sent it. The library's low-level server checks
neither the name nor the arguments of a call, so the environment repairs them as usual. A mistake of
the agent is returned as a result with `isError`. An infrastructure error is returned as a protocol
error, and the episode remains unscored.

The agent does not see its reward or progress. The field `_meta` of each result, which hosts do not
show to a model, contains repairs, error codes and the number of calls left. When the episode is
over, the rewards and the score are in the resource `toolgym://episode/result`. Reading
`toolgym://episode/result?close=true` first closes the episode.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from importlib.metadata import version
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from toolgym.env import ToolEnv
from toolgym.episode import Turn
from toolgym.errors import EnvironmentFault
from toolgym.messages import system_prompt
from toolgym.records import EpisodeRecord

TASK: Final = "task"
RESULT: Final = "toolgym://episode/result"
CLOSE: Final = f"{RESULT}?close=true"
FAULT: Final = (
    "The environment failed, and this episode is not scored. Stop here and begin another episode;"
    " the log of the server says what failed."
)
CLOSED: Final = "This episode was closed. Begin another one."
MOST_AFTER_END: Final = 50
"""Number of calls after the end of an episode that are answered and kept in the transcript."""
_logger = logging.getLogger(__name__)


class Session:
    """One episode, whose calls run one after the other, each in a worker thread.

    Args:
        env: The environment after `reset`; no other code may use this environment.
        env_id: Id of the environment, which is stored in the record.
    """

    def __init__(self, env: ToolEnv[Any], env_id: str) -> None:
        self.env, self.env_id = env, env_id
        self.last_used = anyio.current_time()
        self.lock = anyio.Lock()  # a host may send the calls of one message at the same time
        self.is_closed = False

    async def play(self, name: str, arguments: dict[str, Any]) -> Turn:
        """Run one call in the environment.

        Raises:
            MCPError: If the environment failed in this call or an earlier one, or the episode was
                closed.
        """
        async with self.lock:
            played = len(self.env.episode.turns)
            if self.is_closed or played >= self.env.step_limit + MOST_AFTER_END:
                raise MCPError(types.INVALID_REQUEST, CLOSED)
            if not self.env.episode.fault:
                try:
                    await anyio.to_thread.run_sync(
                        self.env.step, {"name": name, "arguments": arguments}
                    )
                except EnvironmentFault as fault:
                    # The text may name files of this machine, which a client must not see.
                    _logger.error("an episode of %s is not scored: %s", self.env_id, fault)
            self.last_used = anyio.current_time()
            if self.env.episode.fault:
                raise MCPError(types.INTERNAL_ERROR, FAULT, {"scored": False})
            return self.env.episode.turns[-1]

    async def close(self) -> EpisodeRecord:
        """Close the episode and return its record."""
        async with self.lock:
            self.is_closed = True
            return EpisodeRecord.of(self.env.episode, self.env_id)


def summary(record: EpisodeRecord) -> dict[str, Any]:
    """Return the score of a closed episode and its parts, or null if a fault made it unscored."""
    plain = record.to_json()
    names = ("task_id", "score", "correct", "scored", "answered", "reward_parts")
    turns = [
        {name: turn[name] for name in ("reward", "repairs", "errors")} for turn in plain["turns"]
    ]
    return {**{name: plain[name] for name in names}, "turns": turns}


def build_server(
    env: ToolEnv[Any],
    session_of: Callable[[Any], Session],
    life: Callable[[Any], AbstractAsyncContextManager[Any]] = lambda server: nullcontext(),
) -> Server[Any]:
    """Return a server for the tools of an environment.

    Args:
        env: Any instance of the environment, to read its tools and instructions.
        session_of: Function that returns the episode for the context of a request, or raises
            `MCPError`.
        life: Context manager that is open while the server runs.
    """
    tools = [
        types.Tool(name=spec.name, description=spec.description, input_schema=spec.parameters)
        for spec in env.tools.values()
    ]

    async def list_tools(context: Any, params: Any) -> Any:
        session_of(context)
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> Any:
        session = session_of(context)
        turn, episode = await session.play(params.name, params.arguments or {}), session.env.episode
        errors = [error.code for error in turn.errors if error is not None]
        meta = {
            "toolgym/over": episode.over,
            "toolgym/steps_left": episode.steps_left,
            "toolgym/repairs": [code for call in turn.calls for code in call.repairs],
            "toolgym/errors": errors,
        }
        content = types.TextContent(type="text", text=turn.observation)
        return types.CallToolResult(content=[content], is_error=bool(errors), _meta=meta)

    async def list_prompts(context: Any, params: Any) -> Any:
        prompt = types.Prompt(name=TASK, description="The question and the budget of this episode.")
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(context: Any, params: Any) -> Any:
        if params.name != TASK:
            raise MCPError(types.INVALID_PARAMS, f"The only prompt is {TASK}.")
        content = types.TextContent(type="text", text=session_of(context).env.user_prompt())
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def list_resources(context: Any, params: Any) -> Any:
        # CLOSE is not listed, because some hosts read every listed resource.
        listed = types.Resource(uri=RESULT, name="result", mime_type="application/json")
        return types.ListResourcesResult(resources=[listed])

    async def read_resource(context: Any, params: Any) -> Any:
        if params.uri not in (RESULT, CLOSE):
            raise MCPError(types.INVALID_PARAMS, f"The only resource is {RESULT}.")
        session = session_of(context)
        async with session.lock:
            if params.uri == CLOSE:
                session.env.finish()
            episode = session.env.episode
            result = {"over": episode.over, "steps_left": episode.steps_left}
            if episode.over:
                result |= summary(EpisodeRecord.of(episode, session.env_id))
        content = types.TextResourceContents(
            uri=params.uri, mime_type="application/json", text=json.dumps(result)
        )
        return types.ReadResourceResult(contents=[content])

    return Server(
        "toolgym",
        version=version("toolgym"),
        instructions=system_prompt(env),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        lifespan=life,
    )


async def serve_stdio(env: ToolEnv[Any], env_id: str) -> EpisodeRecord:
    """Serve the current episode of an environment over stdin and stdout, until stdin closes."""
    session = Session(env, env_id)
    server = build_server(env, lambda context: session)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
    return await session.close()
