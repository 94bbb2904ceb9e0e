"""Finds the calls in a text that a model wrote: from text to raw calls.

One pass goes through the text from left to right. It stops at marks of the formats of
`toolgym.calls.formats`, which open calls; at texts that hide what follows (thinking, results of
tools, turns of other roles); and, as long as no mark opened a call, at lines that begin as a call
does. The calls there are read by the shape of the format: JSON objects, a name with a JSON object,
Python calls, bare text in tags, or Gemma's braces.

Three rules keep a text from being read as a call that it is not:

* A call that is whole as it was written holds every mark and tag inside its values. In a call that
  is not whole, a tag of thinking is a tag of thinking, and the call is an error.
* What can be read in two ways, or was cut off, is an error. It is never executed.
* Talk about calls is no call: marks that a sentence quotes or only names, placeholders such as
  `<function-name>` in place of a name, and Python calls among the statements of a program.

The time grows with the length of the text: patterns are possessive (`*+`), so none of them tries
one run of characters in two ways; what is read once is not read again; and reading in vain, which
happens where a call never ends, is limited.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any, Final

from toolgym.calls import errors as call_errors
from toolgym.calls.bind import RawCall
from toolgym.calls.formats import (
    BARE_NAME,
    BRACES,
    FORMATS,
    HERMES,
    HIDES,
    PYTHON,
    SHOWS,
    SUFFIX,
    THOUGHT,
    Format,
    alternatives,
)
from toolgym.calls.mend import (
    CONFLICT,
    MAX_MENDED,
    PIECE,
    TRUNCATED,
    JsonRead,
    JsonReader,
    NotALiteral,
    literal_value,
    outline,
    parse_expression,
)
from toolgym.calls.repairs import (
    FLAT_ARGUMENTS,
    MISSING_CLOSE_TAG,
    RENAMED_FIELD,
    REPAIRED_JSON,
    Repair,
)
from toolgym.calls.tool_index import is_near, match_name
from toolgym.tools import ToolSpec

MAX_CALLS = 32
"""Calls that are read from one action."""
_MAX_LINES, _MAX_MARKS = 256, 1024
"""Lines and marks of one text at which a call is looked for."""
_IN_VAIN = 4 * MAX_MENDED
"""Characters of one text that may be read in vain."""

LOOSE: Final = "json"
"""The format of objects that no mark announces."""
Found = tuple[list[RawCall], int]
"""Calls, and the position behind them."""
Span = tuple[int, int, list[RawCall]]
"""Where calls begin, where they end, and the calls."""

UNCLEAR = "it is not clear where a value of it ends, because of tags inside or after it"
UNBALANCED = "its brackets are not closed before the next tag"
INTERRUPTED = "there is thinking inside of it"
NOT_LITERAL = r"its arguments must be literal values; a quote inside a text is written as \'"
EXPRESSION = "it is a part of an expression, or of a sentence"
STRAY = "it holds something that is no parameter"
NO_CALL = "there is no call behind its mark"
NOT_ALONE = "its tag holds something else"
_LEFT_OVER = " \t\n{}[]()\"'`,;."
"""Characters that are allowed between a call and the tag that closes it, as a repair."""


def _closer(text: str) -> str:
    """The pattern of a closing text; one that ends in `/` goes on with a name."""
    if text.endswith("/"):
        return re.escape(text) + r"[\w.\-]++>"
    return re.escape(text[:-1]) + f"{SUFFIX}>" if text.endswith(">") else re.escape(text)


_MARKS: Final = [mark for each in FORMATS for mark in each.marks]
_BY_MARK: Final = {
    **{mark: [each for each in FORMATS if mark in each.marks] for mark in _MARKS},
    ">>>": [each for each in FORMATS if each.name == "functionary-v3.2"],
}
_CLOSES_VALUE: Final = [each.close for each in FORMATS if each.close and each.close[-1] != "/"]
_HIDING: Final = {*HIDES, *(text for text, kind in SHOWS.items() if kind == THOUGHT)}
"""Texts that hide what follows, or all before them: a thought that the prompt opened."""
_VALUE_END = re.compile("|".join(map(_closer, _CLOSES_VALUE)))
_SIGN = re.compile(
    "|".join(
        [
            *alternatives(dict.fromkeys([*_MARKS, *HIDES, *SHOWS, *_CLOSES_VALUE])),
            r">>>(?=[\w.\-/]{1,100}\n\{)",
            r"</?(?:tool_calls?|tool_responses?|think|arg_value):\w{1,16}>",
        ]
    )
)
"""Every text at which the pass through a message stops."""
_SUFFIXED = re.compile(r"^(</?(?:tool_calls?|tool_responses?|think|arg_value)):\w{1,16}>")
_STOPS = "|".join(alternatives(dict.fromkeys(stop for each in FORMATS for stop in each.stop)))
_LAST_TOKENS = re.compile(rf"(?:{_STOPS})(?:\s*+(?:{_STOPS}))*+\s*+\Z")
_TAIL = 120  # characters at the end of a text that may be tokens

_compiled = functools.cache(re.compile)


@functools.cache
def _ends(mark: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The patterns of what closes calls behind a mark, and of that or the next such mark."""
    closes = "|".join(
        [_closer(close) for each in _BY_MARK[mark] for close in each.closes] or ["(?!)"]
    )
    return re.compile(rf"(?:\s*+(?:{closes}|```))*+"), re.compile(f"{re.escape(mark)}|{closes}")


