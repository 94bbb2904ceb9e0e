"""Layouts of data sets: from an entry to a task, in our own layout and four published ones.

| layout   | known by                     | published with                                         |
| -------- | ---------------------------- | ------------------------------------------------------ |
| own      | `kind`                       | this package, `data/workflows`                         |
| HumanEval| `prompt`, `entry_point`      | Chen et al. 2021, arXiv:2107.03374                     |
| MBPP     | `test_list`                  | Austin et al. 2021, arXiv:2108.07732                   |
| HotpotQA | `question`, `context`        | Yang et al. 2018, arXiv:1809.09600                     |
| GSM8K    | `question`, `answer`         | Cobbe et al. 2021, arXiv:2110.14168                    |

An entry that cannot be played fairly raises `Refused` with a code and the reason: a missing key, a
gold that no verifier can read, a test that is not over literals.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from aflowgym.answers.code import CodeTest, UnsupportedTest, extract_code, read_tests
from aflowgym.answers.literals import parse_program
from aflowgym.answers.math.exact import Unreadable
from aflowgym.answers.math.mathematics import read_gold
from aflowgym.answers.squad import normalise
from aflowgym.answers.units import words_of
from aflowgym.tasks import code_prompts
from aflowgym.tasks.task import KINDS, WorkflowTask

Entry = Mapping[str, Any]


class Refused(ValueError):
    """An entry that cannot be a task: a stable code, and the reason as the end of a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


def task_of(entry: Any, name: str) -> WorkflowTask:
    """The task of an entry, whatever layout it has.

    Args:
        name: The id of a task whose layout has none.

    Raises:
        Refused: It cannot be a task.
    """
    if not isinstance(entry, Mapping):
        raise Refused("not_an_object", f"it is a {type(entry).__name__}, not a JSON object")
    for keys, read in _LAYOUTS:
        if all(key in entry for key in keys):
            return _check(read(entry, name))
    layouts = "; ".join(" and ".join(keys) for keys, _ in _LAYOUTS)
    raise Refused("unknown_layout", f"it has none of these keys: {layouts}")


def _own(entry: Entry, name: str) -> WorkflowTask:
    kind = _text(entry, "kind")
    if kind not in KINDS:
        raise Refused("bad_value", f"kind is {kind!r}, not one of {', '.join(KINDS)}")
    entry_point = _text(entry, "entry_point") if kind == "code" else ""
    tests = _tests("\n".join(_texts(entry, "tests")), entry_point) if kind == "code" else ()
    public = _count(entry, "public_tests")
    known = {each.name for each in fields(WorkflowTask)}
    identity = _text(entry, "id") if "id" in entry else name
    return WorkflowTask(
        id=identity,
        question=_text(entry, "question"),
        item=_text(entry, "item") if "item" in entry else identity,
        extra={key: value for key, value in entry.items() if key not in known},
        kind=next(known_kind for known_kind in KINDS if known_kind == kind),
        gold="" if kind == "code" else _text(entry, "gold"),
        aliases=_texts(entry, "aliases"),
        context=_texts(entry, "context"),
        hops=_count(entry, "hops"),
        entry_point=entry_point,
        setup=_text(entry, "setup") if "setup" in entry else "",
        tests=tests,
        public_tests=tests[:public],
        solution=_text(entry, "solution") if "solution" in entry else "",
        distractors=_texts(entry, "distractors"),
    )


def _gsm8k(entry: Entry, name: str) -> WorkflowTask:
    worked, mark, gold = _text(entry, "answer").rpartition("####")
    if not mark:
        raise Refused("bad_value", "its answer has no '####' before the number")
    return _published_task(
        _id(entry, name),
        question=_text(entry, "question"),
        kind="math",
        gold=gold.strip(),
        solution=_without_calculations(worked).strip(),
    )


def _humaneval(entry: Entry, name: str) -> WorkflowTask:
    prompt, entry_point = _text(entry, "prompt"), _text(entry, "entry_point")
    tests = _tests(_text(entry, "test"), entry_point)
    return _published_task(
        _id(entry, name),
        question=prompt,
        kind="code",
        entry_point=entry_point,
        setup=code_prompts.setup(prompt, entry_point),
        tests=tests,
        public_tests=code_prompts.examples(prompt, entry_point, tests),
        solution=prompt + _text(entry, "canonical_solution"),
    )


