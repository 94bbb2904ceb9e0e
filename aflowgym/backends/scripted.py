"""A backend that says what it is told to: for tests, and for looking at one path of a workflow.

It keeps the requests that it was asked, so that a test can look at the prompts. It is no model of
anything: what an operator does with an odd reply is found out by giving it one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aflowgym.answers.code import Outcome
from aflowgym.execution.protocols import Completion, Job, Request, Sandbox
from toolgym.errors import ConfigurationError


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
        made = sum(asked.operator == request.operator for asked in self.requests)
        self.requests.append(request)
        if callable(self.replies):
            return Completion(self.replies(request), len(request.prompt) // 4, request.tokens)
        known = self.replies.get(request.operator)
        if not known:
            raise ConfigurationError(f"the script has no reply for {request.operator}.")
        text = known[min(made, len(known) - 1)]
        return Completion(text, len(request.prompt) // 4, request.tokens)

    async def agenerate(self, request: Request) -> Completion:
        """The next reply."""
        return self.generate(request)

    def run(self, job: Job) -> Sequence[Outcome]:
        """The outcomes by the rule."""
        return self.outcomes(job) if self.outcomes is not None else ()

    async def arun(self, job: Job) -> Sequence[Outcome]:
        """The outcomes by the rule."""
        return self.run(job)