def find_calls(text: str, specs: Mapping[str, ToolSpec]) -> list[RawCall]:
    """All calls in a text, in their order; an empty list if it holds none."""
    return _Finder(without_last_tokens(text), specs).find()


def without_last_tokens(text: str) -> str:
    """The text without the tokens that end a turn, which some decoders leave in it."""
    stops = _LAST_TOKENS.search(text, max(0, len(text) - _TAIL))
    return text[: stops.start()].rstrip() if stops else text


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The position behind what a pattern matches at a position."""
    match = pattern.match(text, position)
    return match.end() if match else position


def _plain(sign: re.Match[str]) -> str:
    """A sign without the suffix of Hunyuan 3."""
    text = sign.group()
    return _SUFFIXED.sub(r"\1>", text) if ":" in text else text


def _is_whole(calls: list[RawCall]) -> bool:
    """Whether calls were read, each as it was written, with nothing missing."""
    return all(call.error is None and call.whole for call in calls)


def _noted(calls: list[RawCall], repair: Repair) -> list[RawCall]:
    """The calls with a further repair."""
    return [call.with_repairs(repair) for call in calls]


_BLANK = re.compile(r"\s*+")
_FENCE = re.compile(r"\s*+(?:```\w*+\s*+|`)?+")
_BETWEEN = re.compile(r"[\s;,]*+")
_BETWEEN_CALLS = re.compile(r"(?:[\s;,]++|#[^\n]*+)*+")

# Lines. The word behind a fence is taken whole or, before a bracket, not at all: dividing it
# between a language and a name would take quadratic time.
_HERE = re.compile(
    r"[ \t]*+(?:```(?:[\w-]++(?!\())?+[ \t]*+|`)?"
    r"(?=[{\[]|[A-Za-z_][\w.\-/:]*+\(|functools\[|Action:|Call:|-> tool/function_call)"
)
_LINE = re.compile("^" + _HERE.pattern, re.MULTILINE)
_FIRST_LINE = re.compile(r"\s*+([\w.\-/]{1,100})[ \t]*+\n\s*+(<\|content\|>\s*+)?+(?=\{)")
_BEHIND_FIRST_LINE = re.compile(r"\s*+(?:\Z|\n|>>>|<)|[ \t]*+\n")
_CALL_SHAPED = re.compile(
    r"\[?+\s*+\{\s*+[\"'](?:name|tool|tool_name|function|function_name|type|id|tool_calls?|"
    r"arguments|parameters|args|input|kwargs|params|tool_input)[\"']\s*+:"
)
_LOOSE_END = re.compile(r"```|</tool_call>")
_INPUT_END = re.compile(r"```|\nObservation:")
_OBSERVATION = re.compile(r"[`\s]*+Observation:")
_RECIPIENT = re.compile(r"to=(?:functions\.)?([\w.\-/]{1,100})\s*\Z")

# Python calls.
_CALLED = re.compile(r"[A-Za-z_][\w.\-/:]*+(?=\()")
_ARGUMENT = re.compile(r"\s*+(?:\w++\s*+=|[\"'\[{]|-?[\d.]++\s*+$)")  # how one begins
_LINE_END = re.compile(r"[ \t]*+[;`]*+[ \t]*+(?:#[^\n]*+)?+(?=\n|$|</tool_call>|</code>|<\|)")
_NEXT = re.compile(r"[\s;,]*+(?:\Z|`|<(?![\s\d=])|[A-Za-z_][\w.\-/:]*+\()")  # what may follow one
_NOTHING = re.compile(r"[ \t\n;`]*+\Z")


class _Finder:
    """One pass through one text.

    Attributes:
        visible: Only blanks and hidden text precede this position.
        budget: How many more characters may be followed in vain from a bracket of Python.
        stray: The call that was just read, without success, holds a tag that closes a value, so
            calls before it may be parts of one value.
    """

    def __init__(self, text: str, specs: Mapping[str, ToolSpec]) -> None:
        self.text = text
        self.specs = specs
        self.json = JsonReader(text)
        self.visible = 0
        self.budget = _IN_VAIN
        self.stray = False

    def find(self) -> list[RawCall]:
        """The calls of the text."""
        text = self.text
        marked: list[Span] = []
        loose: list[Span] = []  # of lines; they count only where no mark opened a call
        position, count, again = 0, 0, _IN_VAIN
        lines, marks = _MAX_LINES, _MAX_MARKS
        begun = False  # the text begins inside a thought
        fresh = True  # a line begins at the position
        sign = _SIGN.search(text)
        while True:
            if sign and sign.start() < position:
                sign = _SIGN.search(text, position)
            stop = sign.start() if sign else len(text)
            spans, start, line = marked, position, None
            calls: list[RawCall] = []
            if fresh and position == self.visible:
                calls, end = self._first_line(position)
            if lines and not (calls or marked) and count < MAX_CALLS:
                line = _HERE.match(text, position, stop) if fresh else None
                line = line or _LINE.search(text, position, stop)
            fresh = False
            if line:
                lines -= 1
                spans, start = loose, line.end()
                calls, end = self._line(start)
            elif not calls:
                if sign is None:
                    break
                name = _plain(sign)
                if name in HIDES:
                    closes = [each for each, kind in SHOWS.items() if kind == HIDES[name]]
                    close = self._search(sign.end(), len(text), closes)
                    end = close.end() if close else len(text)
                    if _VALUE_END.search(text, sign.end(), end):
                        self._doubt(marked, begun)
                    if self.visible == position and not text[position : sign.start()].strip():
                        self.visible = end
                    position, fresh = end, True
                    continue
                if name in _HIDING:  # the end of a thought that the prompt opened
                    marked, loose, count = [], [], 0
                    position = self.visible = sign.end()
                    begun = fresh = True
                    continue
                if name not in _BY_MARK or count >= MAX_CALLS or not marks:
                    if name in _CLOSES_VALUE:
                        self._doubt(marked, begun)
                    position = sign.end()
                    continue
                marks -= 1
                start = sign.start()
                calls, end = self._mark(sign, position)
            if not _is_whole(calls):
                hidden = self._search(start + 1, end, _HIDING)
                if hidden:
                    again -= end - hidden.start()
                    if again < 0:
                        return [self._failed("too much of the text cannot be read", HERMES)]
                    calls, end = self._as_errors(calls, INTERRUPTED), hidden.start()
                elif spans is loose and end < len(text):
                    end = min(end, stop)  # a mark in it opens a call
            if calls:
                spans.append((start, end, calls))
                count += len(calls)
            if self.stray:
                self._doubt(marked, begun)
                self.stray = False
            position = max(end, start + 1)
        spans = marked or [span for span in loose if not _is_in_program(text, *span)]
        found = [call for _, _, calls in spans for call in calls]
        return [call for call in found if not _is_placeholder(call, self.specs)][:MAX_CALLS]

    def _failed(self, reason: str, kind: str, name: str = "", *, textual: bool = False) -> RawCall:
        """A call that cannot be read; `reason` is TRUNCATED or half a sentence."""
        error = call_errors.unreadable(reason == TRUNCATED, reason, self.specs)
        return RawCall(name, {}, kind, error=error, textual=textual)

    def _as_errors(self, calls: list[RawCall], reason: str) -> list[RawCall]:
        return [
            call
            if call.error
            else self._failed(reason, call.format, call.name, textual=call.textual)
            for call in calls
        ]

    def _search(self, start: int, end: int, names: Container[str]) -> re.Match[str] | None:
        """The first sign between two positions that is one of some texts."""
        signs = _SIGN.finditer(self.text, start, end)
        return next((sign for sign in signs if _plain(sign) in names), None)

    def _doubt(self, spans: list[Span], begun: bool) -> None:
        """Turn calls into errors after a tag that closes a value but belongs to none of them.

        Formats of bare text escape nothing, so a value may hold the tags that end its call, and
        even a whole call behind them. The first call in tags, and all that seemed to be calls up to
        the stray tag, may be one value. That value may also have begun in a thought.
        """
        first = 0
        while not begun and first < len(spans):
            if any(call.textual and (call.arguments or call.error) for call in spans[first][2]):
                break
            first += 1
        for place, (start, end, calls) in enumerate(spans[first:], first):
            spans[place] = start, end, self._as_errors(calls, UNCLEAR)
        if begun and not spans:
            spans.append((0, 0, [self._failed(UNCLEAR, "xml", textual=True)]))

    # Behind a mark.

    def _mark(self, sign: re.Match[str], floor: int) -> Found:
        """The calls behind a mark; none if the text only speaks of the format.

        Args:
            floor: Where the call before it ends.
        """
        text = self.text
        quoted = _quotation_end(text, sign.start(), floor)
        if quoted >= 0:
            return [], max(quoted, sign.end())
        calls, end = self._behind(sign)
        if any(call.error for call in calls) and _TEMPLATE.match(text, sign.end()):
            calls = []
        unread = len(calls) == 1 and calls[0].error and not _BODY.match(text, sign.end())
        if unread and _is_sentence(text, sign.start(), floor):
            return [], sign.end()  # the sentence only names the mark
        return calls, max(end, sign.end())

    def _behind(self, sign: re.Match[str]) -> Found:
        """The calls behind a mark, up to what closes them, or an error; none before other marks."""
        text, mark = self.text, _plain(sign)
        begin = _skip(_FENCE, text, sign.end())
        nested = _SIGN.match(text, begin)
        if nested and _plain(nested) in _BY_MARK:
            return [], sign.end()  # a section around calls
        formats = _BY_MARK[mark]
        first = formats[0]
        closing, ending = _ends(mark)
        stop = ending.search(text, begin)
        limit = stop.start() if stop else len(text)
        calls, end = self._shaped(sign, begin, limit, formats)
        if not calls:
            if not first.certain:
                return [], sign.end()
            self.stray = _VALUE_END.search(text, begin, limit) is not None
            reason = TRUNCATED if limit == len(text) or begin == len(text) else NO_CALL
            calls, end = [self._failed(reason, first.name)], limit
        last, behind = calls[-1], _skip(closing, text, end)
        if last.error or last.textual:
            return calls, behind
        closed = text[end:behind].strip(" \n`")
        later = ending.search(text, behind)
        close_later = later is not None and later.group() != mark
        if not last.whole and end == limit < len(text) and (not closed or close_later):
            # The tag may be a part of a value whose quotes are broken.
            return self._as_errors(calls, UNBALANCED), behind
        if first.name != HERMES:
            return calls, behind
        listed = text.startswith("[", begin)
        if listed and not closed and _is_whole(calls) and not text[end:].strip():
            return [replace(call, format="granite-3.1") for call in calls], behind
        if not closed and later and close_later:
            if text[end : later.start()].strip(_LEFT_OVER):
                return self._as_errors(calls, NOT_ALONE), later.end()
            calls, behind = _noted(calls, REPAIRED_JSON), later.end()
        elif not closed:
            calls = _noted(calls, MISSING_CLOSE_TAG)
        bare = last.format == HERMES and not text.startswith("{", begin)
        if bare or len(calls) > 1 or text[sign.end() : begin].strip():
            calls = _noted(calls, REPAIRED_JSON)
        return calls, behind

    def _shaped(self, sign: re.Match[str], begin: int, limit: int, formats: list[Format]) -> Found:
        """The calls behind a mark in the first of the shapes that its formats have."""
        text, first = self.text, formats[0]
        calls: list[RawCall] = []
        end = begin
        plain = first.certain or not first.head
        if plain and text.startswith(("{", "["), begin):
            calls, end = self._objects(begin, limit, first.name, keyed=first.keyed)
        for entry in formats:
            if calls:
                return calls, end
            if entry.arguments == BRACES:
                calls, end = self._braces(begin, entry)
            elif entry.parameter:
                calls, end = self._tagged(sign.end(), limit, entry)
            elif entry.head:
                calls, end = self._named(sign, limit, entry)
        if not calls and plain:
            own = first.arguments == PYTHON or not first.certain
            kind = first.name if own else "python"
            calls, end = self._python(begin, kind, sure=first.certain)
        return calls, end

    # JSON objects.

    def _objects(self, start: int, limit: int, kind: str, *, keyed: bool = False) -> Found:
        """JSON objects one after another, or in a list; stops at the first that cannot be read."""
        text = self.text
        calls: list[RawCall] = []
        listed = text.startswith("[", start)
        position = _skip(_BETWEEN, text, start + 1) if listed else start
        while len(calls) < MAX_CALLS and text.startswith("{", position):
            read = self.json.read(position, limit)
            if read.problem:
                return [*calls, self._failed(read.problem, kind)], read.end
            calls += self._described(read, kind, keyed)
            start = read.end
            position = _skip(_BETWEEN, text, start)
        if listed and calls:
            if text.startswith("]", position):
                return calls, position + 1
            calls = _noted(calls, REPAIRED_JSON)
        return calls, start

    def _described(self, read: JsonRead, kind: str, keyed: bool) -> list[RawCall]:
        """The calls that one JSON object describes; none if it is data in loose text."""
        data = read.value
        if keyed and len(data) == 1 and all(isinstance(each, dict) for each in data.values()):
            [(name, arguments)] = data.items()
            data = {"name": name, "arguments": arguments}
        inner = data.get("tool_calls") or data.get("tool_call")
        entries = inner if isinstance(inner, list) else [inner]
        entries = [entry for entry in entries if isinstance(entry, dict)] or [data]
        calls = [from_mapping(entry, kind, self.specs, read.repairs) for entry in entries]
        name, inner = calls[0].name, data.get("function")
        placed = isinstance(inner, dict) or any(key in data for key in _ARGUMENTS)
        named = isinstance(name, str) and (placed or name in self.specs)
        if kind == LOOSE and entries == [data] and not named:
            return []
        return [_as_read(call, read) for call in calls]

    def _named(self, sign: re.Match[str], limit: int, entry: Format) -> Found:
        """A name, and behind it a JSON object with the arguments."""
        head = _compiled(entry.head).match(self.text, sign.end())
        if head is None:
            return [], sign.end()
        name = head.group(1)
        if sign.group() == ">>>" and not is_near(name, self.specs):
            return [], sign.end()
        if name is None:  # a channel, whose recipient may precede it
            before = _RECIPIENT.search(self.text, max(0, sign.start() - _TAIL), sign.start())
            if before is None:
                return [], sign.end()
            name = before.group(1)
        return self._object_of(name, head.end(), limit, entry.name)

    def _object_of(self, name: str, start: int, limit: int, kind: str) -> Found:
        read = self.json.read(start, limit)
        if read.problem:
            return [self._failed(read.problem, kind)], read.end
        return [_as_read(RawCall(name, read.value, kind, read.repairs), read)], read.end

    def _braces(self, begin: int, entry: Format) -> Found:
        """A call of Gemma: `call:f{x:<|"|>a text<|"|>,n:5,l:[1,2]}`.

        The braces are rewritten as JSON: keys get quotes, and so do texts, which nothing escapes.
        """
        text, quote = self.text, entry.quotes[0]
        head = _BRACES_HEAD.match(text, begin)
        if head is None:
            return [], begin
        written: list[str] = []
        repairs: tuple[Repair, ...] = ()
        depth, end = 0, head.end()
        for token in _brace_tokens(quote).finditer(text, head.end()):
            unescaped, escaped, word, colon = token.groups()
            if unescaped is not None:
                written.append(json.dumps(unescaped))
            elif token.group() in (quote[0], '"') and text.startswith((quote, '"'), token.start()):
                break  # it is not closed
            elif word and colon:
                written.append(f"{json.dumps(word.rstrip())}:")
            else:
                written.append(token.group())
                repairs = (REPAIRED_JSON,) if escaped else repairs
                depth += (token.group() in "{[") - (token.group() in "}]")
            end = token.end()
            if depth == 0:
                as_json = "".join(written)
                read = JsonReader(as_json).read(0, len(as_json))
                if read.problem:
                    return [self._failed(read.problem, entry.name)], len(text)
                repairs = (*repairs, *read.repairs)
                return [RawCall(head.group(1), read.value, entry.name, repairs)], end
        return [self._failed(TRUNCATED, entry.name)], len(text)

    # Bare text in tags.

    def _tagged(self, begin: int, limit: int, entry: Format) -> Found:
        """A name, and values that are bare text between tags.

        The tag that closes the call may be missing at the end of the text, but not behind a value
        that stops inside of quotes. A call that cannot be read holds the rest of the text.
        """
        text = self.text
        head = _compiled(entry.head).match(text, begin)
        if head is None:
            return [], begin
        name, position = head.group(1), head.end()
        opening, tags, follow, last = _tag_patterns(entry)
        values: dict[str, str] = {}
        value, problem = "", STRAY
        while key := opening.match(text, position):
            tag = self._value_end(key.end(), tags, follow)
            if tag is None:
                problem = UNCLEAR
                break
            value, position = text[key.end() : tag.start()], tag.end()
            if value.startswith("\n") and value.endswith("\n"):
                value = value[1:].removesuffix("\n")  # a line of its own, as Qwen's template has it
            opens, closes = entry.quotes
            if opens and value.startswith(opens) and value.endswith(closes):
                value = value[len(opens) : -len(closes)]
            if values.setdefault(key.group(1), value) != value:
                problem = CONFLICT
                break
        else:
            if not values and entry.head == BARE_NAME and match_name(name, self.specs).name is None:
                return [], begin
            end = _skip(_BLANK, text, position)
            call = RawCall(name, values, entry.name, textual=True)
            if close := _compiled(_closer(entry.closes[0])).match(text, end):
                return [call], close.end()
            if values and last.match(text, end) and _QUOTED.fullmatch(value):
                call = replace(call, whole=False, unfinished=True)
                return [call.with_repairs(MISSING_CLOSE_TAG)], len(text)
        self.stray = _VALUE_END.search(text, position) is not None
        reason = TRUNCATED if limit == len(text) else problem
        return [self._failed(reason, entry.name, name, textual=True)], len(text)

    def _value_end(
        self, begin: int, tags: re.Pattern[str], follow: re.Pattern[str]
    ) -> re.Match[str] | None:
        """The tag that closes the value at a position; None if that is not clear.

        No character of a value is escaped, so it can hold the very tag that closes it. A value ends
        at the first closing tag that is followed by what may follow a value: the next parameter,
        the end of the call, the end of the text. With an opening tag of the format, or two tags
        side by side, before that end, the value could also end earlier.
        """
        is_clear, behind = True, -1
        for tag in tags.finditer(self.text, begin):
            adjacent = behind > 0 and not self.text[behind : tag.start()].strip()
            is_clear = is_clear and not adjacent and tag.lastgroup != "opens"
            if tag.lastgroup == "close" and follow.match(self.text, tag.end()):
                return tag if is_clear else None
            behind = tag.end()
        return None

    # Python calls.

    def _python(self, start: int, kind: str = "python", *, sure: bool) -> Found:
        """Python calls with literal arguments: one, a list, or one behind the other; else none.

        Args:
            sure: A mark announces calls, so what cannot be read is an error. Otherwise each call,
                or the list, has to end its line, and what cannot be read is prose.
        """
        text, specs = self.text, self.specs
        listed = text.startswith("[", start)
        position = end = start + listed
        calls: list[RawCall] = []
        kept: list[RawCall] = [] if listed else calls  # a list is read as a whole
        while len(calls) < MAX_CALLS and (called := _CALLED.match(text, position)):
            name, opened = called.group(), called.end()
            if sure and not calls and not is_near(name, specs):
                return [RawCall(name, {}, kind)], opened  # an unknown tool
            if self.budget < 0 or not is_near(name, specs):
                break
            shape = outline(text[opened : opened + MAX_MENDED])
            if shape.end is None:
                self.budget -= MAX_MENDED
                if name in specs and ((listed and calls) or _ARGUMENT.match(text, opened + 1)):
                    return [*kept, self._failed(TRUNCATED, kind, name)], len(text)
                break
            self.budget -= shape.end
            closed = opened + shape.end
            tail = _LINE_END.match(text, closed)
            if not (listed or tail):
                if not sure:
                    break
                if not _NEXT.match(text, closed):
                    return [*kept, self._failed(EXPRESSION, kind, name)], closed
            try:
                call = self._literal_call(name, text[opened:closed], kind)
            except ValueError:
                alone = _NOTHING.match(text, closed) and _skip(_FENCE, text, self.visible) >= start
                if sure or (alone and name in specs):
                    return [*kept, self._failed(NOT_LITERAL, kind, name)], closed
                break
            self.budget += shape.end  # not in vain
            calls.append(call)
            end = tail.end() if tail else closed
            position = _skip(_BETWEEN_CALLS, text, end)
        if not listed or not calls:
            return calls, end
        end = position + 1
        tail = _LINE_END.match(text, end)
        if text.startswith("]", position) and (tail or (sure and _NEXT.match(text, end))):
            return calls, end
        if sure or position == len(text):
            reason = TRUNCATED if position == len(text) else NOT_LITERAL
            return [self._failed(reason, kind, str(calls[0].name))], position
        return [], start

    def _literal_call(self, name: str, code: str, kind: str) -> RawCall:
        """The call of a name with arguments in Python; nothing is evaluated.

        Raises:
            ValueError: The arguments are more than literals.
        """
        pieces: list[str] = ["f"]  # names such as `tools/describe` are no Python
        mended = behind_text = False
        for piece in PIECE.finditer(code):
            part = piece.group()
            if piece.group(1) is None:
                behind_text = behind_text and not part.strip(" \t")
            elif behind_text:
                raise NotALiteral("Python joins 'it''s', where a quote or a comma may be meant")
            else:
                behind_text = True
                if re.search(r"[\r\n]", part) and not part.startswith(('"""', "'''")):
                    part = part.replace("\n", "\\n").replace("\r", "\\r")
                    mended = True
            pieces.append(part)
        tree = parse_expression("".join(pieces))
        if not isinstance(tree, ast.Call):
            raise NotALiteral("no call")
        values = tuple(map(literal_value, tree.args))
        named: dict[str, Any] = {}
        for keyword in tree.keywords:
            if keyword.arg is None or keyword.arg in named:
                raise NotALiteral("unpacked or repeated")
            named[keyword.arg] = literal_value(keyword.value)
        repairs = (REPAIRED_JSON,) if mended else ()
        return RawCall(name, named, kind, repairs, positional=values)

    # Lines that no mark announces.

    def _first_line(self, position: int) -> Found:
        """A tool's name alone on the first line, and an object under it (GLM-4, Functionary).

        The name may be misspelt, unless the object holds a name of its own.
        """
        text = self.text
        head = _FIRST_LINE.match(text, position)
        if head is None or not is_near(head.group(1), self.specs):
            return [], position
        if head.group(1) not in self.specs and _CALL_SHAPED.match(text, head.end()):
            return [], position
        kind = "functionary-v2" if head.group(2) else "glm-4"
        calls, end = self._object_of(head.group(1), head.end(), len(text), kind)
        if _is_whole(calls) and not _BEHIND_FIRST_LINE.match(text, end):
            return [], position
        return calls, end

    def _line(self, begin: int) -> Found:
        """The calls that begin where a line does; none if it is prose."""
        text = self.text
        if _TEMPLATE.match(text, begin):
            return [], begin
        for entry in _LED:
            if lead := _compiled(entry.lead).match(text, begin):
                return self._led(entry, lead)
        if _CALL_SHAPED.match(text, begin):
            stop = _LOOSE_END.search(text, begin)
            calls, end = self._objects(begin, stop.start() if stop else len(text), LOOSE)
            if not _is_whole(calls) and not _LOOSE_CLOSE.match(text, end):
                calls = self._as_errors(calls, UNBALANCED)
            return calls, end
        if text[begin] == "{":
            return [], begin
        return self._python(begin, sure=False)

    def _led(self, entry: Format, lead: re.Match[str]) -> Found:
        """The calls behind what begins a line in a format without marks."""
        text, begin = self.text, lead.end()
        if entry.arguments == PYTHON:
            calls, end = self._python(begin, entry.name, sure=True)
            near = all(is_near(str(call.name), self.specs) for call in calls)
            return (calls, end) if near else ([], begin)
        stop = _INPUT_END.search(text, begin)
        limit = stop.start() if stop else len(text)
        name = lead.group(1) if lead.lastindex else ""
        if name and text.startswith("{", begin):
            calls, end = self._object_of(name, begin, limit, entry.name)
        elif not name and _CALL_SHAPED.match(text, begin):
            calls, end = self._objects(begin, limit, entry.name)
        else:
            return [], begin
        if _OBSERVATION.match(text, end):
            end = len(text)  # a result that the model made up, and what it made of it
        return calls, end


