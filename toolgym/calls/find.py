"""Finds raw calls in the text of a model.

One pass reads the text from left to right. It stops at marks of the formats in
`toolgym.calls.formats`, which open calls. It also stops at texts that hide the text after them
(thinking, results of tools, turns of other roles). Until a mark opens a call, it stops at lines
that begin like a call. Calls are read by the notation of their format: JSON objects, a name with a
JSON object, Python calls, bare text in tags, or Gemma's braces.

Three rules prevent other text from being read as a call:

* In a complete call, marks and tags inside its values belong to the values. In an incomplete call,
  tags of thinking count as thinking, and the call is an error.
* A call with two possible readings, or one that was cut off, is an error. It is never executed.
* Text about calls is not a call. This includes marks that a sentence quotes or mentions,
  placeholders such as `<function-name>` in place of a name, and Python calls among the statements
  of a program.

The time grows linearly with the length of the text. Patterns are possessive (`*+`), so they do not
backtrack. No text is read twice. The number of characters that are read for calls without an end is
limited.
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
"""Maximum number of calls that are read from one action."""
_MAX_LINES, _MAX_MARKS = 256, 1024
"""Maximum number of lines and of marks in one text that are examined for calls."""
_MAX_WASTED = 4 * MAX_MENDED
"""Maximum number of characters in one text that may be read without a resulting call."""

LOOSE: Final = "json"
"""The name of the format of JSON objects without a mark."""
Found = tuple[list[RawCall], int]
"""Calls, and the position after them."""
Span = tuple[int, int, list[RawCall]]
"""Start position, end position and calls of a part of the text."""

UNCLEAR = "it is not clear where one of its values ends, because of tags inside or after it"
UNBALANCED = "its brackets are not closed before the next tag"
INTERRUPTED = "there is thinking inside of it"
NOT_LITERAL = r"its arguments must be literal values; a quote inside a text is written as \'"
EXPRESSION = "it is a part of an expression, or of a sentence"
STRAY = "it contains text that is not a parameter"
NO_CALL = "there is no call after its opening mark"
NOT_ALONE = "its tag contains other text"
_LEFT_OVER = " \t\n{}[]()\"'`,;."
"""Characters that are allowed between a call and the tag that closes it, as a repair."""


def _closer(text: str) -> str:
    """Return the pattern of a closing text. A text that ends in `/` is followed by a name."""
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
"""Texts that hide the text after them, or before them (the end of a thought opened in the
prompt).
"""
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
"""All texts at which the pass through a message stops."""
_SUFFIXED = re.compile(r"^(</?(?:tool_calls?|tool_responses?|think|arg_value)):\w{1,16}>")
_STOPS = "|".join(alternatives(dict.fromkeys(stop for each in FORMATS for stop in each.stop)))
_LAST_TOKENS = re.compile(rf"(?:{_STOPS})(?:\s*+(?:{_STOPS}))*+\s*+\Z")
_TAIL = 120  # maximum length of the tokens at the end of a text

_compiled = functools.cache(re.compile)


@functools.cache
def _ends(mark: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns: texts that close calls after a mark, and these texts or the same
    mark.
    """
    closes = "|".join(
        [_closer(close) for each in _BY_MARK[mark] for close in each.closes] or ["(?!)"]
    )
    return re.compile(rf"(?:\s*+(?:{closes}|```))*+"), re.compile(f"{re.escape(mark)}|{closes}")


def find_calls(text: str, specs: Mapping[str, ToolSpec]) -> list[RawCall]:
    """Return all calls in a text, in order. The list is empty if there are none."""
    return _Finder(without_last_tokens(text), specs).find()


def without_last_tokens(text: str) -> str:
    """Remove the tokens at the end of a turn that some decoders leave in the text."""
    stops = _LAST_TOKENS.search(text, max(0, len(text) - _TAIL))
    return text[: stops.start()].rstrip() if stops else text


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the end of a pattern's match at a position, or the position if there is no match."""
    match = pattern.match(text, position)
    return match.end() if match else position


def _plain(sign: re.Match[str]) -> str:
    """Return a sign without the suffix of Hunyuan 3."""
    text = sign.group()
    return _SUFFIXED.sub(r"\1>", text) if ":" in text else text


