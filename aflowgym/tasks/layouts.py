"""Conversion of rows to tasks, from the layout of this package or of published data sets.

| layout          | keys of a row                             | published with      |
| --------------- | ----------------------------------------- | ------------------- |
| own             | `kind`, `question`, ...                   | this package        |
| mixed           | `problem`, `problem_type`, `ground_truth` | AFlow training      |
| HumanEval       | `prompt`, `entry_point`, `test`           | arXiv:2107.03374    |
| MBPP            | `test_list`, `code`, `text` or `prompt`   | arXiv:2108.07732    |
| MATH            | `problem`, `solution`                     | arXiv:2103.03874    |
| DROP            | `passage`, `question`, `answers_spans`    | arXiv:1903.00161    |
| AFlow's DROP    | `context`, `ref_text`                     | arXiv:2410.10762    |
| SQuAD           | `context`, `question`, `answers`          | arXiv:1806.03822    |
| HotpotQA        | `context`, `question`, `answer`           | arXiv:1809.09600    |
| GSM8K           | `question`, `answer`                      | arXiv:2110.14168    |

In AFlow's version of MBPP, rows have the keys of HumanEval.

A row that cannot be converted to a task raises `Refused` with a code and the reason: for example, a
key is missing, no verifier can parse the gold answer, or a test contains values that are not
literals.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from aflowgym.answers.answer import final_answer
from aflowgym.answers.assertions import UnsupportedTest, read_tests
from aflowgym.answers.code import CodeTest, extract_code
from aflowgym.answers.literals import parse_program
from aflowgym.answers.math.exact import Unreadable
from aflowgym.answers.math.mathematics import read_gold
from aflowgym.answers.squad import normalise
from aflowgym.answers.words import words_of
from aflowgym.tasks import code_prompts
from aflowgym.tasks.task import KINDS, WorkflowTask

Entry = Mapping[str, Any]
_IDS: Final = ("task_id", "_id", "id", "query_id", "unique_id")
_CALCULATION: Final = re.compile(r"<<[^<>\n]*>>")  # GSM8K has `48/2 = <<48/2=24>>24`
_EXTRA: Final = ("source", "type", "level", "subject")


class Refused(ValueError):
    """Raised for a row that cannot be converted to a task, with a stable code.

    The message is the reason, as a phrase that completes a sentence.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


def task_of(entry: Any, name: str) -> WorkflowTask:
    """Return the task stored in a row, using the first layout whose keys are present.

    Args:
        name: Id of the task if the row has none.

    Raises:
        Refused: If the row cannot be converted to a task.
    """
    if not isinstance(entry, Mapping):
        raise Refused("not_an_object", f"it is a {type(entry).__name__}, not a JSON object")
    near: list[tuple[int, int, str]] = []
    for layout, keys, read in _LAYOUTS:
        missing = [key for key in keys if key not in entry]
        if not missing:
            return _check(read(entry, name))
        if len(missing) < len(keys):
            need = f"{layout} needs {' and '.join(map(repr, missing))}"
            near.append((len(missing), -len(keys), need))
    layouts = "; ".join(f"{layout}: {', '.join(keys)}" for layout, keys, _ in _LAYOUTS)
    nearest = "; ".join(need for _, _, need in sorted(near)[:3])
    raise Refused("unknown_layout", nearest or f"it has the keys of no layout ({layouts})")


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


def _mixed(entry: Entry, name: str) -> WorkflowTask:
    """Read a row with a problem and its type, in the form of the original data set."""
    kind, gold = _text(entry, "problem_type"), _text(entry, "ground_truth")
    problem = _text(entry, "problem")
    match kind:
        case "math":
            found = final_answer(gold)
            marked = found.place in ("boxed", "mark")
            gold = found.text if marked else gold.strip()
            solution = entry.get("solution")
            worked = _CALCULATION.sub("", solution) if isinstance(solution, str) else ""
            return _published(entry, name, "math", problem, gold=gold, solution=worked)
        case "qa":
            context = entry.get("context", "")
            passages = _passages(context) if context else ()
            return _published(entry, name, "qa", problem, gold=gold, context=passages)
        case "code" if "entry_point" in entry:
            return _humaneval({**entry, "prompt": problem, "code": gold}, name)
        case "code":
            return _mbpp({**entry, "text": problem, "code": gold}, name)
    raise Refused("bad_value", f"problem_type is {kind!r}, not one of {', '.join(KINDS)}")