_QUOTED = re.compile(r"(?:[^'\"]++|(?<=\w)'(?=\w)|'[^']*+'|\"[^\"]*+\")*+")  # quotes are closed
_BRACES_HEAD = re.compile(r"call:\s*+([\w.\-/:]++)\s*+(?=\{)")
_LED: Final = [each for each in FORMATS if each.lead]
_LOOSE_CLOSE = re.compile(r"\Z|(?:```|</tool_call>)[ \t]*+(?:\n|\Z)")
_CODE = re.compile(r"\s*+[^#\s]")
_STATEMENT = re.compile(
    r"[ \t]*+(?:(?:import|from|def|class|for|while|if|elif|else|try|except|finally|with|return|"
    r"assert|raise|async|await|print|const|let|var|function)\b|"
    r"[\w.\[\]\"', ]{1,60}=(?!=)|[)}\]]|@\w|>>>|\.\.\.)"
)


def _is_in_program(text: str, start: int, end: int, calls: list[RawCall]) -> bool:
    """Whether calls are lines of a program, which would run as a whole or not at all.

    This holds for Python calls whose fence holds more than calls and comments, and for calls
    without a fence if the line before or after them is a statement.
    """
    if calls[0].format != "python":
        return False
    if text.count("```", 0, start) % 2:
        before = text[text.rfind("```", 0, start) : start].partition("\n")[2]
        around = before + text[end:].partition("```")[0]
        return any(map(_CODE.match, around.splitlines()))
    before = text[max(0, start - _LOOK_BACK) : start].rpartition("\n")[0].rpartition("\n")[2]
    behind = text[end : end + _LOOK_BACK].partition("\n")[2].partition("\n")[0]
    return any(map(_STATEMENT.match, (before, behind)))


