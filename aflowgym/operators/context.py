"""The `Context` that an operator works on, and the interfaces of backends and sandboxes.

A backend completes a `Request` and a sandbox runs a `Job`. Neither returns an error in place of a
text: an outage raises `EnvironmentFault`, and the error of a program is an `Outcome`. A request
carries everything that a random draw may depend on, so that a backend needs no state.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from string import Formatter
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from aflowgym.answers.code import CodeTest, Outcome
from aflowgym.operators.operator import Operator
from aflowgym.operators.replies import letters, without_thoughts
from aflowgym.operators.trace import Failure, Step, Usage
from aflowgym.tasks.task import WorkflowTask
from toolgym.errors import ConfigurationError
from toolgym.sanitize import encodable

# --- random draws ---------------------------------------------------------------------------------
#
# A draw is a hash of its key. It depends on nothing that happened before, so it is the same in
# whatever order branches run, and on every machine.

SEPARATOR: Final = "\x1f"
_SCALE: Final = 2.0**-53


def number(*key: object) -> int:
    """A number from 0 to 2**64 - 1, fixed by the key."""
    return hash_of(SEPARATOR.join(map(str, key)))


def hash_of(text: str) -> int:
    """The number of a key whose parts are already joined by `SEPARATOR`."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def unit(number_: int) -> float:
    """A number of 64 bits as a float in [0, 1)."""
    return (number_ >> 11) * _SCALE


def shuffled(count: int, *key: object) -> list[int]:
    """The numbers from 0 to count - 1 in an order fixed by the key."""
    start = SEPARATOR.join(map(str, (*key, "")))
    return sorted(range(count), key=lambda place: hash_of(f"{start}{place}"))


# --- requests to a model and jobs for a sandbox ---------------------------------------------------


class Request(NamedTuple):
    """One call of a language model.

    Attributes:
        task: The task of the run.
        operator: The operator that asks.
        prompt: The text for the model.
        inputs: The slots that the prompt shows.
        branch: The numbers of the branches around the operator, such as "2" or "0.1"; "" outside
            of lists.
        number: How many calls the operator has made before, in this execution.
        seed: The seed of the episode.
        max_tokens: How many tokens are left.
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
        """What random draws depend on: the same operator called again draws the same."""
        parts = (self.seed, self.task.id, self.operator.name, self.branch, self.number, "")
        return SEPARATOR.join(map(str, parts))

    @property
    def draw(self) -> int:
        """A number from 0 to 2**31 - 1, fixed by the key."""
        return hash_of(self.key) >> 33

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages."""
        return [{"role": "user", "content": self.prompt}]


class Completion(NamedTuple):
    """The text that a model wrote, the tokens it read and wrote, and whether it was cut off."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cut: bool = False


class Job(NamedTuple):
    """A program to run, and calls of one of its functions, each in a fresh start.

    Attributes:
        task: The task of the run; only the simulated sandbox reads it.
        program: The source.
        function: The name of the function.
        calls: The positional and the named arguments of each call, as texts of literals.
        setup: Source that runs before the program, in the same module.
    """

    task: WorkflowTask
    program: str
    function: str
    calls: tuple[tuple[str, str], ...] = (("()", "{}"),)
    setup: str = ""


class Sandbox(Protocol):
    """A place where programs run.

    Raises:
        EnvironmentFault: The machine failed, not the program.
    """

    def run(self, job: Job) -> Sequence[Outcome]:
        """Run a job, and wait for it; one outcome per call, in order."""


class Backend(Protocol):
    """A source of completions, which may bring a sandbox.

    If its attribute `waits` is True, its completions come from elsewhere, and requests that do not
    depend on each other are made at the same time, in threads.

    Raises:
        EnvironmentFault: No completion could be had.
    """

    sandbox: Sandbox | None

    def generate(self, request: Request) -> Completion:
        """Complete one request, and wait for it."""


def needed(sandbox: Sandbox | None) -> Sandbox:
    """The sandbox.

    Raises:
        ConfigurationError: There is none.
    """
    if sandbox is None:
        raise ConfigurationError(
            "programs have to run, and there is no sandbox: pass one as sandbox=, use a backend"
            " that brings one (the simulated one does), or use no operator that runs programs."
        )
    return sandbox


def job_of(task: WorkflowTask, program: str, tests: Sequence[CodeTest]) -> Job:
    """The calls of some tests; the expected values do not reach the sandbox."""
    calls = tuple((test.arguments, test.keywords) for test in tests)
    return Job(task, program, task.entry_point, calls, task.setup)


# --- prompts --------------------------------------------------------------------------------------

#: How an answer is written, by kind of task; `{function}` is the function that a program defines.
FORMS: Final[Mapping[str, str]] = {
    "math": "End with one line `Answer: ...` that holds the value alone, exact, in lowest terms.",
    "code": "Give the whole program in one ```python block. It defines `{function}` under exactly"
    " this name, imports what it needs, reads no input and prints nothing.",
    "qa": "End with one line `Answer: ...` that holds the answer alone, in as few words as possible"
    " and as the passages spell it.",
}


def fill(template: str, task: WorkflowTask, fields: Mapping[str, str]) -> str:
    """A prompt with its fields filled in, without the paragraphs whose fields are all empty.

    Args:
        template: The prompt of an operator.
        task: The task, for `{problem}` and `{form}`.
        fields: `instruction` and the slots as texts; empty where there is nothing.

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