def _humaneval(entry: Entry, name: str) -> WorkflowTask:
    prompt, entry_point = _text(entry, "prompt"), _text(entry, "entry_point")
    solution = _text(entry, "canonical_solution" if "canonical_solution" in entry else "code")
    if extract_code(solution, entry_point) is None:  # the body of the requested function
        solution = prompt + solution
    tests = _tests(_text(entry, "test"), entry_point)
    return _published(
        entry,
        name,
        "code",
        prompt,
        entry_point=entry_point,
        setup=code_prompts.setup(prompt, entry_point),
        tests=tests,
        public_tests=code_prompts.examples(prompt, entry_point, tests),
        solution=solution,
    )


def _mbpp(entry: Entry, name: str) -> WorkflowTask:
    code, asked = _text(entry, "code"), _text(entry, "text" if "text" in entry else "prompt")
    listed = _texts(entry, "test_list")
    source = "\n".join(listed)
    setup = entry.get("test_setup_code") or "\n".join(_texts(entry, "test_imports"))
    entry_point = _tested(code, source)
    tests = _tests("\n".join([setup, source, *_texts(entry, "challenge_test_list")]), entry_point)
    return _published(
        entry,
        name,
        "code",
        f"{asked}\nYour code must pass this test: {source.strip().partition(chr(10))[0]}",
        entry_point=entry_point,
        tests=tests,
        public_tests=tests[:1],
        solution=code,
    )


def _math(entry: Entry, name: str) -> WorkflowTask:
    solution = _text(entry, "solution")
    if "answer" in entry:
        gold = _text(entry, "answer")
    else:
        found = final_answer(solution)
        if found.place != "boxed":
            raise Refused("bad_value", "its 'solution' has no \\boxed answer")
        gold = found.text
    return _published(entry, name, "math", _text(entry, "problem"), gold=gold, solution=solution)


def _drop(entry: Entry, name: str) -> WorkflowTask:
    spans = entry["answers_spans"]
    golds = dict.fromkeys(map(normalise, _texts(spans, "spans") if _is_object(spans) else ()))
    if len(golds) > 1:
        raise Refused("bad_value", "its 'answers_spans' has several answers")
    return _qa(entry, name, _text(entry, "question"), spans["spans"] if golds else (), "passage")


def _aflow_drop(entry: Entry, name: str) -> WorkflowTask:
    golds = [gold for gold in _text(entry, "ref_text").split("|") if gold.strip()]
    return _qa(entry, name, _text(entry, "context"), golds, "")


def _squad(entry: Entry, name: str) -> WorkflowTask:
    answers = entry["answers"]
    golds = _texts(answers, "text") if _is_object(answers) else ()
    if _is_object(answers) and not golds:
        raise Refused("unanswerable", "its passage does not answer its question")
    return _qa(entry, name, _text(entry, "question"), golds, "context")


def _hotpotqa(entry: Entry, name: str) -> WorkflowTask:
    return _qa(entry, name, _text(entry, "question"), [_text(entry, "answer")], "context", hops=2)


def _gsm8k(entry: Entry, name: str) -> WorkflowTask:
    worked, mark, gold = _text(entry, "answer").rpartition("####")
    if not mark:
        raise Refused("bad_value", "its 'answer' has no '####' before the number")
    worked = _CALCULATION.sub("", worked).strip()
    question = _text(entry, "question")
    return _published(entry, name, "math", question, gold=gold.strip(), solution=worked)