@functools.cache
def _brace_tokens(quote: str) -> re.Pattern[str]:
    """The tokens of Gemma's braces: a text, a text in JSON's quotes, a key or word, a sign."""
    bare = r"[^\s:,{}\[\]<>\"'][^:,{}\[\]<>\"'\n]*+"
    quote = re.escape(quote)
    json_text = r'"(?:[^"\\]++|\\.)*+"'
    return re.compile(f"{quote}(.*?){quote}|({json_text})|({bare})(:?)|.", re.DOTALL)


@functools.cache
def _tag_patterns(entry: Format) -> tuple[re.Pattern[str], ...]:
    """The patterns of a format of tags.

    In their order: what opens a parameter, up to its value; each tag that a value could hold by
    mistake; what may follow a value; what may follow the last value of a text.
    """
    parameter, closes = re.escape(entry.parameter), "|".join(map(_closer, entry.closes))
    frame = (text for text in entry.frame if not text.startswith("</"))
    opens = "|".join(map(re.escape, (entry.parameter, *entry.marks, *frame)))
    return (
        re.compile(rf"\s*+{parameter}{entry.key or entry.head}"),
        re.compile(f"(?P<ends>{closes})|(?P<close>{_closer(entry.close)})|(?P<opens>{opens})"),
        re.compile(rf"\s*+(?:{parameter}|{closes}|\Z)"),
        re.compile(rf"(?:(?:{closes})\s*+)*+\Z"),
    )


