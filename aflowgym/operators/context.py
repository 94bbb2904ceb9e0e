"""The `Context` that an operator works on, and the interfaces of backends and sandboxes.

A backend completes a `Request`, and a sandbox runs a `Job`. Neither of them returns an error as
text: an infrastructure error raises `EnvironmentFault`, and an error in a program is returned as an
`Outcome`. A request contains everything that can affect a random draw, so a backend can be
stateless.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from string import Formatter
from typing import Any, Final, NamedTuple, NoReturn, Protocol, TypeVar

from aflowgym.answers.code import CodeTest, Outcome
from aflowgym.operators.operator import Operator
from aflowgym.operators.replies import (
    last_block,
    letters,
    program_in,
    read_verdict,
    without_thoughts,
)
from aflowgym.operators.trace import Failure, Step, Usage
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.sanitize import encodable

T = TypeVar("T")
R = TypeVar("R")

# A draw is a hash of its key. A draw does not depend on earlier draws, so it is the same for
# any order of branches and on every machine.

SEPARATOR: Final = "\x1f"
_SCALE: Final = 2.0**-53


def number(*key: object) -> int:
    """Return a number from 0 to 2**64 - 1 that is derived from the key."""
    return hash_of(SEPARATOR.join(map(str, key)))


def hash_of(text: str) -> int:
    """Return the number for a key whose parts are already joined by `SEPARATOR`."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def unit(number_: int) -> float:
    """Convert a 64-bit integer to a float in [0, 1)."""
    return (number_ >> 11) * _SCALE


def shuffled(count: int, *key: object) -> list[int]:
    """Return the numbers from 0 to count - 1 in an order that is derived from the key."""
    start = SEPARATOR.join(map(str, (*key, "")))
    return sorted(range(count), key=lambda place: hash_of(f"{start}{place}"))


# --- requests to a model and jobs for a sandbox ---------------------------------------------------


class Request(NamedTuple):
    """One request to a language model.

    Attributes:
        task: The task of the run.
        operator: The operator that makes the request.
        prompt: The text for the model.
        inputs: The slots that the prompt shows.
        branch: Indices of the enclosing branches, such as "2" or "0.1"; "" outside of lists.
        number: Number of earlier model calls in this execution of the operator.
        seed: Seed of the episode.
        max_tokens: Maximum number of tokens in the reply.
    """

    task: WorkflowTask
    operator: Operator
    prompt: str
    inputs: Mapping[str, Any]
    branch: str
    number: int
    seed: int
    max_tokens: int

    @property
    def key(self) -> str:
        """The key of the random draws, which is the same if the same operator runs again."""
        parts = (self.seed, self.task.id, self.operator.name, self.branch, self.number, "")
        return SEPARATOR.join(map(str, parts))

    @property
    def draw(self) -> int:
        """A number from 0 to 2**31 - 1 that is derived from the key."""
        return hash_of(self.key) >> 33

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages."""
        return [{"role": "user", "content": self.prompt}]


class Completion(NamedTuple):
    """A model's reply, its token counts, and whether the reply was truncated."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cut: bool = False


class Job(NamedTuple):
    """A program and the calls of one of its functions, each of which starts from a fresh state.

    Attributes:
        task: The task of the run. Only the simulated sandbox uses the task.
        program: Source of the program.
        function: Name of the function.
        calls: Positional and keyword arguments of each call, as strings that contain Python
            literals.
        setup: Source code that runs before the program, in the same module.
    """

    task: WorkflowTask
    program: str
    function: str
    calls: tuple[tuple[str, str], ...] = (("()", "{}"),)
    setup: str = ""


class Sandbox(Protocol):
    """A sandbox that runs programs.

    Raises:
        EnvironmentFault: If the sandbox itself failed, as opposed to the program.
    """

    def run(self, job: Job) -> Sequence[Outcome]:
        """Run a job and return one outcome per call, in order."""


class Backend(Protocol):
    """A source of completions, which can have a sandbox.

    If the attribute `waits` is True, completions come from another process or machine, and
    independent requests are made in parallel threads.

    Raises:
        EnvironmentFault: If the backend returned no completion.
    """

    sandbox: Sandbox | None

    def generate(self, request: Request) -> Completion:
        """Complete one request."""