class Failed(Exception):
    """An operator cannot go on; its branch, or the run, ends here. Only the interpreter catches it.

    Args:
        code: A code of `RUN_CODES`.
        message: A sentence that says why.
        path: The place in the workflow, as soon as it is known.
    """

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(code, message, path)
        self.code, self.message, self.path = code, message, path

    def record(self, path: str) -> Failure:
        """The record of the failure, at the step that noticed it first."""
        self.path = self.path or path
        return Failure(self.code, self.message, self.path)


class Candidate(NamedTuple):
    """The solution of one branch of a list."""

    solution: str
    code: str | None = None


class Context:
    """The state of one branch of a run, and the means of the operator that works on it.

    `Operator.run` gets a context. It reads the slots and calls `ask`, `ask_each`, `run_program`,
    `run_tests`, `warn` and `fail`; it returns its outputs and does not set the slots itself.

    Attributes:
        task: The task of the run.
        solution: The current answer, as text or as a program; None if there is none.
        code: The program behind the solution.
        candidates: The solutions of the branches of the list before this operator.
        verdict: Whether the last check passed.
        feedback: The report of the last check.
        instruction: The instruction that the workflow gives to the operator, or "".
        calls: How many calls of the model the branch may still make.
        tokens: How many tokens it may still read and write.
    """

    __slots__ = (
        "backend", "branch", "calls", "candidates", "code", "feedback", "instruction", "made",
        "operator", "sandbox", "seed", "solution", "step", "task", "tokens", "verdict",
    )  # fmt: skip

    operator: Operator
    step: Step

    def __init__(
        self,
        task: WorkflowTask,
        backend: Backend,
        sandbox: Sandbox | None,
        seed: int,
        calls: int,
        tokens: int,
        branch: str = "",
    ) -> None:
        self.task, self.backend, self.sandbox, self.seed = task, backend, sandbox, seed
        self.calls, self.tokens, self.branch = calls, tokens, branch
        self.instruction, self.made = "", 0
        self.solution: str | None = None
        self.code: str | None = None
        self.candidates: tuple[Candidate, ...] | None = None
        self.verdict: bool | None = None
        self.feedback: str | None = None

    def ask(self, **slots: Any) -> str:
        """One reply of the model to the operator's prompt, without its thoughts.

        Args:
            slots: Slots to show in place of those of the state.
        """
        (completion,) = self._complete([slots])
        if completion.cut:
            raise Failed("E-REPLY-CUT", f"it was cut off after {completion.tokens_out} tokens.")
        text = without_thoughts(completion.text)
        if not text.strip():
            raise Failed("E-REPLY-EMPTY", "the model wrote nothing.")
        return text

    def ask_each(self, several: Sequence[Mapping[str, Any]]) -> list[str]:
        """One reply for each set of slots, asked at the same time; "" for one that was cut off."""
        replies = self._complete(several)
        return ["" if each.cut else without_thoughts(each.text) for each in replies]

    def run_program(self, program: str, function: str = "solve") -> Outcome:
        """The outcome of calling a function of a program without arguments, in the sandbox."""
        (outcome,) = needed(self.sandbox).run(Job(self.task, program, function))
        return outcome

    def run_tests(self, program: str) -> Sequence[Outcome]:
        """The outcomes of the public tests of a `code` task, in their order."""
        job = job_of(self.task, program, self.task.public_tests)
        return needed(self.sandbox).run(job)

    def warn(self, code: str, message: str) -> None:
        """Note in the trace what did not stop the operator; a code of `RUN_CODES`."""
        self.step.failure = Failure(code, message, self.step.path)

    def fail(self, message: str, code: str = "E-OPERATOR") -> NoReturn:
        """End the operator without outputs; what it made does not count."""
        raise Failed(code, message)

    def _complete(self, several: Sequence[Mapping[str, Any]]) -> list[Completion]:
        """Complete the prompt once for each set of slots, and charge the calls."""
        if self.calls < len(several):
            raise Failed("E-CALLS", f"{len(several)} needed, {self.calls} left.")
        if self.tokens <= 0:
            raise Failed("E-TOKENS", "none left.")
        self.calls -= len(several)
        requests = [self._request(slots) for slots in several]
        generate = self.backend.generate
        if len(requests) > 1 and getattr(self.backend, "waits", False):
            with ThreadPoolExecutor(len(requests)) as pool:
                completions = list(pool.map(generate, requests))
        else:
            completions = [generate(request) for request in requests]
        read = sum([each.tokens_in for each in completions])
        written = sum([each.tokens_out for each in completions])
        self.tokens -= read + written
        self.step.usage = self.step.usage.plus(Usage(len(several), read, written))
        return [each._replace(text=encodable(each.text)) for each in completions]

    def _request(self, slots: Mapping[str, Any]) -> Request:
        operator, inputs = self.operator, self.step.inputs
        shown = {**inputs, **slots} if slots else inputs
        fields = {slot: _slot_text(shown.get(slot)) for slot in operator.shown}
        fields["instruction"] = self.instruction
        prompt = encodable(fill(operator.prompt, self.task, fields))
        self.made += 1
        return Request(
            self.task, operator, prompt, shown, self.branch, self.made - 1, self.seed, self.tokens
        )


def _slot_text(value: Any) -> str:
    """A slot as a prompt shows it."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        named = zip(letters(len(value)), value, strict=True)
        return "\n\n".join(f"{name}:\n{each.solution}" for name, each in named)
    return str(value)