# Calls as mappings.
#
# Which keys hold the name and the arguments differs by family: `name` and `arguments` (Hermes,
# OpenAI), `name` and `parameters` (Llama). Other keys are accepted as a repair, and so are
# arguments next to the name.

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = (
    *("arguments", "parameters", "args", "input", "kwargs", "params"),
    *("tool_input", "action_input"),
)
_BESIDE = {"id", "type", "index", "call_id", "tool_call_id"}  # keys of a call, no arguments
_MAX_INNER = 8  # an object under `function`, in an object under `function`, ...
_NATIVE = {each.name: {"name", "arguments", *each.keys} for each in FORMATS}


def from_mapping(
    data: dict[Any, Any], kind: str, specs: Mapping[str, ToolSpec], repairs: tuple[Repair, ...] = ()
) -> RawCall:
    """The call that a mapping describes; its name is None where the mapping has none."""
    names: list[str] = []
    for depth in range(_MAX_INNER):  # OpenAI: {"id", "type": "function", "function": {...}}
        repairs = (*repairs, RENAMED_FIELD) if depth and kind == HERMES else repairs
        names += [data[key] for key in _NAMES if type(data.get(key)) is str]
        inner: Any = data.get("function")
        if not issubclass(type(inner), dict):
            break
        data = inner
    if len(names) > 1 and len({match_name(name, specs).name for name in names} - {None}) > 1:
        error = call_errors.malformed_call("it names more than one tool", specs)
        return RawCall("", {}, kind, repairs, error)
    name_key = next((key for key in _NAMES if data.get(key) is not None), None)
    if name_key is None:
        return RawCall(None, None, kind, repairs)
    wrappers = [key for key in _ARGUMENTS if key in data and key != name_key]
    filled = [key for key in wrappers if data[key] is not None and data[key] != {}]
    objects = [data[key] for key in filled if issubclass(type(data[key]), dict)]
    if not wrappers or any(each != objects[0] for each in objects):
        arguments: Any = {k: v for k, v in data.items() if k != name_key and k not in _BESIDE}
        repairs = (*repairs, FLAT_ARGUMENTS) if arguments else repairs
        used = {name_key}
    else:
        arguments = data[filled[0] if filled else wrappers[0]]
        used = {name_key, *filled[:1]}
    if not used <= _NATIVE.get(kind, _NATIVE[HERMES]):
        repairs = (*repairs, RENAMED_FIELD)
    return RawCall(data[name_key], arguments, kind, repairs)


