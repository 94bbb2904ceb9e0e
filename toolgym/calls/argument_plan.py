"""What binding needs to know of a tool, worked out once: `Plan`.

A `ToolSpec` holds its arguments as a pydantic model. Binding asks it small questions for every call
(which names, which are required, which accept null, which are code), so the answers are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from toolgym.calls.tool_names import fold
from toolgym.tools import ToolSpec


@dataclass(frozen=True)
class Plan:
    """The arguments of one tool, ready for binding.

    Attributes:
        spec: The tool.
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
