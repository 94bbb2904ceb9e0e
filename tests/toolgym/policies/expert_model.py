"""A scripted model that plays as the environment's expert does: what a server says in tests.

It knows the task by its question, plays it in a second environment up to the turn that it is asked
for, and says the expert's next call: as a call of the API where tools were sent, else in words.
"""

import json
from typing import Any

from toolgym import registration
from toolgym.calls import render_call


class ExpertModel:
    """Args: the environment that is played, with its arguments."""

    def __init__(self, env_id: str, **env_kwargs: Any) -> None:
        self.env = registration.make(env_id, **env_kwargs)
        self.tasks: dict[str, str] = {}

    def __call__(self, asked: dict[str, Any]) -> dict[str, Any] | str:
        """The expert's next call."""
        messages = asked["messages"]
        self.env.reset(options={"task_id": self._task_of(messages[1]["content"])})
        playing = self.env.expert()
        call = self._plain(next(playing))
        for _ in range(sum(message["role"] == "assistant" for message in messages)):
            call = self._plain(playing.send(self.env.step(call)[0]))
        if "tools" not in asked:
            return "I will look.\n" + render_call(call["name"], call["arguments"])
        number = len(messages)
        made = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        calls = [{"id": f"call-{number}", "type": "function", "function": made}]
        return {"content": None, "tool_calls": calls}

    def _task_of(self, prompt: str) -> str:
        for task in self.env.tasks:
            if prompt in self.tasks:
                break
            if task.question in prompt:
                self.env.reset(options={"task_id": task.id})
                self.tasks[self.env.user_prompt()] = task.id
        return self.tasks[prompt]

    def _plain(self, action: Any) -> dict[str, Any]:
        if isinstance(action, dict):
            return action
        return {"name": action.name, "arguments": action.arguments}