def _is_whole(calls: list[RawCall]) -> bool:
    """Return whether all calls were read without an error and are complete."""
    return all(call.error is None and call.whole for call in calls)


def _noted(calls: list[RawCall], repair: Repair) -> list[RawCall]:
    """Return the calls with a further repair."""
    return [call.with_repairs(repair) for call in calls]


_BLANK = re.compile(r"\s*+")
_FENCE = re.compile(r"\s*+(?:```\w*+\s*+|`)?+")
_BETWEEN = re.compile(r"[\s;,]*+")
_BETWEEN_CALLS = re.compile(r"(?:[\s;,]++|#[^\n]*+)*+")

# Lines. The word after a fence is matched as a whole or, before a bracket, not at all, because
# dividing it between a language and a name would take quadratic time.
_HERE = re.compile(
    r"[ \t]*+(?:```(?:[\w-]++(?!\())?+[ \t]*+|`)?"
    r"(?=[{\[]|[A-Za-z_][\w.\-/:]*+\(|functools\[|Action:|Call:|-> tool/function_call)"
)
_LINE = re.compile("^" + _HERE.pattern, re.MULTILINE)
_FIRST_LINE = re.compile(r"\s*+([\w.\-/]{1,100})[ \t]*+\n\s*+(<\|content\|>\s*+)?+(?=\{)")
_AFTER_FIRST_LINE = re.compile(r"\s*+(?:\Z|\n|>>>|<)|[ \t]*+\n")
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
_ARGUMENT = re.compile(r"\s*+(?:\w++\s*+=|[\"'\[{]|-?[\d.]++\s*+$)")  # the start of a call
_LINE_END = re.compile(r"[ \t]*+[;`]*+[ \t]*+(?:#[^\n]*+)?+(?=\n|$|</tool_call>|</code>|<\|)")
# text that may follow a call
_NEXT = re.compile(r"[\s;,]*+(?:\Z|`|<(?![\s\d=])|[A-Za-z_][\w.\-/:]*+\()")