def needed(sandbox: Sandbox | None) -> Sandbox:
    """Return the sandbox.

    Raises:
        ConfigurationError: If there is none.
    """
    if sandbox is None:
        raise ConfigurationError(
            "there is no sandbox to run programs. Pass one as sandbox=, use a backend that has one"
            " (such as the simulated backend), or use no operator that runs programs."
        )
    return sandbox


def job_of(task: WorkflowTask, program: str, tests: Sequence[CodeTest]) -> Job:
    """Return the job that runs the given tests, without their expected values."""
    calls = tuple((test.arguments, test.keywords) for test in tests)
    return Job(task, program, task.entry_point, calls, task.setup)


# --- prompts --------------------------------------------------------------------------------------

#: Forms of an answer by kind of task. `{function}` is the function that a program defines.
FORMS: Final[Mapping[str, str]] = {
    "math": "End with one line `Answer: ...` that holds the value alone, exact, in lowest terms.",
    "code": "Give the whole program in one ```python block. It defines `{function}` under exactly"
    " this name, imports what it needs, reads no input and prints nothing.",
    "qa": "End with one line `Answer: ...` that holds the answer alone, in as few words as possible"
    " and as the passages spell it.",
}


def fill(template: str, task: WorkflowTask, fields: Mapping[str, str]) -> str:
    """Return a prompt with its fields replaced by their values.

    Paragraphs whose fields are all empty are removed.

    Args:
        template: The prompt of an operator.
        task: The task, for `{problem}` and `{form}`.
        fields: The `instruction` and the slots as strings; a string is empty if there is no value.

    >>> from aflowgym import load_tasks
    >>> task = load_tasks("bundled", "train")[0]
    >>> print(fill("Solve it.\\n\\nWork:\\n{solution}\\n\\n{form}", task, {"solution": ""}))
    Solve it.
    <BLANKLINE>
    End with one line `Answer: ...` that holds the value alone, exact, in lowest terms.
    """
    empty = tuple([name for name, value in fields.items() if not value])
    return _reduced(template, empty, task.kind, task.entry_point).format(
        problem=task.prompt, **fields
    )


@functools.lru_cache(maxsize=4096)
def _reduced(template: str, empty: tuple[str, ...], kind: str, function: str) -> str:
    kept = []
    for paragraph in template.split("\n\n"):
        names = {name for _, name, _, _ in Formatter().parse(paragraph) if name}
        if not names or not names <= set(empty):
            kept.append(paragraph)
    form = FORMS[kind].format(function=function).replace("{", "{{").replace("}", "}}")
    return "\n\n".join(kept).replace("{form}", form)


# --- the context of an operator -------------------------------------------------------------------


MOST_THREADS: Final = 32
_NOUNS: Final = {
    "solution": "a solution",
    "code": "a program",
    "candidates": "a list of candidates",
    "verdict": "the verdict of a check",
    "feedback": "the feedback of a check",
}
_TYPES: Final = {"solution": str, "code": str, "verdict": bool, "feedback": str}


class Failed(Exception):
    """Raised if an operator cannot continue, to end the branch or the run.

    Only the interpreter catches this exception.

    Args:
        code: A code of `RUN_CODES`.
        message: A sentence with the reason.
        path: The position in the workflow; set by the interpreter.
    """

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(code, message, path)
        self.code, self.message, self.path = code, message, path

    def record(self, path: str) -> Failure:
        """Return the record of the failure, located at the step where it first occurred."""
        self.path = self.path or path
        return Failure(self.code, self.message, self.path)


class Candidate(NamedTuple):
    """The solution of one branch of a list."""

    solution: str
    code: str | None = None