def _as_read(call: RawCall, read: JsonRead) -> RawCall:
    """The call, marked as not whole where brackets of its JSON are missing."""
    whole = not (read.cut or read.missing)
    return replace(call, whole=whole, unfinished=read.missing > 0)


# Talk about calls. What is looked at around a mark is bounded, so a text of nothing but marks takes
# no longer.

_LOOK_BACK = 200  # characters of the line before a mark
_LOOK_AHEAD = 4_000  # characters up to a closing quotation mark
_WORD = re.compile(r"[^\W\d_]{2}")
_CONTROL = (  # about what the table holds, in general
    r"(?:<[^<>\n]{1,60}>|\]<\]minimax\[>\[|\[/?[A-Z_]+\]|\[unused\d+\]|\u273f\w+\u273f)"
)
_WITH_WORD = re.compile(rf"{_CONTROL}\w*+")
_ONLY_CONTROL = re.compile(rf"(?:{_CONTROL}|\s++|\w++)*+")
_BEHIND_QUOTE = r"(?=[\s.;:!?)]|,(?! [\"'])|\Z)"
_QUOTES = {
    "`": re.compile(r"(?<!`)`(?!`)"),
    '"': re.compile(rf"(?<=[>\])}}\u273f])\"{_BEHIND_QUOTE}"),
    "'": re.compile(rf"(?<=[>\])}}\u273f])'{_BEHIND_QUOTE}"),
    "\u201c": re.compile("\u201d"),
    "\u2018": re.compile("\u2019"),
    "\u00ab": re.compile("\u00bb"),
}
"""Quotation marks that open, each with the pattern of what closes it."""
_BODY = re.compile(r"\s*+(?:[{\[<`(]|[\w.\-/:]++\s*+(?:json\s*+)?+[({<\[]|\Z)")
_STAND_IN = (
    r"(?:<(?!think)[a-z][\w \-]{1,40}>|\{[a-z][\w ]{0,40}\}|\$\{?\w{1,40}|\.{3}|\u2026|x{3,}|"
    r"(?:(?:my|your|the|some|example)[_ \-])?(?:tool|function)[_ \-]?name(?:[_ \-]?\d)?|"
    r"(?:your|example)[_ \-]\w{1,30})(?!\w)"
)
_PLACEHOLDER = re.compile(_STAND_IN, re.IGNORECASE)
_TEMPLATE = re.compile(
    rf"[\s\[{{\"'`:(]*+(?:python\s++|json\s++|functions?(?:\.|\n|{_CONTROL})|call:\s*+|<function=)?+"
    rf"[{{\s]*+(?:[\"']?(?:name|tool_name|tool|function)[\"']?\s*+[:=]\s*+[\"']?)?+{_STAND_IN}",
    re.IGNORECASE,
)


