"""Readers of a model's reply: a program, a value, an answer, a verdict, a candidate's letter.

`answer_key` tells which answers are the same, so that an ensemble can count them: by value for
`math`, by normalised words for `qa`, by the program without its comments and layout for `code`.

Models are asked for one plain form of a verdict or a letter and write many: `**Verdict:** wrong`,
JSON, a tag, `\boxed{B}`, "candidate B". Each reader tries the forms from the plainest on and takes
the last one of its kind, since a model that changes its mind says so later. A text that says both,
or neither, is not read: what cannot be read is never guessed. Thoughts (`<think>...</think>`) are
not words: an answer, a call or a verdict in them was not given.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import string
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

from aflowgym.answers.extraction import final_answer
from aflowgym.answers.literals import parse_program, read_literal
from aflowgym.answers.math.exact import Unreadable
from aflowgym.answers.math.math_reading import Quantity, Reading, Several, read_math
from aflowgym.answers.math.mathematics import canonical
from aflowgym.answers.squad import normalise
from aflowgym.answers.units import words_of
from aflowgym.execution.state import program_in
from aflowgym.remembering import remembered
from aflowgym.tasks.task import WorkflowTask
from toolgym.sanitize import encodable

# --- tags and lines that mark a verdict -----------------------------------------------------------
#
# They are found in one pass over the text. A pattern such as `<(a|b)>.*?</\1>` looks from every
# opening tag for its closing one, through the whole rest of a text in which there is none: a reply
# of nothing but `<think>`, from a model that repeats itself, takes the square of its length. Here a
# search that has failed is not made again, and a run of characters that several places share is
# gone through once.

#: Where a piece begins and ends, and between these where what it holds does.
Piece = tuple[int, int, int, int]

_TOKEN: Final = re.compile(r"(?P<word>\w+)|\W+")
_BEFORE_VERDICT: Final = re.compile(r"final|my|the|overall", re.IGNORECASE)
_VERDICT: Final = re.compile(r"verdict", re.IGNORECASE)
_AFTER_VERDICT: Final = re.compile(r"(?:\s+is\b)?\W*([^\n]*)", re.IGNORECASE)


class Tags:
    """Some tags, in letters of either case."""

    def __init__(self, *names: str) -> None:
        self._opening = re.compile(f"<(?:{'|'.join(f'(?P<{n}>{n})' for n in names)})>", re.I)
        self._closing = {name: re.compile(f"</{name}>", re.I) for name in names}

    def pairs(self, text: str) -> Iterator[Piece]:
        """Each tag with what it holds, up to the first closing one of its name; none overlap."""
        never: set[str] = set()  # what is not closed behind one place is not behind a later one
        at = 0
        while opening := self._opening.search(text, at):
            at, name = opening.end(), str(opening.lastgroup)
            closed = self._closing[name].search(text, at) if name not in never else None
            if closed is None:
                never.add(name)
                continue
            yield opening.start(), opening.end(), closed.start(), closed.end()
            at = closed.end()

    def without(self, text: str) -> str:
        """A text without the tags and what they hold."""
        pieces, at = [], 0
        for start, _, _, end in self.pairs(text):
            pieces.append(text[at:start])
            at = end
        return "".join([*pieces, text[at:]])


def verdict_lines(text: str) -> Iterator[Piece]:
    """The places of lines that begin with "verdict", "the final verdict is" and the like.

    A piece begins at the first line of the marks before the word, and holds the line behind it: the
    matches of `^\\W*(?:(?:final|my|the|overall)\\s+)*verdict\\b(?:\\s+is\\b)?\\W*([^\\n]*)`.
    """
    if _VERDICT.search(text) is None:
        return
    at, begin = 0, 0  # `begin` is the line from which nothing but marks and such words stand; or -1
    inside = False  # behind one of these words, where blanks alone may follow
    while at < len(text):
        for token in _TOKEN.finditer(text, at):
            if token["word"] is None:
                if not (inside and token[0].isspace()):
                    begin, inside = _first_line(token), False
            elif begin >= 0 and _VERDICT.fullmatch(token[0]):
                break
            else:
                inside = begin >= 0 and _BEFORE_VERDICT.fullmatch(token[0]) is not None
                begin = begin if inside else -1
        else:
            return
        rest = _AFTER_VERDICT.match(text, token.end())
        at = rest.end() if rest else token.end()
        yield begin, rest.start(1) if rest else at, at, at
        begin, inside = -1, False


def _first_line(marks: re.Match[str]) -> int:
    """Where the first line that begins among some marks does; -1 if none does."""
    if not marks.start():
        return 0
    ended = marks[0].find("\n")
    return marks.start() + ended + 1 if ended >= 0 else -1


_FENCED: Final = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def last_block(reply: str) -> str | None:
    """The last fenced block of a reply."""
    blocks = _FENCED.findall(reply)
    return blocks[-1] if blocks else None


@remembered(8192)
def plain_text(value: str) -> str:
    """A returned value as an answer: a text as itself, anything else as it is written.

    A text may hold what no file and no message can, half a surrogate pair; that is replaced.

    >>> plain_text("'Lake Raven'"), plain_text("12")
    ('Lake Raven', '12')
    """
    if value.isascii() and value.isdigit():
        return value
    try:
        read: Any = read_literal(value)
    except ValueError:
        return value
    return encodable(read) if isinstance(read, str) else value


def answer_key(task: WorkflowTask, solution: str) -> Hashable:
    """Equal for solutions that give the same answer."""
    return _key(task.kind, task.entry_point, task.question, solution)


@remembered(8192)
def _key(kind: str, entry_point: str, question: str, solution: str) -> Hashable:
    if kind == "code":
        program = program_in(solution, entry_point)
        return solution.strip() if program is None else _tree_of(program)
    answer = final_answer(solution).text
    if kind == "qa":
        return normalise(answer)
    try:
        return _value(read_math(answer, words_of(question)))
    except Unreadable:
        return canonical(answer)


def _tree_of(program: str) -> str:
    """A program without its comments and layout; as it stands where it is nested too deeply."""
    try:
        return ast.dump(parse_program(program))
    except (RecursionError, MemoryError):
        return program


def _value(read: Reading) -> Hashable:
    """A reading without what does not change the answer: its decimals, the name of the unknown."""
    if isinstance(read, Quantity):
        return read.value, read.unit
    if isinstance(read, Several):
        items = [_value(item) for item in read.items]
        return read.brackets, frozenset(items) if read.brackets in ("", "⦃") else tuple(items)
    return read.text


_THOUGHT: Final = r"(?:think|thinking|thought|reasoning)"
_WHOLE_THOUGHT: Final = Tags("think", "thinking", "thought", "reasoning")
_END_OF_THOUGHT: Final = re.compile(rf"</{_THOUGHT}>", re.IGNORECASE)
_OPEN_THOUGHT: Final = re.compile(rf"\s*<{_THOUGHT}>", re.IGNORECASE)

_PASS: Final = r"right|correct|true|pass(?:es|ed)?|yes|valid|accept(?:ed)?"
_FAIL: Final = r"wrong|incorrect|false|fail(?:s|ed)?|no|invalid|reject(?:ed)?"
_HALF: Final = r"not|partly|partially|mostly|almost|nearly|n't"
_SAYS: Final = re.compile(
    rf"\b(?:(?P<half>{_HALF})\s+(?:\w+\s+)?)?(?:(?P<yes>{_PASS})|(?P<no>{_FAIL}))\b", re.I
)
_PLAIN: Final = re.compile(r"Verdict: (?:(right)|wrong)(?=\n|\Z)")
_VERDICT_TAG: Final = Tags("verdict", "review_result", "result", "judgement", "judgment")
_LONE_WORD: Final = re.compile(rf"^\W*(?:(?P<yes>{_PASS})|(?P<no>{_FAIL}))\W*$", re.I)
_TEXT: Final = re.compile(r"\\text\w*+\{")
_VERDICT_KEYS: Final = ("verdict", "review_result", "result", "is_correct", "correct", "right")
_FEEDBACK_KEYS: Final = ("feedback", "review", "reason", "explanation", "comment")

_NAME_KEYS: Final = ("answer", "letter", "choice", "solution_letter", "best", "candidate", "option")
_CALLED: Final = r"(?:candidate|option|solution|answer|letter|choice|number)"
# What may stand before a lone letter or number. Each part takes all it can and gives nothing back:
# a shorter one would end before a character that no later part takes.
_BEFORE_A_LETTER: Final = re.compile(
    rf"\W*+(?:(?<=\\)text\w*+\{{)?+(?:the\s++)?+(?:{_CALLED}\s*+)*+[\W_]*+", re.I
)
_NAME: Final = re.compile(r"[A-Za-z]|\d", re.I)
_LINE_BEGINS: Final = re.compile(r"^[\W_]*(?P<name>[A-Z]|\d+)(?:[*_)\]]*\s*[:.,)\]—–-])[\s*]")
_LETTER_IN_LINE: Final = re.compile(
    rf"(?P<called>{_CALLED}\s+)?(?<![A-Za-z'’\\])(?P<name>[A-Z])(?![A-Za-z'’])(?P<next>\s+(?!and\b|or\b)[a-z])?"
)


def without_thoughts(reply: str) -> str:
    """A reply without its thoughts; empty if it is nothing else.

    >>> without_thoughts("<think>Is it 3?</think>Answer: 4")
    'Answer: 4'
    >>> without_thoughts("hm, 3?</think>\\nAnswer: 4")
    '\\nAnswer: 4'
    >>> without_thoughts("<think>It may be that")
    ''
    """
    if "<" not in reply:
        return reply
    words = _WHOLE_THOUGHT.without(reply)
    ends = list(_END_OF_THOUGHT.finditer(words))
    if ends:  # a template may have opened the thought in the prompt
        words = words[ends[-1].end() :]
    return "" if _OPEN_THOUGHT.match(words) else words


def read_verdict(reply: str) -> tuple[bool, str] | None:
    """The verdict of a check's reply, and the text around it; None if unreadable.

    >>> read_verdict("Verdict: wrong\\nThe last sum is off.")
    (False, 'The last sum is off.')
    >>> read_verdict("**Verdict:** not quite right, the unit is missing")
    (False, 'the unit is missing')
    >>> read_verdict('{"verdict": "correct", "feedback": "Each step holds."}')
    (True, 'Each step holds.')
    >>> read_verdict("It looks fine.") is None
    True
    """
    if (plain := _PLAIN.match(reply)) and len(_VERDICT.findall(reply)) == 1:
        return plain[1] is not None, reply[plain.end() :].strip()
    if "{" in reply and (in_json := _verdict_in_json(reply)) is not None:
        return in_json
    for find in (_VERDICT_TAG.pairs, verdict_lines):
        for start, begin, stop, end in reversed(list(find(reply))):
            rest = reply[begin:stop].strip()
            if not rest and find is verdict_lines:  # the word stands on the next line
                return _with_next_line(reply, end, start)
            verdict = _says(rest)
            if verdict is not None:
                passes, after = verdict
                parts = (reply[:start], after, reply[end:])
                return passes, "\n".join(part.strip() for part in parts if part.strip())
    return _lone_verdict(reply)


def _says(text: str) -> tuple[bool, str] | None:
    """Whether a text begins by saying that something is right, and what follows."""
    match = _SAYS.search(text)
    if match is None or match.start() > 40:
        return None
    passes = match["yes"] is not None
    after = text[match.end() :]
    other = _SAYS.match(after.lstrip(" /|,"))
    if other is not None or re.match(r"\W{0,3}or\b", after):
        return None  # `right/wrong`: the form, and not a verdict
    if match["half"]:
        passes = False if passes else match["half"].lower() in ("not", "n't")
    return passes, after.strip(" .,:;*_`!-—–)]}>$\"'")


def _with_next_line(reply: str, end: int, start: int) -> tuple[bool, str] | None:
    rest = reply[end:].lstrip()
    line, _, after = rest.partition("\n")
    verdict = _says(line)
    if verdict is None:
        return None
    parts = (reply[:start], verdict[1], after)
    return verdict[0], "\n".join(part.strip() for part in parts if part.strip())


def _verdict_in_json(reply: str) -> tuple[bool, str] | None:
    fields = json_in(reply)
    for key in _VERDICT_KEYS:
        value = fields.get(key)
        verdict = (value, "") if isinstance(value, bool) else _says(str(value)) if value else None
        if verdict is not None:
            texts = (fields.get(each) for each in _FEEDBACK_KEYS)
            return verdict[0], next((each for each in texts if isinstance(each, str)), verdict[1])
    return None


def _lone_verdict(reply: str) -> tuple[bool, str] | None:
    """A first or last line, or a box, that is nothing but the word."""
    lines = [line for line in reply.splitlines() if line.strip()]
    boxed = final_answer(reply)
    ends = [lines[0], lines[-1]] if lines else []
    ends += [_without_text(boxed.text)] if boxed.place in ("boxed", "tag") else []
    read = {bool(match["yes"]) for each in ends if (match := _LONE_WORD.match(each))}
    if len(read) != 1:
        return None
    rest = [line for line in lines if not _LONE_WORD.match(line)]
    return read.pop(), "\n".join(rest).strip()


def _without_text(formula: str) -> str:
    """What `\\text{...}` holds instead of it, from its first brace on a line to the line's last."""
    lines = formula.split("\n")
    for place, line in enumerate(lines):
        command = _TEXT.search(line)
        close = line.rfind("}", command.end()) if command else -1
        if command and close >= 0:
            lines[place] = line[: command.start()] + line[command.end() : close] + line[close + 1 :]
    return "\n".join(lines)