_LAYOUTS: Final[Sequence[tuple[str, tuple[str, ...], Callable[[Entry, str], WorkflowTask]]]] = (
    ("our own layout", ("kind",), _own),
    ("a mixed set", ("problem", "problem_type", "ground_truth"), _mixed),
    ("HumanEval", ("prompt", "entry_point", "test"), _humaneval),
    ("MBPP", ("test_list", "code"), _mbpp),
    ("MATH", ("problem", "solution"), _math),
    ("DROP", ("passage", "question", "answers_spans"), _drop),
    ("AFlow's DROP", ("context", "ref_text"), _aflow_drop),
    ("SQuAD", ("context", "question", "answers"), _squad),
    ("HotpotQA", ("context", "question", "answer"), _hotpotqa),
    ("GSM8K", ("question", "answer"), _gsm8k),
)


def _qa(
    entry: Entry, name: str, question: str, golds: Sequence[str], context: str, **others: Any
) -> WorkflowTask:
    """Return a task with passages and at least one gold answer."""
    if not golds:
        raise Refused("bad_value", "it has no answer")
    passages = _passages(entry[context]) if context else ()
    gold, *aliases = dict.fromkeys(golds)
    return _published(
        entry, name, "qa", question, gold=gold, aliases=tuple(aliases), context=passages, **others
    )


def _passages(context: Any) -> tuple[str, ...]:
    """Return the passages in a string, in HotpotQA's pairs, or in the two lists of `datasets`."""
    if isinstance(context, str):
        return (context,)
    try:
        if isinstance(context, Mapping):
            context = list(zip(context["title"], context["sentences"], strict=True))
        return tuple(f"{title}: {''.join(lines).strip()}" for title, lines in context)
    except (KeyError, TypeError, ValueError):
        raise Refused("bad_value", "its 'context' is not a list of titles with sentences") from None


def _check(task: WorkflowTask) -> WorkflowTask:
    """Reject a task whose verifier cannot distinguish correct from incorrect answers."""
    if not task.question.strip():
        raise Refused("empty_question", "its question is empty")
    if task.kind == "qa" and not normalise(task.gold):
        raise Refused("unreadable_gold", f"no text remains of its gold {task.gold!r} to compare")
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
        raise Refused("bad_value", f"its {key!r} is not a list of texts")
    if not all(isinstance(item, str) for item in value):
        raise Refused("bad_value", f"its {key!r} is not a list of texts")
    return tuple(value)


def _count(entry: Entry, key: str) -> int:
    value = entry.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Refused("bad_value", f"its {key!r} is {value!r}, not a count")
    return value


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _published(entry: Entry, name: str, kind: Any, question: str, **others: Any) -> WorkflowTask:
    """Return a task of a published data set, in which each task is a separate family."""
    ids = (entry[key] for key in _IDS if type(entry.get(key)) in (str, int))
    identity = str(next(ids, name))
    extra = {key: entry[key] for key in _EXTRA if key in entry}
    return WorkflowTask(
        id=identity, item=identity, extra=extra, kind=kind, question=question, **others
    )


def _tests(source: str, entry_point: str) -> tuple[CodeTest, ...]:
    try:
        return read_tests(source, entry_point)
    except UnsupportedTest as problem:
        raise Refused("unsupported_test", str(problem)) from None


def _tested(code: str, tests: str) -> str:
    """Return the name of the function that tests call first, among those defined in the code."""
    try:
        defined = {
            each.name for each in parse_program(code).body if isinstance(each, ast.FunctionDef)
        }
        calls = (each for each in ast.walk(parse_program(tests)) if isinstance(each, ast.Call))
        names = (call.func.id for call in calls if isinstance(call.func, ast.Name))
        if name := next((name for name in names if name in defined), ""):
            return name
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Refused("unsupported_test", "its code or its tests are not Python") from None
    raise Refused("unsupported_test", "its tests call no function of its code")
