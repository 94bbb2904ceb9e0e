"""The client: each object is one session with one or several successive episodes.

    with ToolgymEnv(base_url="http://127.0.0.1:8000").sync() as client:
        result = client.reset(task_id="mountain_huts-039")
        result = client.step(ToolgymAction(text="..."))
        result.reward, result.done, result.observation.text

This module requires only OpenEnv, because it is copied into exported folders.
"""

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import State

from adapters.openenv.models import ToolgymAction, ToolgymObservation


class ToolgymEnv(EnvClient[ToolgymAction, ToolgymObservation, State]):  # type: ignore[misc, unused-ignore]
    """A session of `toolgym serve`, or of a container built from an exported folder.

    `reset` accepts `task_id`, or `split` and `index`, or `seed`, and no other arguments.
    """

    def _step_payload(self, action: ToolgymAction) -> dict[str, Any]:
        payload: dict[str, Any] = action.model_dump(exclude={"metadata"})
        return payload

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ToolgymObservation]:
        outcome = {"reward": payload.get("reward"), "done": payload.get("done", False)}
        observation = ToolgymObservation(**{**payload.get("observation", {}), **outcome})
        return StepResult(observation=observation, **outcome)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
