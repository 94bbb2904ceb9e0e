"""The messages between client and server.

An action is a complete message of the model: text with calls, or calls that a model server has
parsed. The environment reads and repairs the calls.

This module requires only OpenEnv, because it is copied into exported folders.
"""

from typing import Annotated, Any

from openenv.core.env_server.types import Action, Observation
from pydantic import BeforeValidator, Field


def _whole(text: Any) -> Any:
    """Replace lone surrogates, which JSON can contain but a socket cannot send."""
    if not isinstance(text, str):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


Text = Annotated[str, BeforeValidator(_whole)]


class ToolgymAction(Action):  # type: ignore[misc, unused-ignore]
    """A message of the model, or the end of the episode."""

    text: Text = Field("", description="Text of the model, including calls.")
    tool_calls: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Calls that an OpenAI-compatible server has parsed. Their arguments may be any"
        " text.",
    )
    finish: bool = Field(
        False,
        description="Close the episode without playing a message. The reward is the remaining"
        " part of the score.",
    )


class ToolgymObservation(Observation):  # type: ignore[misc, unused-ignore]
    """The result of a message. `reward` is the change in the score."""

    text: str = Field("", description="Text for the model: the question, or the results.")
    messages: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Messages for a chat template: after a reset the chat before the model's first"
        " message, after a step the messages that follow the model's message.",
    )
    tools: list[dict[str, Any]] = Field(
        default_factory=list, description="After a reset, the tools in the form for chat templates."
    )
    task_id: str = Field("", description="The task of the episode.")
    steps_left: int = Field(0, description="Number of calls left.")
    repairs: list[str] = Field(default_factory=list, description="Codes of the repairs.")
    errors: list[str] = Field(default_factory=list, description="Codes of the errors.")
    truncated: bool = Field(False, description="The episode ended without an answer.")
    scored: bool = Field(True, description="False after a fault. Exclude such an episode.")
    score: float | None = Field(None, description="Score of the episode, when it is over.")
    correct: bool | None = Field(None, description="Whether the answer is correct, at the end.")
    reward_parts: dict[str, float] = Field(
        default_factory=dict, description="Parts of the score, when the episode is over."
    )
