"""The declaration of an operator: its place in a workflow, its prompt and its price.

One rule says what a step leaves behind: an operator that writes the solution makes everything said
about the old one stale, so the slots code, verdict and feedback are empty afterwards, except for
those it writes or keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter

from aflowgym.tasks.task import KINDS
from toolgym.lazy import lazy

#: The slots of the state, and what each holds.
SLOTS = {
    "solution": "The answer as it stands, as text or as a program.",
    "code": "The program behind the solution.",
    "candidates": "The solutions of the branches of a list.",
    "verdict": "Whether the last check passed.",
    "feedback": "What the last check said.",
}
#: One bit per slot: the slots that are filled, as a number.
BIT = {slot: 1 << place for place, slot in enumerate(SLOTS)}
#: Words that end a workflow or skip a branch; no operator can be called so.
DONE_WORDS = frozenset({"done", "end", "stop", "finish", "pass"})
# What becomes stale with a new solution.
_ABOUT_A_SOLUTION = frozenset({"code", "verdict", "feedback"})
_IN_EVERY_PROMPT = frozenset({"problem", "instruction", "form"})


@dataclass(frozen=True)
class Operator:
    """One operator: its place in a workflow, its prompt and its price.

    Args:
        name: The canonical name, such as `AnswerGenerate`.
        summary: What it does, one sentence.
        prompt: What the model is asked. `{problem}`, `{instruction}`, `{form}` (how an answer is to
            be written) and `{SLOT}` for each slot it needs, wants or reads are filled in; a
            paragraph whose fields are all empty is left out.
        writes: Slots it fills.
        needs: Slots without which it cannot run: an error of the workflow.
        wants: Slots without which it makes little sense: a warning.
        reads: Slots it uses where they are filled.
        keeps: Slots that stay true although it writes a new solution.
        kinds: Kinds of tasks it can run on; empty means all.
        aliases: Other names it is known by.
        calls: Least and most calls of the model in one run.
        tokens: Tokens that one call writes, on average; what it reads is counted from the prompt.
    """

    name: str
    summary: str
    prompt: str
    writes: tuple[str, ...]
    needs: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    calls: tuple[int, int] = (1, 1)
    tokens: int = 100

    def __post_init__(self) -> None:
        for spelling in (self.name, *self.aliases):
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", spelling):
                raise ValueError(f"An operator is called by letters and digits, not {spelling!r}.")
            if spelling.lower() in DONE_WORDS:
                raise ValueError(f"{spelling!r} ends a workflow; call the operator otherwise.")
        for slot in (*self.writes, *self.inputs, *self.keeps):
            if slot not in SLOTS:
                raise ValueError(f"{self.name}: no slot {slot!r}; there are {', '.join(SLOTS)}.")
        for kind in self.kinds:
            if kind not in KINDS:
                raise ValueError(f"{self.name}: no kind {kind!r}; there are {', '.join(KINDS)}.")
        if not 0 <= self.calls[0] <= self.calls[1]:
            raise ValueError(f"{self.name}: calls are (least, most), not {self.calls}.")
        fields = {field for _, field, _, _ in Formatter().parse(self.prompt) if field is not None}
        if unknown := fields - _IN_EVERY_PROMPT - set(self.inputs):
            raise ValueError(f"{self.name}: its prompt asks for {sorted(unknown)}, not an input.")

    @lazy
    def inputs(self) -> tuple[str, ...]:
        """Every slot that its prompt may show."""
        return (*self.needs, *self.wants, *self.reads)

    @lazy
    def is_check(self) -> bool:
        """Whether it gives a verdict, so that a condition or a loop can ask it."""
        return "verdict" in self.writes

    @lazy
    def is_ensemble(self) -> bool:
        """Whether it makes one solution of the candidates of a list."""
        return "candidates" in self.needs

    @lazy
    def stale(self) -> frozenset[str]:
        """Slots that are empty after it has run, unless it writes them."""
        if "solution" not in self.writes:
            return frozenset()
        return _ABOUT_A_SOLUTION - set(self.keeps)

    @lazy
    def effect(self) -> tuple[int, int]:
        """The slots that stay as they are, and those it fills, as bits of `BIT`."""
        emptied = self.stale | ({"candidates"} if self.is_ensemble else set())
        stays = sum(bit for slot, bit in BIT.items() if slot not in emptied)
        return stays, sum(BIT[slot] for slot in self.writes)

    @lazy
    def requirement(self) -> int:
        """The slots that it needs or wants, as bits of `BIT`."""
        return sum(BIT[slot] for slot in {*self.needs, *self.wants})


def key(spelling: str) -> str:
    """A name without case, hyphens and underscores: what two spellings of a name share."""
    return spelling.lower().replace("_", "").replace("-", "").replace(" ", "")


def _words(spelling: str) -> str:
    """`AnswerGenerate` as `answer generate`, the form with blanks that is understood."""
    words = re.findall(r"[A-Z]+[a-z0-9]*|[a-z0-9]+", spelling)
    return " ".join(words if min(map(len, words)) > 1 else [spelling]).lower()


class Registry(Mapping[str, Operator]):
    """Operators by canonical name, and the spellings under which each is found.

    >>> from aflowgym.operators.catalogue import OPERATORS
    >>> OPERATORS.resolve("self_consistency")
    'ScEnsemble'
    """

    def __init__(self, operators: tuple[Operator, ...] = ()) -> None:
        self._by_name: dict[str, Operator] = {}
        self._by_key: dict[str, str] = {}
        self._by_words: dict[str, str] = {}
        for operator in operators:
            self.register(operator)

    def __getitem__(self, name: str) -> Operator:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def register(self, operator: Operator) -> Operator:
        """Add an operator.

        Raises:
            ValueError: One of its spellings already names an operator.
        """
        spellings = (operator.name, *operator.aliases)
        for spelling in spellings:
            taken = self._by_key.get(key(spelling))
            if taken is not None:
                raise ValueError(f"{spelling!r} already names {taken}; choose another name.")
        self._by_name[operator.name] = operator
        for spelling in spellings:
            self._by_key[key(spelling)] = operator.name
            self._by_words[_words(spelling)] = operator.name
        return operator

    def copy(self) -> Registry:
        """The same operators, to which others can be added without touching these."""
        return Registry(tuple(self._by_name.values()))

    def resolve(self, spelling: str) -> str | None:
        """The canonical name behind a spelling or alias, None if nothing is called so."""
        return self._by_key.get(key(spelling))

    def resolve_words(self, words: str) -> str | None:
        """The canonical name behind words with blanks between them, `answer generate`."""
        return self._by_words.get(" ".join(words.lower().split()))

    @property
    def spellings(self) -> dict[str, str]:
        """Every spelling, without case and separators, and the canonical name behind it."""
        return dict(self._by_key)
