"""`Operator`, a step of a workflow, and `Operators`, the operators that a workflow can use."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from rapidfuzz import process

from aflowgym.tasks.task import KINDS
from toolgym.errors import ConfigurationError
from toolgym.lazy import lazy

#: The slots of the state of a run, with their contents.
SLOTS: Final = {
    "solution": "The current answer, as text or as a program.",
    "code": "The program behind the solution.",
    "candidates": "The solutions of the branches of a list.",
    "verdict": "Whether the last check passed.",
    "feedback": "The report of the last check.",
}
#: One bit per slot, so that a set of filled slots is a number.
BIT: Final = {slot: 1 << place for place, slot in enumerate(SLOTS)}
#: Words that end a workflow or skip a branch. No operator can have such a name.
DONE_WORDS: Final = frozenset({"done", "end", "stop", "finish", "pass"})
# Words that the language interprets as symbols.
_SIGN_WORDS: Final = re.compile("(?i:then|else|otherwise|twice|thrice|x[0-9]+)")
# Slots that describe a solution. A new solution empties them.
_ABOUT_A_SOLUTION: Final = frozenset({"code", "verdict", "feedback"})
_IN_EVERY_PROMPT: Final = frozenset({"problem", "instruction", "form"})


@dataclass(frozen=True)
class Operator:
    """A step of a workflow, with slots, a prompt, and optionally a function.

    An operator that writes a solution clears the slots that describe the old one (code, verdict,
    feedback), except for the slots that the operator outputs or keeps.

    Args:
        name: The canonical name, such as `AnswerGenerate`.
        summary: One-sentence description for the agent.
        prompt: A template of the prompt for the model, with the fields `{problem}`,
            `{instruction}`, `{form}` (the form of an answer) and `{SLOT}` for each input. A
            paragraph whose fields are all empty is removed.
        inputs: Slots that must be filled before the operator runs.
        optional: Slots that are included in the prompt if they are filled.
        outputs: Slots that the operator fills.
        keeps: Slots that remain valid when the operator writes a new solution.
        kinds: Kinds of tasks that the operator supports; empty means all.
        aliases: Other names that the language accepts.
        calls: Minimum and maximum number of model calls in one run.
        tokens: Mean number of generated tokens per call, for the simulated backend.
        run: A function from a `Context` to a mapping of outputs. Without a function, the operator
            calls the model once and parses the reply as a verdict, a program or a solution,
            depending on its outputs.

    Raises:
        ConfigurationError: If a name, slot, kind or field of the prompt is not valid.

    >>> Operator("Decompose", "Split the problem into parts.", "Split this:\\n{problem}").outputs
    ('solution',)
    """

    name: str
    summary: str
    prompt: str = ""
    inputs: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("solution",)
    keeps: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    calls: tuple[int, int] = (1, 1)
    tokens: int = 100
    run: Callable[[Any], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.aliases, str):
            raise ConfigurationError(f"{self.name}: aliases must be a tuple, got a text.")
        for spelling in (self.name, *self.aliases):
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", spelling):
                raise ConfigurationError(
                    f"an operator's name has letters and digits only, got {spelling!r}."
                )
            if spelling.lower() in DONE_WORDS or _SIGN_WORDS.fullmatch(spelling):
                raise ConfigurationError(
                    f"{spelling!r} is a word of the language; choose another name."
                )
        for field, known in (
            ("inputs", SLOTS),
            ("optional", SLOTS),
            ("outputs", SLOTS),
            ("keeps", SLOTS),
            ("kinds", KINDS),
        ):
            for each in getattr(self, field):
                if each not in known:
                    raise ConfigurationError(
                        f"{self.name}: {field} must be names from {', '.join(known)}, got {each!r};"
                        f' pass a tuple, as in {field}=("{next(iter(known))}",).'
                    )
        if not self.outputs or "candidates" in self.outputs:
            raise ConfigurationError(
                f"{self.name}: outputs must be names from solution, code, verdict and feedback."
            )
        pair = self.calls if isinstance(self.calls, tuple) and len(self.calls) == 2 else (1, 0)
        if not 0 <= pair[0] <= pair[1]:
            raise ConfigurationError(
                f"{self.name}: calls must be (minimum, maximum), got {self.calls}."
            )
        if not self.prompt and self.run is None:
            raise ConfigurationError(f"{self.name}: pass a prompt, a function as run, or both.")
        try:
            fields = [each[1:] for each in Formatter().parse(self.prompt) if each[1] is not None]
        except ValueError as problem:
            fields = [(str(problem), "", "")]
        for name, form, conversion in fields:
            if name not in {*_IN_EVERY_PROMPT, *self.shown} or form or conversion:
                raise ConfigurationError(
                    f"{self.name}: its prompt has the field {name!r}, which is not among its"
                    " inputs; add it to inputs or optional, and double other braces."
                )

    @lazy
    def tool(self) -> str:
        """Return the name of the tool, such as `custom_code_generate` for `CustomCodeGenerate`."""
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in self.name).lstrip("_")

    @lazy
    def shown(self) -> tuple[str, ...]:
        """Return all slots that can occur in the prompt."""
        return (*self.inputs, *self.optional)

    @lazy
    def is_check(self) -> bool:
        """Return whether the operator outputs a verdict, which a condition or a loop can use."""
        return "verdict" in self.outputs

    @lazy
    def is_ensemble(self) -> bool:
        """Return whether the operator produces one solution from a list of candidates."""
        return "candidates" in self.inputs

    @lazy
    def emptied(self) -> frozenset[str]:
        """Slots that the operator clears, unless it outputs them."""
        stale = _ABOUT_A_SOLUTION - set(self.keeps) if "solution" in self.outputs else frozenset()
        return stale | {"candidates"} if self.is_ensemble else stale

    @lazy
    def effect(self) -> tuple[int, int]:
        """Return the slots that are kept, and the slots that are filled, as bits of `BIT`."""
        stays = sum(bit for slot, bit in BIT.items() if slot not in self.emptied)
        return stays, sum(BIT[slot] for slot in self.outputs)


def key(spelling: str) -> str:
    """Return a name in lower case without hyphens, underscores and spaces."""
    return spelling.lower().replace("_", "").replace("-", "").replace(" ", "")


class Operators(Mapping[str, Operator]):
    """The operators that a workflow can use, by canonical name.

    Args:
        operators: The operators. No two operators can have the same name or alias.

    Raises:
        ConfigurationError: If two operators have the same name or alias, or there are no operators.

    >>> from aflowgym.operators import OPERATORS
    >>> OPERATORS.resolve("self_consistency")
    'ScEnsemble'
    """

    def __init__(self, operators: Iterable[Operator]) -> None:
        self._by_name: dict[str, Operator] = {}
        self._by_key: dict[str, str] = {}
        for operator in operators:
            for spelling in (operator.name, *operator.aliases):
                taken = self._by_key.setdefault(key(spelling), operator.name)
                if taken != operator.name or operator.name in self._by_name:
                    raise ConfigurationError(
                        f"{spelling!r} already names the operator {taken}; choose another name."
                    )
            self._by_name[operator.name] = operator
        if not self._by_name:
            raise ConfigurationError("there are no operators; name at least one.")

    def of(self, operators: Operators | Iterable[Operator | str] | None) -> Operators:
        """Return a set of operators from a specification.

        Args:
            operators: If it is None, the result is this set. A list can contain `Operator` objects,
                names from this set such as `"Custom"`, or import paths of objects, such as
                `"mymodule:VOTE"`.

        Raises:
            ConfigurationError: If an entry is invalid, or two operators have the same name or
                alias.
        """
        if operators is None:
            return self
        if isinstance(operators, Operators):
            return operators
        if isinstance(operators, str | Operator) or not isinstance(operators, Iterable):
            raise ConfigurationError(
                f'operators must be a list such as ["Custom", "Review"], got {operators!r:.80}.'
            )
        return Operators([self._entry(each) for each in operators])

    def _entry(self, entry: Any) -> Operator:
        """Return the operator for an entry of such a list."""
        if isinstance(entry, str) and ":" in entry:
            module, _, attribute = entry.partition(":")
            try:
                entry = getattr(importlib.import_module(module), attribute)
            except Exception as problem:  # importing a user's module may raise any exception
                raise ConfigurationError(
                    f"the operator {entry!r} cannot be loaded: {problem}."
                ) from problem
        if isinstance(entry, str):
            name = self.resolve(entry)
            if name is None:
                nearest = process.extractOne(entry, list(self))[0]
                raise ConfigurationError(
                    f"there is no operator {entry!r}; did you mean {nearest}? Pass a custom"
                    ' operator as an object, or as an import path such as "mymodule:VOTE".'
                )
            return self[name]
        if not isinstance(entry, Operator):
            raise ConfigurationError(
                f"operators must hold Operator objects or names, got {entry!r}."
            )
        return entry

    def __getitem__(self, name: str) -> Operator:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operators) and [*self.values()] == [*other.values()]

    def __hash__(self) -> int:
        return hash(tuple(self._by_name))

    @property
    def spellings(self) -> dict[str, str]:
        """The canonical names by spelling, where spellings are normalized by `key`."""
        return self._by_key

    def resolve(self, spelling: str) -> str | None:
        """Return the canonical name for a spelling or an alias, or None if there is none."""
        return self._by_key.get(key(spelling))
