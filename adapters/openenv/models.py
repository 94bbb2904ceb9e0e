"""The messages between client and server.

An action is the whole message of a model, as text with calls or with calls that a model server has
parsed, so the environment reads and repairs them.

This module needs OpenEnv only; it is copied into an exported folder.
"""

from typing import Annotated, Any

from openenv.core.env_server.types import Action, Observation
from pydantic import BeforeValidator, Field


def _whole(text: Any) -> Any:
    """Replace lone surrogates, which JSON can hold and no socket can send."""
    if not isinstance(text, str):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


Text = Annotated[str, BeforeValidator(_whole)]


class ToolgymAction(Action):  # type: ignore[misc, unused-ignore]
    """A message of the model, or the end of the episode."""

    text: Text = Field("", description="What the model wrote, calls included.")
    tool_calls: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Calls as an OpenAI-compatible server returns them, if it has parsed them;"
        " their arguments may be any text.",
    )
    finish: bool = Field(
        False,
        description="Play nothing and close the episode: the reward is the rest of the score.",
    )


class ToolgymObservation(Observation):  # type: ignore[misc, unused-ignore]
    """The result of a message; `reward` is its change of the score."""

    text: str = Field("", description="Text for the model: the question, or the results.")
    messages: list[dict[str, Any]] = Field(
        default_factory=list,
        description="For a chat template: after a reset the chat before the model's first message,"
        " after a step what follows its message.",
    )
    tools: list[dict[str, Any]] = Field(
        default_factory=list, description="After a reset: the tools, as chat templates take them."
    )
    task_id: str = Field("", description="The task of the episode.")
    steps_left: int = Field(0, description="Number of calls left.")
    repairs: list[str] = Field(default_factory=list, description="Codes of the repairs.")
    errors: list[str] = Field(default_factory=list, description="Codes of the errors.")
    truncated: bool = Field(False, description="The episode ended without an answer.")
    scored: bool = Field(True, description="False after a fault of the machine: leave it out.")
    score: float | None = Field(None, description="Score of the episode, when it is over.")
    correct: bool | None = Field(None, description="The answer was right; when it is over.")
    reward_parts: dict[str, float] = Field(
        default_factory=dict, description="Parts of the score, when the episode is over."
    )
