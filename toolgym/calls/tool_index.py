"""The index of a tool's names and arguments for binding, made once: `Plan`.

A `ToolSpec` holds its arguments as a pydantic model. Binding asks it small questions for every call
(which names, which are required, which accept null, which are code), so the answers are kept.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator
from rapidfuzz import fuzz

from toolgym.tools import ToolSpec

# Which tool a name means.
#
# In this order: the name itself; the same but for case and separators, or a listed alias; the same
# with a namespace, prefix or suffix of whole words (`functions.describe`, `sql_describe`,
# `describe_table`); the nearest name by edit distance, if it is near and clearly nearer than the
# next. Two candidates mean none. A terminal tool ends the episode, so it is met only by the first
# two: nothing is answered by a guess.

NEAR = 75.0  # of 100: "qurey" is 80 from "query", "sample" is 50 from "select"
CLEARER_BY = 10.0
MAX_NAME = 100


@dataclass(frozen=True)
class Match:
    """The tool that a name means, or the candidates if it means none or several."""

    name: str | None
    near: tuple[str, ...] = ()


def match_name(written: str, specs: Mapping[str, ToolSpec]) -> Match:
    """The tool meant by a name that a model wrote."""
    if written in specs:
        return Match(written)
    known = tuple((spec.name, spec.terminal, spec.aliases) for spec in specs.values())
    return _match(written[:MAX_NAME], known)


def is_near(written: str, specs: Mapping[str, ToolSpec]) -> bool:
    """Whether a name means a tool, or could mean one of several."""
    return written in specs or bool(match_name(written, specs).near)


Known = tuple[tuple[str, bool, tuple[str, ...]], ...]


@functools.lru_cache(maxsize=4096)
def _match(written: str, known: Known) -> Match:
    written = re.sub(r":\d+$", "", written)  # `functions.describe:0`, numbered as Kimi does
    folded = fold(written)
    if not folded:
        return Match(None)
    same = {name for name, _, aliases in known if folded in map(fold, (name, *aliases))}
    if same:
        return _unique(same, known, terminal_too=True)
    within = {name for name, _, aliases in known if _contains(written, (name, *aliases))}
    if within:
        return _unique(within, known)
    scores = [
        (max(fuzz.ratio(folded, fold(spelling)) for spelling in (name, *aliases)), name)
        for name, _, aliases in known
    ]
    best = max((score for score, _ in scores), default=0.0)
    if best < NEAR:
        return Match(None)
    return _unique({name for score, name in scores if score > best - CLEARER_BY}, known)


def fold(name: str) -> str:
    """A name without its case and separators: `finalAnswer`, `final-answer` -> `finalanswer`."""
    return re.sub(r"[\W_]+", "", name.casefold())


def _contains(written: str, spellings: tuple[str, ...]) -> bool:
    """Whether the whole words at the start or the end of a name are one of the spellings."""
    words = [fold(word) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+", written)]
    runs = {"".join(words[:k]) for k in range(1, len(words))}
    runs |= {"".join(words[k:]) for k in range(1, len(words))}
    return any(fold(spelling) in runs for spelling in spellings)


def _unique(names: set[str], known: Known, *, terminal_too: bool = False) -> Match:
    near = tuple(name for name, _, _ in known if name in names)
    terminal = {name for name, ends, _ in known if ends}
    if len(near) != 1 or (near[0] in terminal and not terminal_too):
        return Match(None, near)
    return Match(near[0], near)


@dataclass(frozen=True)
class Plan:
    """The arguments of one tool, ready for binding.

    Attributes:
        names: Its arguments in the order of the signature.
        required: Those without a default.
        nullable: Those whose type accepts null.
        texts: Those whose type is text and nothing else (null aside).
        code: The language of each argument that holds code.
        folded: Argument names by their spelling without case and separators; ambiguous ones left
            out.
        kinds: The type of each argument by itself.
        validator: Checks and converts all arguments at once.
    """

    spec: ToolSpec
    names: tuple[str, ...]
    required: tuple[str, ...]
    nullable: frozenset[str]
    texts: frozenset[str]
    code: Mapping[str, str]
    folded: Mapping[str, str]
    kinds: Mapping[str, TypeAdapter[Any]]
    validator: SchemaValidator

    def has_exactly(self, written: dict[str, Any]) -> bool:
        """Whether all keys are arguments, none required is absent, and none is an unwanted null."""
        names, nullable = self.names, self.nullable
        for key, value in written.items():
            if key not in names or (value is None and key not in nullable):
                return False
        for name in self.required:  # noqa: SIM110 (a generator costs more than the loop)
            if name not in written:
                return False
        return True


@functools.lru_cache(maxsize=1024)
def plan_of(spec: ToolSpec) -> Plan:
    """The plan of a tool; made once and kept."""
    fields = spec.arguments.model_fields
    adapters: dict[str, TypeAdapter[Any]] = {
        name: TypeAdapter(info.annotation or Any) for name, info in fields.items()
    }
    spellings = [fold(name) for name in fields]
    code = {name: spec.code_argument(name) for name in fields}
    return Plan(
        spec=spec,
        names=tuple(fields),
        required=spec.required,
        nullable=frozenset(name for name, kind in adapters.items() if accepts(kind, None)),
        texts=frozenset(
            name
            for name, kind in adapters.items()
            if accepts(kind, "text")
            and not any(accepts(kind, sample) for sample in (1, 1.5, True, ["text"], {"a": 1}))
        ),
        code={name: language for name, language in code.items() if language},
        folded={fold(name): name for name in fields if spellings.count(fold(name)) == 1},
        kinds=adapters,
        validator=SchemaValidator(spec.arguments.__pydantic_core_schema__),
    )


def accepts(kind: TypeAdapter[Any], value: Any) -> bool:
    """Whether a type takes a value as it is."""
    try:
        kind.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True
