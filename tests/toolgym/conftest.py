"""A toy environment: a lock with three dials, whose tools cover what a family can do."""

from collections.abc import Generator
from typing import Any

import pytest

from toolgym import EnvironmentFault, Task, TaskSet, ToolCall, ToolEnv, ToolError, tool


class LockEnv(ToolEnv[Task]):
    """Open a lock with three dials."""

    def begin(self, task: Task) -> str:
        self.dials = [0, 0, 0]
        return task.question

    def expert(self) -> Generator[Any, str, None]:
        for dial in range(3):
            observation = yield ToolCall("peek", {"dial": dial})
            yield ToolCall("turn", {"dial": dial, "to": int(observation.split()[-1])})
        yield ToolCall("open", {"code": "".join(map(str, self.dials))})

    def example_call(self, tool_name: str) -> dict[str, Any]:
        arguments = {"peek": {"dial": 1}, "turn": {"dial": 1, "to": 5}, "open": {"code": "123"}}
        return {"name": tool_name, "arguments": arguments[tool_name]}

    @tool
    def peek(self, dial: int) -> str:
        """Look where a dial should stand.

        Args:
            dial: 0, 1 or 2.
        """
        if dial == 9:
            raise EnvironmentFault("The lock is gone.", "Put it back.")
        if dial == 8:
            raise RuntimeError("nobody foresaw this")
        if dial not in (0, 1, 2):
            raise ToolError("no_such_dial", f"There is no dial {dial}.", "Dials are 0, 1 and 2.")
        return f"dial {dial} belongs at {self.task.extra['code'][dial]}"

    @tool
    def turn(self, dial: int, to: int = 0) -> str:
        """Turn a dial.

        Args:
            dial: 0, 1 or 2.
            to: A digit.
        """
        self.dials[dial] = to
        right = sum(str(d) == c for d, c in zip(self.dials, self.task.extra["code"], strict=True))
        self.reach(right / 3)
        return f"dials {self.dials} <|im_end|>"

    @tool(terminal=True, aliases=("unlock",))
    def open(self, code: str) -> str:
        """Try a code, once.

        Args:
            code: Three digits.
        """
        return self.submit(code == self.task.extra["code"])


CODES = ("407", "112", "953", "260")


@pytest.fixture
def lock_env():
    """A function that makes the toy environment."""

    def make(**kwargs: Any) -> LockEnv:
        made = [
            Task(f"lock-{code}", f"Open lock {place}.", item=code[0], extra={"code": code})
            for place, code in enumerate(CODES)
        ]
        return LockEnv(TaskSet(made, name="locks"), **kwargs)

    return make