class _Finder:
    """One pass through a text.

    Attributes:
        visible: The position before which there are only spaces and hidden text.
        budget: The number of characters after brackets of Python that may still be read without a
            resulting call.
        stray: Whether the last call could not be read and contains a tag that closes a value, so
            that calls before it may be parts of one value.
    """

    def __init__(self, text: str, specs: Mapping[str, ToolSpec]) -> None:
        self.text = text
        self.specs = specs
        self.json = JsonReader(text)
        self.visible = 0
        self.budget = _MAX_WASTED
        self.stray = False

    def find(self) -> list[RawCall]:
        """Return the calls of the text."""
        text = self.text
        marked: list[Span] = []  # of marks and of the first line
        loose: list[Span] = []  # on lines without a mark; used only if no mark opens a call
        position, count, again = 0, 0, _MAX_WASTED
        lines, marks = _MAX_LINES, _MAX_MARKS
        begun = False  # whether the text begins inside a thought
        opened = False  # whether a mark opened a call
        fresh = True  # whether a line begins at the position
        sign = _SIGN.search(text)
        while True:
            if sign and sign.start() < position:
                sign = _SIGN.search(text, position)
            stop = sign.start() if sign else len(text)
            spans, start, line = marked, position, None
            calls: list[RawCall] = []
            if fresh and position == self.visible:
                calls, end = self._first_line(position)
            if lines and not (calls or opened) and count < MAX_CALLS:
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
                    marked, loose, count, opened = [], [], 0, False
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
                opened |= bool(calls)
            if not _is_whole(calls):
                if line and stop < end:  # calls after its marks may be part of a value
                    spans = marked
                hidden = self._search(start + 1, end, _HIDING)
                if hidden:
                    again -= end - hidden.start()
                    if again < 0:
                        return [self._failed("too much of the text cannot be read", HERMES)]
                    calls, end = self._as_errors(calls, INTERRUPTED), hidden.start()
                elif line and end < len(text):
                    end = min(end, stop)
            if calls:
                spans.append((start, end, calls))
                count += len(calls)
            if self.stray:
                self._doubt(marked, begun)
                self.stray = False
            position = max(end, start + 1)
        if not opened:
            marked += [span for span in loose if not _is_in_program(text, *span)]
        found = [call for _, _, calls in marked for call in calls]
        broken = False
        for place, call in enumerate(found):
            meant = match_name(str(call.name), self.specs).name if broken else None
            if meant and self.specs[meant].terminal:  # it may be a value of that call
                [found[place]] = self._as_errors([call], UNCLEAR)
            broken = broken or call.error is not None
        return [call for call in found if not _is_placeholder(call, self.specs)][:MAX_CALLS]

    def _failed(self, reason: str, kind: str, name: str = "", *, textual: bool = False) -> RawCall:
        """Return a call that cannot be read; `reason` is TRUNCATED or a clause."""
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
        """Return the first sign between two positions that is in `names`."""
        signs = _SIGN.finditer(self.text, start, end)
        return next((sign for sign in signs if _plain(sign) in names), None)

    def _doubt(self, spans: list[Span], begun: bool) -> None:
        """Turn calls into errors after a stray tag, which closes a value but belongs to no call.

        Formats with bare text do not escape values, so a value may contain the tags that end its
        call, and even another call after them. So the text from the first call in tags to the stray
        tag may be a single value. That value may also begin in a thought.
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

    # Calls after a mark.

    def _mark(self, sign: re.Match[str], floor: int) -> Found:
        """Return the calls after a mark, or none if the text only mentions the format.

        Args:
            sign: The mark.
            floor: The end of the call before it.
        """
        text = self.text
        quoted = _quotation_end(text, sign.start(), floor)
        if quoted >= 0:
            return [], max(quoted, sign.end())
        calls, end = self._calls_after(sign)
        if any(call.error for call in calls) and _TEMPLATE.match(text, sign.end()):
            calls = []
        unread = len(calls) == 1 and calls[0].error and not _BODY.match(text, sign.end())
        if unread and _is_sentence(text, sign.start(), floor):
            return [], sign.end()  # the sentence only mentions the mark
        return calls, max(end, sign.end())

    def _calls_after(self, sign: re.Match[str]) -> Found:
        """Return the calls after a mark, up to their closing text, or an error.

        There are none if another mark follows directly: the first one opens a section of calls.
        """
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
        last, after = calls[-1], _skip(closing, text, end)
        if last.error or last.textual:
            return calls, after
        closed = text[end:after].strip(" \n`")
        later = ending.search(text, after)
        close_later = later is not None and later.group() != mark
        if not last.whole and end == limit < len(text) and (not closed or close_later):
            # The tag may be a part of a value whose quotes are broken.
            return self._as_errors(calls, UNBALANCED), after
        if first.name != HERMES:
            return calls, after
        listed = text.startswith("[", begin)
        if listed and not closed and _is_whole(calls) and not text[end:].strip():
            return [replace(call, format="granite-3.1") for call in calls], after
        if not closed and later and close_later:
            if text[end : later.start()].strip(_LEFT_OVER):
                return self._as_errors(calls, NOT_ALONE), later.end()
            calls, after = _noted(calls, REPAIRED_JSON), later.end()
        elif not closed:
            calls = _noted(calls, MISSING_CLOSE_TAG)
        bare = last.format == HERMES and not text.startswith("{", begin)
        if bare or len(calls) > 1 or text[sign.end() : begin].strip():
            calls = _noted(calls, REPAIRED_JSON)
        return calls, after

    def _shaped(self, sign: re.Match[str], begin: int, limit: int, formats: list[Format]) -> Found:
        """Return the calls after a mark, read by the first notation of its formats that fits."""
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
        """Read JSON objects, in sequence or in a list, up to the first that cannot be read."""
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
        """Return the calls that a JSON object describes, or none if it is data without a mark."""
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
        """Read a name, followed by a JSON object with the arguments."""
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
            return [self._failed(read.problem, kind, name)], read.end
        return [_as_read(RawCall(name, read.value, kind, read.repairs), read)], read.end

    def _braces(self, begin: int, entry: Format) -> Found:
        """Read a call of Gemma: `call:f{x:<|"|>a text<|"|>,n:5,l:[1,2]}`.

        The braces are rewritten as JSON: keys and texts, which are not escaped, get quotes.
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
                break  # the text is not closed
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
        """Read a name, and values that are bare text between tags.

        The tag that closes the call may be missing at the end of the text, unless the last value
        ends inside quotes. A call that cannot be read extends to the end of the text.
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
                value = value[1:].removesuffix("\n")  # a line of its own, as in Qwen's template
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
        """Return the tag that closes the value at a position, or None if it is ambiguous.

        Values are not escaped, so a value can contain the tag that closes it. A value ends at the
        first closing tag that is followed by the next parameter, the end of the call, or the end of
        the text. If an opening tag of the format, or two adjacent tags, come before that end, the
        value could also end earlier.
        """
        is_clear, previous = True, -1
        for tag in tags.finditer(self.text, begin):
            adjacent = previous > 0 and not self.text[previous : tag.start()].strip()
            is_clear = is_clear and not adjacent and tag.lastgroup != "opens"
            if tag.lastgroup == "close" and follow.match(self.text, tag.end()):
                return tag if is_clear else None
            previous = tag.end()
        return None

    # Python calls.

    def _python(self, start: int, kind: str = "python", *, sure: bool) -> Found:
        """Read Python calls with literal arguments: one, several in sequence, or a list.

        Args:
            start: The position of the first call or of the list.
            kind: The name of the format.
            sure: Whether a mark precedes, so that unreadable text is an error. Otherwise each call,
                or the list, must end its line, and unreadable text is prose.
        """
        text, specs = self.text, self.specs
        listed = text.startswith("[", start)
        position = end = start + listed
        calls: list[RawCall] = []
        kept: list[RawCall] = [] if listed else calls  # a list is read completely or not at all
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
                if sure or name in specs:
                    return [*kept, self._failed(NOT_LITERAL, kind, name)], closed
                break
            self.budget += shape.end  # the text is a call
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
        """Return the call of a name with arguments in Python, which are not evaluated.

        Raises:
            ValueError: The arguments are not literals.
        """
        pieces: list[str] = ["f"]  # names such as `tools/describe` are not valid in Python
        mended = after_text = False
        for piece in PIECE.finditer(code):
            part = piece.group()
            if piece.group(1) is None:
                after_text = after_text and not part.strip(" \t")
            elif after_text:
                raise NotALiteral("Python joins 'it''s', where a quote or a comma may be meant")
            else:
                after_text = True
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

    # Lines without a mark.

    def _first_line(self, position: int) -> Found:
        """Read a tool's name on the first line, and an object below it (GLM-4, Functionary).

        The name may be misspelled, unless the object contains a name.
        """
        text = self.text
        head = _FIRST_LINE.match(text, position)
        if head is None or not is_near(head.group(1), self.specs):
            return [], position
        if head.group(1) not in self.specs and _CALL_SHAPED.match(text, head.end()):
            return [], position
        kind = "functionary-v2" if head.group(2) else "glm-4"
        calls, end = self._object_of(head.group(1), head.end(), len(text), kind)
        if _is_whole(calls) and not _AFTER_FIRST_LINE.match(text, end):
            return [], position
        return calls, end

    def _line(self, begin: int) -> Found:
        """Return the calls that begin at the start of a line, or none if the line is prose."""
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
        """Return the calls after the text that begins a line in a format without marks."""
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
            end = len(text)  # an invented result, and the text after it
        return calls, end


_QUOTED = re.compile(r"(?:[^'\"]++|(?<=\w)'(?=\w)|'[^']*+'|\"[^\"]*+\")*+")  # all quotes closed
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
    """Return whether calls are lines of a program, so that they are not meant as tool calls.

    This applies to Python calls in a fence that contains lines other than calls and comments. It
    also applies to calls without a fence if the line before or after them is a statement.
    """
    if calls[0].format != "python":
        return False
    if text.count("```", 0, start) % 2:
        before = text[text.rfind("```", 0, start) : start].partition("\n")[2]
        around = before + text[end:].partition("```")[0]
        return any(map(_CODE.match, around.splitlines()))
    before = text[max(0, start - _LOOK_BACK) : start].rpartition("\n")[0].rpartition("\n")[2]
    after = text[end : end + _LOOK_BACK].partition("\n")[2].partition("\n")[0]
    return any(map(_STATEMENT.match, (before, after)))


@functools.cache
def _brace_tokens(quote: str) -> re.Pattern[str]:
    """Return the pattern of the tokens in Gemma's braces: text, JSON string, key or word, sign."""
    bare = r"[^\s:,{}\[\]<>\"'][^:,{}\[\]<>\"'\n]*+"
    quote = re.escape(quote)
    json_text = r'"(?:[^"\\]++|\\.)*+"'
    return re.compile(f"{quote}(.*?){quote}|({json_text})|({bare})(:?)|.", re.DOTALL)


