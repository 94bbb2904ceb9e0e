"""Lookup of the tool that a name refers to, and preparation of a tool's arguments for binding."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from rapidfuzz import fuzz

from toolgym.tools import ToolSpec

NEAR = 75.0  # similarity of 100: "qurey" and "query" have 80, "sample" and "select" have 50
CLEARER_BY = 10.0
MAX_NAME = 100


@dataclass(frozen=True)
class Match:
    """The tool that a name refers to.

    If no tool or several tools match, `name` is None and `near` contains the candidates.
    """

    name: str | None
    near: tuple[str, ...] = ()


def match_name(written: str, specs: Mapping[str, ToolSpec]) -> Match:
    """Find the tool that a name written by a model refers to.

    The following rules apply in order. A rule that finds several candidates does not produce a
    match.

    1. The exact name.

    2. The name or an alias, regardless of case and separators.

    3. The name with a namespace, prefix or suffix of entire words (`functions.describe`,
       `sql_describe`, `describe_table`).

    4. The nearest name by edit distance, if it is close enough and clearly closer than the second
       nearest.

    Only the first two rules find a terminal tool, because its call ends the episode and must not be
    guessed.
    """
    if written in specs:
        return Match(written, (written,))
    return _match(written[:MAX_NAME], tuple(specs.values()))


def is_near(written: str, specs: Mapping[str, ToolSpec]) -> bool:
    """Return whether a name matches at least one tool."""
    return bool(match_name(written, specs).near)


@functools.lru_cache(maxsize=4096)
def _match(written: str, specs: tuple[ToolSpec, ...]) -> Match:
    written = re.sub(r":\d+$", "", written)  # `functions.describe:0`, numbered as Kimi does
    folded = fold(written)
    if not folded:
        return Match(None)
    words = [fold(word) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+", written)]
    parts = {"".join(part) for k in range(1, len(words)) for part in (words[:k], words[k:])}
    spellings = {spec.name: {fold(name) for name in (spec.name, *spec.aliases)} for spec in specs}
    near = [name for name, folds in spellings.items() if folded in folds]
    is_sure = bool(near)
    if not near:
        near = [name for name, folds in spellings.items() if folds & parts]
    if not near:
        scores = {n: max(fuzz.ratio(folded, f) for f in folds) for n, folds in spellings.items()}
        best = max(scores.values(), default=0.0)
        near = [n for n, score in scores.items() if best >= NEAR and score > best - CLEARER_BY]
    terminal = {spec.name for spec in specs if spec.terminal}
    is_one = len(near) == 1 and (is_sure or near[0] not in terminal)
    return Match(near[0] if is_one else None, tuple(near))


def fold(name: str) -> str:
    """Return a name in lower case without separators.

    For example, `finalAnswer` and `final-answer` become `finalanswer`.
    """
    return re.sub(r"[\W_]+", "", name.casefold())


class Plan:
    """The arguments of a tool, prepared for binding; `plan_of` makes and caches plans.

    Attributes:
        spec: The tool.
        names: The names of the arguments in the order of the signature.
        required: The names of the arguments without a default.
        nullable: The names of the arguments whose type accepts null.
        texts: The names of the arguments whose type is `str`, optionally with null.
        code: The language of each argument that contains code, by argument name.
        folded: Argument names by their spelling in lower case without separators; ambiguous
            spellings are omitted.
        validator: The pydantic validator of all arguments.
    """

    def __init__(self, spec: ToolSpec) -> None:
        fields = spec.fields
        self.spec = spec
        self.names = tuple(fields)
        self.required = spec.required
        self._types = {name: TypeAdapter(info.annotation or Any) for name, info in fields.items()}
        self.nullable = frozenset(name for name in fields if self.accepts(name, None))
        self.texts = frozenset(
            name
            for name in fields
            if self.accepts(name, "text")
            and not any(self.accepts(name, other) for other in (1, 1.5, True, ["text"], {"a": 1}))
        )
        self.code = {name: code for name in fields if (code := spec.code_argument(name))}
        folds = [fold(name) for name in fields]
        self.folded = {fold(name): name for name in fields if folds.count(fold(name)) == 1}
        self.validator = spec.arguments.__pydantic_validator__
        self._attributes = dict(zip(fields, spec.arguments.model_fields, strict=True))

    def accepts(self, name: str, value: Any) -> bool:
        """Return whether an argument accepts a value without conversion."""
        try:
            self._types[name].validate_python(value, strict=True)
        except ValidationError:
            return False
        return True

    def has_exactly(self, written: dict[str, Any]) -> bool:
        """Return whether an object has all required keys, no unknown keys and no invalid nulls."""
        names, nullable = self.names, self.nullable
        for key, value in written.items():
            if key not in names or (value is None and key not in nullable):
                return False
        for name in self.required:  # noqa: SIM110 (a generator costs more than the loop)
            if name not in written:
                return False
        return True

    def chosen(self, model: BaseModel, written: Mapping[str, Any]) -> dict[str, Any]:
        """Return the validated values of the arguments that the call contains."""
        values, attributes = model.__dict__, self._attributes
        return {name: values[attributes[name]] for name in written}


plan_of = functools.lru_cache(maxsize=1024)(Plan)
