"""What goes over the wire: the message of a model, and what came back for it.

An action is a whole message, text with calls in it or calls that a server of models has parsed, so
that the environment reads it by itself: an alias, a misspelt argument or broken JSON is repaired
there, and an error is the environment's own text with a call that works.

This module needs OpenEnv only, so it goes into an exported folder as it is.
"""

from typing import Annotated, Any

from openenv.core.env_server.types import Action, Observation, State
from pydantic import BeforeValidator, Field


def _whole(text: Any) -> Any:
    """A text with half characters, as JSON can hold them, replaced: no socket takes them."""
    if not isinstance(text, str):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


Text = Annotated[str, BeforeValidator(_whole)]


class ToolgymAction(Action):  # type: ignore[misc, unused-ignore]
    """One message of the model, or the end of the episode."""

    text: Text = Field("", description="What the model wrote, calls included.")
    tool_calls: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Calls as an OpenAI-compatible server returns them, if it has parsed them;"
        " their arguments may be any text.",
    )
    finish: bool = Field(
        False,
        description="Play nothing and close the episode: the reward is what is left of the score.",
    )


class ToolgymObservation(Observation):  # type: ignore[misc, unused-ignore]
    """What came back; `reward` is what the message changed of the score, `done` that it is over."""

    text: str = Field("", description="What the model is shown: the question, or the results.")
    messages: list[dict[str, Any]] = Field(
        default_factory=list,
        description="For a chat template: after a reset the chat before the model's first message,"
        " after a step what follows its message.",
    )
    tools: list[dict[str, Any]] = Field(
        default_factory=list, description="After a reset: the tools, as chat templates take them."
    )
    task_id: str = Field("", description="The task of the episode.")
    steps_left: int = Field(0, description="Calls that are left.")
    repairs: list[str] = Field(default_factory=list, description="What was repaired in the calls.")
    errors: list[str] = Field(default_factory=list, description="What was wrong with the calls.")
    truncated: bool = Field(False, description="The budget was spent without an answer.")
    scored: bool = Field(True, description="False after a fault of the machine: leave it out.")
    score: float | None = Field(None, description="Of the episode, when it is over and scored.")
    correct: bool | None = Field(None, description="The answer was right; when it is over.")
    reward_parts: dict[str, float] = Field(
        default_factory=dict, description="What the score is made of, when it is over."
    )


class ToolgymState(State):  # type: ignore[misc, unused-ignore]
    """Where a session is; `step_count` counts messages."""

    env_id: str = Field("", description="The environment.")
    task_id: str = Field("", description="The task of the episode; empty before the first reset.")
    steps_left: int = Field(0, description="Calls that are left.")
    over: bool = Field(False, description="The episode is over.")
