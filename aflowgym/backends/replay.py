"""Backends without a model: recorded completions given again, and scripted ones.

`Recorder` stands in front of a backend and notes what it says and what its sandbox returns;
`Replay` gives the same again, without either. A completion is found by all that it was asked with
(task, operator, prompt, place, number of the call, seed), an outcome by program and calls. What was
not recorded is an `EnvironmentFault`: there is nothing to say in its place.

`ScriptedBackend` says what it is told to: for tests, and for looking at one path of a workflow. It
keeps the requests that it was asked, so that a test can look at the prompts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from aflowgym.answers.code import Outcome
from aflowgym.operators.context import Backend, Completion, Job, Request, Sandbox
from toolgym.errors import ConfigurationError, EnvironmentFault

Records = dict[str, Any]
_HINT: Final = "Record it again: the task, the workflow, the seed or a prompt has changed."


def key_of(asked: Request | Job) -> str:
    """The key by which a completion or an outcome is found."""
    fields = list(asked)
    if isinstance(asked, Request):
        fields = [asked.operator.name, asked.prompt, asked.branch, asked.number, asked.seed]
    else:
        fields = [asked.program, asked.function, *map(list, asked.calls)]
        fields += [asked.setup] if asked.setup else []
    text = json.dumps([asked.task.id, *fields], ensure_ascii=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


class Recorder:
    """A backend that passes everything on to another one, and notes it.

    Args:
        sandbox: Where programs run; None takes the backend's own.
    """

    sandbox: Sandbox | None

    def __init__(self, backend: Backend, sandbox: Sandbox | None = None) -> None:
        self.backend = backend
        self.records: Records = {}
        inner = sandbox or backend.sandbox
        self.sandbox = _Noting(inner, self.records) if inner is not None else None

    def generate(self, request: Request) -> Completion:
        """What the backend says."""
        return self._note(request, self.backend.generate(request))

    def _note(self, request: Request, completion: Completion) -> Completion:
        self.records[key_of(request)] = list(completion)
        return completion

    def save(self, path: Path) -> None:
        """Write what was noted, one JSON object a line."""
        lines = (
            json.dumps({"key": key, "value": self.records[key]}) for key in sorted(self.records)
        )
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


class _Noting:
    def __init__(self, sandbox: Sandbox, records: Records) -> None:
        self.sandbox, self.records = sandbox, records

    def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes of a job."""
        return self._note(job, self.sandbox.run(job))

    def _note(self, job: Job, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        self.records[key_of(job)] = [[each.value, each.error] for each in outcomes]
        return outcomes


class Replay:
    """A backend and sandbox that give again what a `Recorder` noted."""

    sandbox: Sandbox | None

    def __init__(self, records: Mapping[str, Any]) -> None:
        self.records = records
        self.sandbox = self

    @classmethod
    def load(cls, path: Path) -> Replay:
        """The recording that `Recorder.save` wrote.

        Raises:
            ConfigurationError: The file cannot be read, or holds something else.
        """
        try:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            return cls({line["key"]: line["value"] for line in lines})
        except OSError as problem:
            raise ConfigurationError(f"{path} cannot be read: {problem.strerror}.") from problem
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            raise ConfigurationError(f"{path} is no recording: {problem!r}.") from problem

    def generate(self, request: Request) -> Completion:
        """What was said then.

        Raises:
            EnvironmentFault: This was not asked then.
        """
        what = f"call {request.number} of {request.operator.name}"
        return Completion(*self._record_of(request, what))

    def run(self, job: Job) -> Sequence[Outcome]:
        """What was returned then.

        Raises:
            EnvironmentFault: This was not run then.
        """
        return [Outcome(*each) for each in self._record_of(job, f"a program for {job.function}")]

    def _record_of(self, asked: Request | Job, what: str) -> Any:
        record = self.records.get(key_of(asked))
        if record is None:
            raise EnvironmentFault(f"task {asked.task.id!r}: {what} was not recorded.", _HINT)
        return record


class ScriptedBackend:
    """Replies by a rule or from a list, and outcomes by a rule.

    Args:
        replies: A function of the request; or by operator, its replies in the order of its calls,
            of which the last is repeated.
        outcomes: A function of the job; None where no program runs.

    Raises:
        ConfigurationError: An operator asks for which there is no reply.

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
        """The next reply."""
        made = sum(asked.operator.name == request.operator.name for asked in self.requests)
        self.requests.append(request)
        if callable(self.replies):
            return Completion(
                self.replies(request), len(request.prompt) // 4, request.operator.tokens
            )
        script = self.replies.get(request.operator.name)
        if not script:
            raise ConfigurationError(f"the script has no reply for {request.operator.name}.")
        text = script[min(made, len(script) - 1)]
        return Completion(text, len(request.prompt) // 4, request.operator.tokens)

    def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes by the rule."""
        return self.outcomes(job) if self.outcomes is not None else ()