def _is_sentence(text: str, place: int, floor: int) -> bool:
    """Whether the line before a place holds words, as far back as where the last call ended.

    A word directly behind a control text belongs to that: `<|open|>tools<|sep|>`.
    """
    begin = max(floor, place - _LOOK_BACK)
    line = text[max(begin, text.rfind("\n", begin, place) + 1) : place]
    return _WORD.search(_WITH_WORD.sub("", line)) is not None


def _quotation_end(text: str, place: int, floor: int) -> int:
    """Where the quotation ends that holds a mark within a sentence; -1 if none does.

    Args:
        place: Where the mark begins. Only other marks may precede it in the quotation.
        floor: Where the call before it ends.
    """
    begin = max(floor, place - _LOOK_BACK)
    opening = max([text.rfind(sign, begin, place) for sign in _QUOTES])
    if opening < 0 or not _ONLY_CONTROL.fullmatch(text, opening + 1, place):
        return -1
    if not _is_sentence(text, opening, floor):
        return -1
    closing = _QUOTES[text[opening]].search(text, place, place + _LOOK_AHEAD)
    return closing.end() if closing else -1


def _is_placeholder(call: RawCall, specs: Mapping[str, ToolSpec]) -> bool:
    """Whether a call is an example of the format: a placeholder is its name."""
    name = call.name
    if call.error is not None or not isinstance(name, str) or name in specs:
        return False
    return _PLACEHOLDER.fullmatch(name) is not None
