"""Parse model replies: a program, a value, a verdict, or the letter of a candidate.

Prompts request one simple form, but models write many different ones: `**Verdict:** wrong`, JSON, a
tag, `\\boxed{B}`, "candidate B". Each function returns the last match, because models that correct
themselves state the correction later in the reply. A reply with contradictory verdicts, or without
a verdict, has no result, because no value is guessed. All repetitions in regular expressions are
bounded, so parsing takes linear time.
"""

from __future__ import annotations

import ast
import functools
import re
import string
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from aflowgym.answers.answer import final_answer
from aflowgym.answers.code import extract_code
from aflowgym.answers.literals import parse_program, read_literal
from aflowgym.answers.math.exact import Unreadable
from aflowgym.answers.math.math_reading import Quantity, Reading, Several, read_math
from aflowgym.answers.math.mathematics import canonical
from aflowgym.answers.squad import normalise
from aflowgym.answers.words import words_of
from aflowgym.remembering import remembered
from aflowgym.tasks.task import WorkflowTask
from toolgym.sanitize import encodable

_THOUGHT: Final = re.compile(r"<(?P<end>/)?(?:think|thinking|thought|reasoning)>", re.IGNORECASE)


def without_thoughts(reply: str) -> str:
    """Remove the reasoning from a reply. The result is empty if the reply contains nothing else.

    >>> without_thoughts("<think>Is it 3?</think>Answer: 4")
    'Answer: 4'
    >>> without_thoughts("hm, 3?</think>\\nAnswer: 4")
    '\\nAnswer: 4'
    >>> without_thoughts("<think>It may be that")
    ''
    """
    if "<" not in reply:
        return reply
    said, at, opened = list[str](), 0, -1
    for tag in _THOUGHT.finditer(reply):
        if tag["end"]:
            if opened < 0:  # the chat template opened the reasoning in the prompt
                said = []
            at, opened = tag.end(), -1
        elif opened < 0:
            opened = tag.start()
            said.append(reply[at:opened])
    before = "".join(said)
    if opened < 0:
        return before + reply[at:]
    return before + reply[opened:] if before.strip() else ""


@remembered(8192)
def program_in(text: str, function: str) -> str | None:
    """Return the program that defines a function in a model's output, or None if there is none."""
    return extract_code(text, function)


_FENCED: Final = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def last_block(reply: str) -> str | None:
    """Return the last fenced block of a reply, or None if there is none."""
    blocks = _FENCED.findall(reply)
    return blocks[-1] if blocks else None


@remembered(8192)
def plain_text(value: str) -> str:
    """Return the value of a program as an answer; strings and numbers are formatted by `str`.

    >>> plain_text("'Lake Raven'"), plain_text("Fraction(2, 3)"), plain_text("[Decimal('0.1')]")
    ('Lake Raven', '2/3', "[Decimal('0.1')]")
    """
    if value.isascii() and value.isdigit():
        return value
    try:
        read: Any = read_literal(value)
    except ValueError:
        return value
    return encodable(str(read)) if isinstance(read, str | Fraction | Decimal) else value


def answer_key(task: WorkflowTask, solution: str) -> Hashable:
    """Return a key that is the same for all solutions with the same answer.

    Numbers are compared by value, `qa` answers by their normalized words, and programs without
    comments and formatting.
    """
    return _key(task.kind, task.entry_point, task.question, solution)


@remembered(8192)
def _key(kind: str, entry_point: str, question: str, solution: str) -> Hashable:
    if kind == "code":
        program = program_in(solution, entry_point)
        if program is None:
            return solution.strip()
        try:
            return ast.dump(parse_program(program))
        except (RecursionError, MemoryError):  # nested too deeply
            return program
    answer = final_answer(solution).text
    if kind == "qa":
        return normalise(answer)
    try:
        return _value(read_math(answer, words_of(question)))
    except Unreadable:
        return canonical(answer)


def _value(read: Reading) -> Hashable:
    """Return a value without details that do not change the answer, such as its decimals."""
    if isinstance(read, Quantity):
        return read.value, read.unit
    if isinstance(read, Several):
        items = [_value(item) for item in read.items]
        return read.brackets, frozenset(items) if read.brackets in ("", "⦃") else tuple(items)
    return read.text