@functools.cache
def _tag_patterns(entry: Format) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a format with tags.

    They match the opening of a parameter up to its value, the tags that a value may contain by
    mistake, the texts that may follow a value, and the texts that may follow the last value of a
    text.
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
# The keys of the name and the arguments differ by family: `name` and `arguments` (Hermes, OpenAI),
# `name` and `parameters` (Llama). Other keys, and arguments in the same object as the name, are
# accepted as a repair.

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = (
    *("arguments", "parameters", "args", "input", "kwargs", "params"),
    *("tool_input", "action_input"),
)
_OTHER_KEYS = {"id", "type", "index", "call_id", "tool_call_id"}  # keys that are not arguments
_MAX_INNER = 8  # an object under `function`, in an object under `function`, ...
_NATIVE = {each.name: {"name", "arguments", *each.keys} for each in FORMATS}


def from_mapping(
    data: dict[Any, Any], kind: str, specs: Mapping[str, ToolSpec], repairs: tuple[Repair, ...] = ()
) -> RawCall:
    """Return the call that a mapping describes. Its name is None if the mapping has no name."""
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
        arguments: Any = {k: v for k, v in data.items() if k != name_key and k not in _OTHER_KEYS}
        repairs = (*repairs, FLAT_ARGUMENTS) if arguments else repairs
        used = {name_key}
    else:
        arguments = data[filled[0] if filled else wrappers[0]]
        used = {name_key, *filled[:1]}
    if not used <= _NATIVE.get(kind, _NATIVE[HERMES]):
        repairs = (*repairs, RENAMED_FIELD)
    return RawCall(data[name_key], arguments, kind, repairs)


