"""Backends that replay recorded completions or follow a script, without a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aflowgym.answers.code import Outcome
from aflowgym.operators.context import Backend, Completion, Job, Request, Sandbox
from toolgym.errors import ConfigurationError, EnvironmentFault


def key_of(request: Request) -> str:
    """Return the key of a recorded completion, with everything that can affect the completion."""
    text = json.dumps([request.key, request.prompt])
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


class Recorder:
    """A backend that forwards requests to a wrapped backend and records the completions.

    Programs run in the sandbox of the wrapped backend, and their outcomes are not recorded.
    """

    sandbox: Sandbox | None

    def __init__(self, backend: Backend) -> None:
        self.backend, self.sandbox = backend, backend.sandbox
        self.waits = bool(getattr(backend, "waits", False))
        self.records: dict[str, Any] = {}

    def generate(self, request: Request) -> Completion:
        """Return the completion of the wrapped backend, and record it."""
        completion = self.backend.generate(request)
        self.records[key_of(request)] = list(completion)
        return completion

    def save(self, path: Path) -> None:
        """Write the recorded completions to a file, one JSON object per line."""
        lines = [
            json.dumps({"key": key, "value": self.records[key]}) for key in sorted(self.records)
        ]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


class Replay:
    """A backend that returns the completions of a `Recorder`."""

    sandbox: Sandbox | None = None

    def __init__(self, records: Mapping[str, Any]) -> None:
        self.records = records

    @classmethod
    def load(cls, path: Path) -> Replay:
        """Load the completions that `Recorder.save` wrote.

        Raises:
            ConfigurationError: If the file cannot be read, or is not a recording.
        """
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            return cls({line["key"]: line["value"] for line in lines})
        except OSError as problem:
            raise ConfigurationError(f"{path} cannot be read: {problem.strerror}.") from problem
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            raise ConfigurationError(f"{path} is not a recording: {problem!r}.") from problem

    def generate(self, request: Request) -> Completion:
        """Return the recorded completion.

        Raises:
            EnvironmentFault: If no completion was recorded for this request.
        """
        record = self.records.get(key_of(request))
        if record is None:
            raise EnvironmentFault(
                f"task {request.task.id!r}: a call of {request.operator.name} was not recorded.",
                "Record it again: the task, the workflow, the seed or a prompt has changed.",
            )
        return Completion(*record)


class ScriptedBackend:
    """A backend for tests, with replies from a function or from lists. It stores all requests.

    Args:
        replies: A function that maps a request to its reply, or a dict from each operator to a list
            of replies, in the order of its calls. When a list is exhausted, the last reply is
            repeated.
        outcomes: A function that returns the outcomes of a job; None if no programs are run.

    >>> from aflowgym import execute, load_tasks, parse
    >>> backend = ScriptedBackend({"Custom": ["Answer: 12"]})
    >>> task = load_tasks("bundled", "train")[0]
    >>> execute(parse("Custom").workflow, task, backend).solution
    'Answer: 12'
    """

    sandbox: Sandbox | None

    def __init__(
        self,
        replies: Callable[[Request], str] | Mapping[str, Sequence[str]],
        outcomes: Callable[[Job], Sequence[Outcome]] | None = None,
    ) -> None:
        self.replies, self.outcomes = replies, outcomes
        self.sandbox = self if outcomes is not None else None
        self.requests: list[Request] = []

    def generate(self, request: Request) -> Completion:
        """Return the next reply.

        Raises:
            EnvironmentFault: If there is no reply for the operator.
        """
        name, replies = request.operator.name, self.replies
        made = sum(asked.operator.name == name for asked in self.requests)
        self.requests.append(request)
        if callable(replies):
            text = replies(request)
        elif script := replies.get(name):
            text = script[min(made, len(script) - 1)]
        else:
            raise EnvironmentFault(
                f"the script has no reply for {name}.", f"Add {{{name!r}: [...]}} to the replies."
            )
        return Completion(text, len(request.prompt) // 4, request.operator.tokens)

    def run(self, job: Job) -> Sequence[Outcome]:
        """Return the outcomes from the function `outcomes`."""
        return self.outcomes(job) if self.outcomes is not None else ()