@functools.lru_cache(maxsize=64)
def letters(count: int) -> tuple[str, ...]:
    """The names of so many candidates: letters, and numbers after Z."""
    return (*string.ascii_uppercase[:count], *(str(place + 1) for place in range(26, count)))


def read_letter(reply: str, count: int) -> int | None:
    """The place of the candidate that a reply names; None if it names none, or several.

    >>> read_letter("Most of them say 12. Answer: (B)", 3)
    1
    >>> read_letter("A majority gives 12, so I take candidate C.", 3)
    2
    >>> read_letter("A good answer would be 12.", 3) is None
    True
    """
    candidates = letters(count)
    if reply in candidates:
        return candidates.index(reply)
    names = (*_names_in_json(reply), final_answer(reply).text)
    for text in names:
        name = _only_a_letter(text)
        if name in candidates:
            return candidates.index(name)
    lines = [line for line in reply.splitlines() if line.strip()]
    if lines and (match := _LINE_BEGINS.match(lines[0] + " ")) and match["name"] in candidates:
        return candidates.index(match["name"])
    named = _named_in(lines[-1], candidates) if lines else set()
    return candidates.index(named.pop()) if len(named) == 1 else None


def _only_a_letter(text: str) -> str:
    """The letter or number, in capitals, that is all a text says; empty if it says more.

    It is looked for from the end, where nothing but marks may follow it.
    """
    end = len(text)
    while end and (text[end - 1] == "_" or not text[end - 1].isalnum()):
        end -= 1
    start = end - 1
    if not end or _NAME.match(text, start) is None:
        return ""
    while start and text[end - 1].isdecimal() and text[start - 1].isdecimal():
        start -= 1
    return text[start:end].upper() if _BEFORE_A_LETTER.fullmatch(text, 0, start) else ""


def _names_in_json(reply: str) -> tuple[str, ...]:
    fields = json_in(reply)
    values = (fields.get(key) for key in _NAME_KEYS)
    return tuple(str(value) for value in values if isinstance(value, str | int))


def _named_in(line: str, names: Sequence[str]) -> set[str]:
    """The candidates that a line names; `A` before a word is an article, and `I` the speaker."""
    named = set()
    for match in _LETTER_IN_LINE.finditer(line):
        bare_word = match["name"] in "AI" and match["next"] and not match["called"]
        if match["name"] in names and not bare_word:
            named.add(match["name"])
    return named


def json_in(reply: str) -> dict[str, Any]:
    """The fields of the last JSON object of a reply, fenced or bare; none if there is none."""
    if "{" not in reply:
        return {}
    decoder = json.JSONDecoder(strict=False)
    starts = [place for place, sign in enumerate(reply) if sign == "{"]
    for start in reversed(starts[-_MOST_OBJECTS:]):
        try:
            value, _ = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return {str(key).lower(): each for key, each in value.items()}
    return {}


_MOST_OBJECTS: Final = 64