_WORD: Final = (
    "(?:(?P<yes>right|correct|true|pass(?:es|ed)?|yes|valid|accept(?:ed)?)"
    "|(?P<no>wrong|incorrect|false|fail(?:s|ed)?|no|invalid|reject(?:ed)?))"
)
_VERDICT: Final = re.compile(
    r"[^\w\n]{0,8}\b(?:(?:final|my|the|overall)\s{1,3}){0,2}"
    r"(?:verdict|review_result|is_correct|(?<=[<\"])result)\b(?:\s{1,3}is\b)?[^\w.?!]{0,12}"
    r"(?:(?:the|this|that|it|given|solution|answer|is)\s){0,5}"
    r"(?P<half>(?:not|partly|partially|mostly|almost|nearly)\s{1,3}(?:\w{1,12}\s{1,3})?)?"
    rf"{_WORD}\b(?!\s?(?:[/|]|,?\s?or\b))(?:</\w{{1,20}}>|[^\w\n]{{0,12}})",
    re.IGNORECASE,
)
_LONE_VERDICT: Final = re.compile(
    rf"[\W_]{{0,12}}(?:boxed\W{{1,3}})?(?:text\w{{0,2}}\W{{1,2}})?{_WORD}\W{{0,12}}", re.IGNORECASE
)


@remembered(8192)
def read_verdict(reply: str) -> tuple[bool, str] | None:
    """Return the verdict in a reply and the surrounding text, or None if there is no verdict.

    >>> read_verdict("Verdict: wrong\\nThe last sum is off.")
    (False, 'The last sum is off.')
    >>> read_verdict("**Verdict:** not quite right, the unit is missing")
    (False, 'the unit is missing')
    >>> read_verdict("It looks fine.") is None
    True
    """
    last = next(reversed(list(_VERDICT.finditer(reply))), None)
    if last is not None:
        if last["half"] and last["no"]:
            return None
        parts = [reply[: last.start()].strip(), reply[last.end() :].strip()]
        feedback = "\n".join(part for part in parts if any(map(str.isalnum, part)))
        return last["yes"] is not None and not last["half"], feedback
    lines = [line for line in reply.splitlines() if line.strip()]
    ends = [match for line in (*lines[:1], *lines[-1:]) if (match := _LONE_VERDICT.fullmatch(line))]
    if len({match["yes"] is not None for match in ends}) != 1:
        return None
    rest = [line for line in lines if not _LONE_VERDICT.fullmatch(line)]
    return ends[0]["yes"] is not None, "\n".join(rest).strip()


@functools.lru_cache(maxsize=64)
def letters(count: int) -> tuple[str, ...]:
    """Return the names of candidates: letters, followed by numbers after Z."""
    return (*string.ascii_uppercase[:count], *(str(place + 1) for place in range(26, count)))


# A capital A or I before a lower-case word is an article or a pronoun, and so is a lone small
# letter.
_NAME: Final = r"(?P<name>[B-HJ-Z]|[AI](?!\s+[a-z])|[a-z](?!\s+\w)|\d{1,4})(?!\w)"
_LONE_NAME: Final = re.compile(r"[\W_]{0,8}(?P<name>[A-Za-z]|\d{1,4})[\W_]{0,8}")
_FIRST_NAME: Final = re.compile(r"[\W_]{0,8}(?P<name>[A-Z]|\d{1,4})[*_)\]]{0,3}\s?[:.,)–—-]\W")
_CALLED: Final = re.compile(
    r"(?<!\bor )(?<!\band )"
    r"(?:(?i:candidate|option|solution|choice|letter|answer|boxed|best|choose|pick|take)"
    r"(?:\s{1,3}(?i:one|is|the|candidate|option|solution|answer|choice)){0,3}"
    rf"|text\w{{0,2}})[\W_]{{0,6}}{_NAME}(?!\W{{0,3}}(?:or|and)\b)"
)


def read_letter(reply: str, count: int) -> int | None:
    """Return the index of the candidate that a reply names, or None if it names none.

    Args:
        reply: The reply, without reasoning.
        count: Number of candidates.

    >>> read_letter("Most of them say 12. Answer: (B)", 3)
    1
    >>> read_letter("A majority gives 12, so I take candidate C.", 3)
    2
    >>> read_letter("A good answer would be 12.", 3) is None
    True
    """
    names, text = letters(count), reply.strip()
    found = _LONE_NAME.fullmatch(text) or _FIRST_NAME.match(f"{text} ")
    if found is None:
        found = next(reversed(list(_CALLED.finditer(text))), None)
    name = found["name"].upper() if found else ""
    return names.index(name) if name in names else None