def _mbpp(entry: Entry, name: str) -> WorkflowTask:
    if setup := (entry.get("test_setup_code") or entry.get("test_imports")):
        raise Refused("unsupported_test", f"its tests need a set-up: {str(setup)[:80]!r}")
    source = "\n".join(_texts(entry, "test_list"))
    extra = entry.get("challenge_test_list") or ()
    entry_point = _called_first(source)
    tests = _tests("\n".join([source, *extra]), entry_point)
    asked = _text(entry, "text" if "text" in entry else "prompt")
    example = source.strip().splitlines()[0]
    return _published_task(
        _id(entry, name),
        question=f"{asked}\nYour code must pass this test: {example}",
        kind="code",
        entry_point=entry_point,
        tests=tests,
        public_tests=tests[:1],
        solution=_text(entry, "code"),
    )


def _hotpotqa(entry: Entry, name: str) -> WorkflowTask:
    context = entry["context"]
    if isinstance(context, Mapping):  # as `datasets` gives it: two lists side by side
        context = list(zip(context.get("title", ()), context.get("sentences", ()), strict=False))
    try:
        passages = tuple(f"{title}: {''.join(lines).strip()}" for title, lines in context)
    except (TypeError, ValueError):
        raise Refused("bad_value", "its context is no list of titles with sentences") from None
    return _published_task(
        _id(entry, name),
        question=_text(entry, "question"),
        extra={key: entry[key] for key in ("type", "level") if key in entry},
        kind="qa",
        gold=_text(entry, "answer"),
        context=passages,
        hops=2,
    )


_LAYOUTS: Final[Sequence[tuple[tuple[str, ...], Callable[[Entry, str], WorkflowTask]]]] = (
    (("kind",), _own),
    (("prompt", "entry_point"), _humaneval),
    (("test_list",), _mbpp),
    (("question", "context"), _hotpotqa),
    (("question", "answer"), _gsm8k),
)


def _check(task: WorkflowTask) -> WorkflowTask:
    """Refuse what its own verifier could not tell right from wrong."""
    if not task.question.strip():
        raise Refused("empty_question", "its question is empty")
    if task.kind == "qa" and not normalise(task.gold):
        raise Refused("unreadable_gold", f"nothing is left of its gold {task.gold!r} to compare")
    if task.kind == "math":
        try:
            read_gold(task.gold, words_of(task.question))
        except Unreadable as problem:
            raise Refused(
                "unreadable_gold", f"its gold {task.gold[:80]!r} cannot be read: {problem}"
            ) from None
    solved = task.kind != "code" or not task.solution
    if not solved and extract_code(task.solution, task.entry_point) is None:
        raise Refused("bad_value", f"its solution does not define {task.entry_point}()")
    return task


def _text(entry: Entry, key: str) -> str:
    if key not in entry:
        raise Refused("missing_key", f"it has no {key!r}")
    value = entry[key]
    if not isinstance(value, str):
        raise Refused("bad_value", f"its {key!r} is a {type(value).__name__}, not a text")
    return value


def _texts(entry: Entry, key: str) -> tuple[str, ...]:
    value = entry.get(key, ())
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Refused("bad_value", f"its {key!r} is no list of texts")
    if not all(isinstance(item, str) for item in value):
        raise Refused("bad_value", f"its {key!r} is no list of texts")
    return tuple(value)


def _count(entry: Entry, key: str) -> int:
    value = entry.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Refused("bad_value", f"its {key!r} is {value!r}, not a count")
    return value


def _id(entry: Entry, name: str) -> str:
    for key in ("task_id", "_id", "id"):
        if isinstance(entry.get(key), str | int) and not isinstance(entry[key], bool):
            return str(entry[key])
    return name


def _published_task(identity: str, **fields: Any) -> WorkflowTask:
    """A task of a set that was published elsewhere: each is an item of its own."""
    return WorkflowTask(id=identity, item=identity, **fields)


def _tests(source: str, entry_point: str) -> tuple[CodeTest, ...]:
    try:
        return read_tests(source, entry_point)
    except UnsupportedTest as problem:
        raise Refused("unsupported_test", str(problem)) from None


def _called_first(source: str) -> str:
    """The function that the first assertion calls."""
    try:
        nodes = list(ast.walk(parse_program(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Refused("unsupported_test", "its tests are no Python") from None
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id
    raise Refused("unsupported_test", "its tests call nothing")


def _without_calculations(worked: str) -> str:
    """A solution of GSM8K without its `<<48/2=24>>`, each of which stands on one line."""
    lines = worked.split("\n")
    for number, line in enumerate(lines):
        pieces, place = [], 0
        # Where no `>>` follows, none follows a later `<<` of the line.
        while (start := line.find("<<", place)) >= 0 and (end := line.find(">>", start + 2)) >= 0:
            pieces.append(line[place:start])
            place = end + 2
        lines[number] = "".join([*pieces, line[place:]])
    return "\n".join(lines)