class Context:
    """The state of one branch of a run, with the methods that an operator can call.

    The function `Operator.run` receives a context. The function can read the slots and call `ask`,
    `ask_each`, `run_program`, `run_tests`, `warn` and `fail`. The function returns its outputs and
    must not set the slots itself.

    Attributes:
        task: The task of the run.
        solution: The current solution, as text or as a program; None if there is none.
        code: The program behind the solution.
        candidates: The solutions of the branches of the list that precedes this operator.
        verdict: Whether the last check passed.
        feedback: The report of the last check.
        operator: The operator that is running.
        instruction: The instruction for the operator in the workflow; "" if there is none.
        step: The operator's step in the trace.
        branch: Indices of the enclosing branches, as in `Request`.
        seed: Seed of the episode.
        calls: Remaining model calls of the branch.
        tokens: Remaining prompt and completion tokens of the branch.
    """

    operator: Operator
    instruction: str
    step: Step

    def __init__(
        self,
        task: WorkflowTask,
        backend: Backend,
        sandbox: Sandbox | None,
        seed: int,
        calls: int,
        tokens: int,
    ) -> None:
        self.task, self.backend, self.sandbox, self.seed = task, backend, sandbox, seed
        self.calls, self.tokens, self.branch = calls, tokens, ""
        self.clear()

    def clear(self, candidates: tuple[Candidate, ...] | None = None) -> None:
        """Clear every slot except for the candidates."""
        self.candidates = candidates
        self.solution: str | None = None
        self.code: str | None = None
        self.verdict: bool | None = None
        self.feedback: str | None = None

    def fork(self, place: int, calls: int, tokens: int) -> Context:
        """Return a context for a branch, with a copy of the slots and part of the budget."""
        fork = Context(self.task, self.backend, self.sandbox, self.seed, calls, tokens)
        fork.solution, fork.code, fork.candidates = self.solution, self.code, self.candidates
        fork.verdict, fork.feedback = self.verdict, self.feedback
        fork.branch = f"{self.branch}.{place}" if self.branch else str(place)
        return fork

    def lacks(self, operator: Operator) -> tuple[str, str]:
        """Return why an operator cannot run on this state.

        The result is "kind", "list" or the name of an empty slot, followed by an explanation. If
        the operator can run, both strings are empty.
        """
        name, kind = operator.name, self.task.kind
        if operator.kinds and kind not in operator.kinds:
            return "kind", f"{name} does not run on {kind} tasks."
        if self.candidates is not None and not operator.is_ensemble:
            return "list", f"{name} takes one solution, not candidates."
        for slot in operator.inputs:
            if getattr(self, slot) is None:
                return slot, f"{name} needs {_NOUNS[slot]}; there is none."
        return "", ""

    def operate(self, operator: Operator, instruction: str, step: Step) -> None:
        """Run an operator on this state, and fill its output slots.

        Args:
            operator: The operator.
            instruction: The operator's instruction in the workflow; "" if there is none.
            step: The operator's step in the trace, to which inputs, outputs, usage and any failure
                are added.

        Raises:
            Failed: If the operator cannot run on this state, or cannot continue.
            EnvironmentFault: If the backend or the sandbox failed, or an infrastructure error
                occurred.
            ConfigurationError: If the operator's function raised another exception, or returned
                invalid outputs.
        """
        self.operator, self.instruction, self.step = operator, instruction, step
        try:
            reason = self.lacks(operator)[1]
            if reason:
                raise Failed("E-STATE", reason)
            step.inputs = {
                slot: value for slot in operator.shown if (value := getattr(self, slot)) is not None
            }
            step.outputs = self._read(self.ask()) if operator.run is None else self._run()
        except Failed as failed:
            step.failure = failed.record(step.path)
            raise
        for slot in operator.emptied:
            setattr(self, slot, None)
        for slot, value in step.outputs.items():
            setattr(self, slot, value)
        if "code" in operator.keeps and "code" not in step.outputs and self.task.kind == "code":
            self.code = program_in(self.solution or "", self.task.entry_point)

    def ask(self, **slots: Any) -> str:
        """Return one reply of the model to the operator's prompt, without the model's reasoning.

        Args:
            slots: Values that are used in the prompt instead of the slots of the state.
        """
        (completion,) = self._complete([slots])
        if completion.cut:
            self.fail(f"it was cut off after {completion.tokens_out} tokens.", "E-REPLY-CUT")
        text = without_thoughts(encodable(completion.text))
        if not text.strip():
            self.fail("the model wrote nothing.", "E-REPLY-EMPTY")
        return text

    def ask_each(self, several: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return one reply for each mapping of slots. The requests are made in parallel.

        A truncated reply is returned as "".
        """
        replies = self._complete(several)
        return ["" if each.cut else without_thoughts(encodable(each.text)) for each in replies]

    def run_program(self, program: str, function: str = "solve") -> Outcome:
        """Call a function without arguments in the sandbox, and return the outcome."""
        (outcome,) = needed(self.sandbox).run(Job(self.task, program, function))
        return outcome

    def run_tests(self, program: str) -> Sequence[Outcome]:
        """Return the outcomes of the public tests of a `code` task, in order."""
        job = job_of(self.task, program, self.task.public_tests)
        return needed(self.sandbox).run(job)

    def warn(self, code: str, message: str) -> None:
        """Add a warning to the trace. The warning's code begins with "W-".

        Raises:
            ConfigurationError: If the code does not begin with "W-".
        """
        if not code.startswith("W-"):
            raise ConfigurationError(f"the code of a warning begins with 'W-', got {code!r}.")
        self.step.failure = Failure(code, message, self.step.path)

    def fail(self, message: str, code: str = "E-OPERATOR") -> NoReturn:
        """Stop the operator without outputs. The state does not change."""
        raise Failed(code, message)

    def at_once(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the results of a function for a list of items, in order.

        The calls run in threads if the attribute `waits` of the backend is True. Each list has its
        own threads, so a list within a branch never waits for a free thread. If a call raises an
        exception, calls that have not begun are canceled, and the running calls are awaited.
        """
        if len(items) < 2 or not getattr(self.backend, "waits", False):
            return list(map(function, items))
        with ThreadPoolExecutor(min(len(items), MOST_THREADS)) as pool:
            return list(pool.map(function, items))

    def _complete(self, several: Sequence[Mapping[str, Any]]) -> list[Completion]:
        """Request a completion of the prompt for each set of slots, and charge the calls."""
        if self.calls < len(several):
            self.fail(f"{len(several)} needed, {self.calls} left.", "E-CALLS")
        if self.tokens <= 0:
            self.fail("none left.", "E-TOKENS")
        self.calls -= len(several)
        completions = self.at_once(self.backend.generate, self._requests(several))
        for each in completions:
            used = Usage(1, each.tokens_in, each.tokens_out)
            self.tokens -= used.tokens
            self.step.usage = self.step.usage.plus(used)
        return completions

    def _requests(self, several: Sequence[Mapping[str, Any]]) -> list[Request]:
        operator, requests = self.operator, []
        if not operator.prompt:
            raise ConfigurationError(f"the operator {operator.name} calls `ask` but has no prompt.")
        for number, slots in enumerate(several, self.step.usage.calls):
            shown = {**self.step.inputs, **slots}
            fields = {slot: _slot_text(shown.get(slot)) for slot in operator.shown}
            fields["instruction"] = self.instruction
            requests.append(
                Request(
                    self.task, operator, encodable(fill(operator.prompt, self.task, fields)), shown,
                    self.branch, number, self.seed, self.tokens,
                )
            )  # fmt: skip
        return requests

    def _read(self, reply: str) -> dict[str, Any]:
        """Extract the outputs of the operator from a reply."""
        wanted = self.operator.outputs
        outputs: dict[str, Any] = {}
        if "code" in wanted:
            function = self.task.entry_point
            outputs["code"] = program_in(reply, function) if function else last_block(reply)
            if outputs["code"] is None:
                self.fail(f"no program that defines {function or 'a function'}.", "E-PROGRAM")
        if "solution" in wanted:
            outputs["solution"] = reply
        if "verdict" in wanted:
            verdict = read_verdict(reply)
            if verdict is None:
                self.fail("no line `Verdict: right` or `Verdict: wrong`.", "E-REPLY")
            outputs["verdict"], reply = verdict
        if "feedback" in wanted:
            outputs["feedback"] = reply
        return outputs

    def _run(self) -> Mapping[str, Any]:
        """Return the outputs of the operator's function, after checking their slots and types."""
        name, wanted = self.operator.name, set(self.operator.outputs)
        try:
            outputs = self.operator.run(self)  # type: ignore[misc]  # the caller has looked
        except (Failed, EnvironmentFault, ConfigurationError):
            raise
        except Exception as problem:
            raise ConfigurationError(
                f"the function of the operator {name} raised {type(problem).__name__}: {problem}."
                " Correct it, or call context.fail(...) if it cannot continue."
            ) from problem
        if (
            not isinstance(outputs, Mapping)
            or not wanted <= outputs.keys() <= wanted.union(self.operator.keeps)
            or any(type(each) is not _TYPES.get(slot) for slot, each in outputs.items())
        ):
            raise ConfigurationError(
                f"the function of the operator {name} must return a dict of"
                f" {', '.join(self.operator.outputs)}, with True or False as the verdict and texts"
                f" otherwise; got {outputs!r:.200}."
            )
        return outputs


def _slot_text(value: Any) -> str:
    """Return a slot as text for a prompt."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        named = zip(letters(len(value)), value, strict=True)
        return "\n\n".join(f"{name}:\n{each.solution}" for name, each in named)
    return str(value)