def _as_read(call: RawCall, read: JsonRead) -> RawCall:
    """Return the call, marked as incomplete if brackets of its JSON are missing."""
    whole = not (read.cut or read.missing)
    return replace(call, whole=whole, unfinished=read.missing > 0)


# Text about calls. The number of characters examined around a mark is bounded, so that a text that
# consists of marks takes linear time.

_LOOK_BACK = 200  # characters of the line before a mark
_LOOK_AHEAD = 4_000  # characters up to a closing quotation mark
_WORD = re.compile(r"[^\W\d_]{2}")
_CONTROL = (  # approximates all control texts of the table
    r"(?:<[^<>\n]{1,60}>|\]<\]minimax\[>\[|\[/?[A-Z_]+\]|\[unused\d+\]|\u273f\w+\u273f)"
)
_WITH_WORD = re.compile(rf"</?\w+>|{_CONTROL}(?:\w++(?=[<\[\]]|\Z))?+")
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
"""Opening quotation marks, each with the pattern of its closing mark."""
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
    """Return whether there are words before a position, in its line and after the last call.

    A word between control texts belongs to them: `<|open|>tools<|sep|>`, but not `<b>Note</b>`.
    """
    begin = max(floor, place - _LOOK_BACK)
    line = text[max(begin, text.rfind("\n", begin, place) + 1) : place]
    return _WORD.search(_WITH_WORD.sub("", line)) is not None


def _quotation_end(text: str, place: int, floor: int) -> int:
    """Return the end of the quotation in a sentence that contains a mark, or -1 if there is none.

    Args:
        text: The text.
        place: The start of the mark. Only other marks may precede it in the quotation.
        floor: The end of the call before it.
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
    """Return whether a call is an example of the format, with a placeholder as its name."""
    name = call.name
    if call.error is not None or not isinstance(name, str) or name in specs:
        return False
    return _PLACEHOLDER.fullmatch(name) is not None
