"""Calls that no mark announces: lines that begin with an object, a Python call, or a lead.

Loose text is mostly prose, so little of it is a call: a line that begins, perhaps in a code fence,
with a JSON object that has a tool's name and a place for arguments, or with a Python call of a tool
that exists, and is no line of a program; a lead of a format (`Action:` with `Action Input:`,
`functools[`, `Call:`); and a message that begins with the name of a tool alone on a line and an
object under it, as GLM-4 and Functionary write.

No pattern here can backtrack over more than it needs: where two runs of blanks could meet, the
first is possessive.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from toolgym.calls.mend import TRUNCATED
from toolgym.calls.mentions import is_template
from toolgym.calls.python_forms import read_python, read_python_calls
from toolgym.calls.source import (
    CLOSE,
    LOOSE,
    MAX_CALLS,
    Found,
    Source,
    headed_object,
    object_of,
    objects,
)
from toolgym.calls.tool_index import is_near

MAX_STARTS = 256  # lines that are tried

# What a line may have before its call. The word behind a fence is taken whole or, before a
# bracket, not at all: dividing it between language and name would take quadratic time.
_HERE = re.compile(
    r"[ \t]*+(?:```(?:[\w-]++(?!\())?+[ \t]*+|`)?"
    r"(?=[{\[]|[A-Za-z_][\w.\-/:]*+\(|functools\[|Action:|Call:|-> tool/function_call)"
)
_START = re.compile("^" + _HERE.pattern, re.MULTILINE)
_CALL_SHAPED = re.compile(
    r"\[?+\s*+\{\s*+[\"'](?:name|tool|tool_name|function|function_name|type|id|tool_calls?|"
    r"arguments|parameters|args|input|kwargs|params|tool_input)[\"']\s*+:"
)


def unmarked(
    source: Source, position: int = 0, *, leave_out: Sequence[tuple[int, int]] = ()
) -> list[Found]:
    """Calls without a mark: JSON objects and Python calls at the start of a line.

    Args:
        leave_out: Where stretches begin and end that only speak of a call, in their order.
    """
    stretches = iter((*leave_out, (len(source.text), len(source.text))))
    begin, end = next(stretches)
    reads: list[Found] = []
    count = 0
    for _ in range(MAX_STARTS):
        start = next_start(source.text, position)
        if start is None or count >= MAX_CALLS:
            break
        while start.end() >= end < len(source.text):
            begin, end = next(stretches)
        if start.end() > begin < end:
            position = end
            continue
        reading = read_start(source, start.end())
        if reading.calls:
            reads.append(reading)
            count += len(reading.calls)
        position = max(reading.end, start.end() + 1)
    return _without_programs(source.text, reads)


def next_start(
    text: str, position: int, end: int | None = None, *, here: bool = False
) -> re.Match[str] | None:
    """The next line that could begin a call; with `here`, one may begin at `position` itself."""
    end = len(text) if end is None else end
    match = _HERE.match(text, position, end) if here else None
    return match or _START.search(text, position, end)


def read_start(source: Source, begin: int) -> Found:
    """The calls that begin where a line does; none if it is prose."""
    if is_template(source.text, begin):
        return Found((), begin)
    lead = _LEAD.match(source.text, begin)
    if lead:
        return _led(source, begin, lead)
    if _CALL_SHAPED.match(source.text, begin):
        limit = min(source.find("```", begin), source.find(CLOSE, begin))
        reading = objects(source, begin, limit, LOOSE)
        reading.start = begin
        return reading
    if source.text[begin] == "{":
        return Found((), begin)
    python = read_python(source, begin)
    return Found(python.calls, python.end, begin, open_at=python.open_at)


_LEAD = re.compile(
    r"functools(?=\[)|(Action:\s*+)(?=[\[{`])|"
    r"Action:[ \t]*+([\w.\-/:]++)[ \t]*+\n\s*+Action Input:[ \t]*+(?:\s*+```\w*+\s*+)?+|"
    r"(Call:[ \t]*+)|-> tool/function_call\s*+"
)
_FENCE = re.compile(r"```\w*+\s*+")
_OBSERVATION = re.compile(r"[`\s]*+Observation:")


def _led(source: Source, begin: int, lead: re.Match[str]) -> Found:
    """The calls behind a lead; none if it is prose."""
    text, position = source.text, lead.end()
    if lead.group(3):
        found = read_python_calls(source, position, "nexus-raven")
        names = {str(call.name) for call in found.calls}
        return found if all(is_near(name, source.specs) for name in names) else Found((), begin)
    if lead.group(2):
        found = _input(source, lead)
    else:
        body = source.skip(position, _FENCE)
        if not _CALL_SHAPED.match(text, body):
            return Found((), begin)
        kind = "functools" if lead.group().startswith("f") else "hyperclova"
        limit = source.find("```", body) if lead.group(1) else len(text)
        found = objects(source, body, limit, "command-r" if lead.group(1) else kind)
    found.start = begin
    made_up = _OBSERVATION.match(text, found.end)
    if made_up and found.calls:  # a result that the model made up, and what it made of it
        found.read_to, found.end = found.end, len(text)
    return found


def _input(source: Source, lead: re.Match[str]) -> Found:
    """The call of an `Action:` with its `Action Input:`."""
    text, name = source.text, lead.group(2)
    if text.startswith("{", lead.end()):
        limit = min(source.find("\nObservation:", lead.end()), source.find("```", lead.end()))
        return object_of(source, name, lead.end(), limit, "react")
    if name not in source.specs:
        return Found((), lead.start())
    cut = not text[lead.end() :].strip()
    reason = TRUNCATED if cut else "its Action Input is no JSON object"
    line_end = source.find("\n", lead.end())
    return Found((source.failed(reason, "react"),), line_end)


_FIRST = re.compile(r"\s*+([\w.\-/]{1,100})[ \t]*+\n\s*+(<\|content\|>\s*+)?+(?=\{)")
_BEHIND_FIRST = re.compile(r"\s*+(?:\Z|\n|>>>|<)|[ \t]*+\n")


def first_line(source: Source, position: int) -> Found:
    """A tool's name alone on the line that begins at a position, and an object under it.

    The name may be misspelt, unless the object holds a name of its own.
    """
    head = _FIRST.match(source.text, position)
    if head is None or not is_near(head.group(1), source.specs):
        return Found((), position)
    if head.group(1) not in source.specs and _CALL_SHAPED.match(source.text, head.end()):
        return Found((), position)
    kind = "functionary-v2" if head.group(2) else "glm-4"
    if position > 0:
        kind = "functionary-v3.2"
    found = headed_object(source, head, len(source.text), kind)
    found.start = head.start(1)
    if found.whole and not _BEHIND_FIRST.match(source.text, found.end):
        return Found((), position)
    return found


# Lines of a program. A call in it belongs to the program, which nobody asked for and which would
# have been run as a whole or not at all.

_FENCES = re.compile(r"^[ \t]*+```", re.MULTILINE)
_STATEMENT = re.compile(
    r"[ \t]*+(?:(?:import|from|def|class|for|while|if|elif|else|try|except|finally|with|return|"
    r"assert|raise|async|await|print|const|let|var|function)\b|"
    r"[\w.\[\]\"', ]{1,60}=(?!=)|[)}\]]|@\w|>>>|\.\.\.)"
)
_COMMENT_OR_BLANK = re.compile(r"[ \t]*+(?:#[^\n]*+)?+(?:\n|\Z)")


def _without_programs(text: str, reads: list[Found]) -> list[Found]:
    """The reads without the Python calls that are lines of a program."""
    python = [read for read in reads if read.calls[0].format == "python"]
    if not python:
        return reads
    fences = [match.start() for match in _FENCES.finditer(text)]
    blocks: dict[int, list[Found]] = {}
    programs: set[int] = set()
    for read in python:
        number = bisect_right(fences, read.start)
        if number % 2:
            blocks.setdefault(number, []).append(read)
        elif _is_in_program(text, read):
            programs.add(id(read))
    for number, inside in blocks.items():
        begin = text.find("\n", fences[number - 1])
        end = fences[number] if number < len(fences) else len(text)
        if begin >= 0 and _has_statements(text, begin + 1, end, inside):
            programs.update(map(id, inside))
    return [read for read in reads if id(read) not in programs]


def _has_statements(text: str, begin: int, end: int, reads: Sequence[Found]) -> bool:
    """Whether a block of code holds more than these calls, comments and blank lines."""
    position = begin
    for read in (*reads, None):
        stop = text.rfind("\n", 0, read.start) + 1 if read else end
        while position < stop:
            line = _COMMENT_OR_BLANK.match(text, position, end)
            if line is None or line.end() <= position:
                return True
            position = line.end()
        if read:
            after = text.find("\n", read.understood)
            position = len(text) if after < 0 else after + 1
    return False


def _is_in_program(text: str, read: Found) -> bool:
    """Whether the line before a call, or the line behind it, is a statement."""
    begin = text.rfind("\n", 0, read.start)
    before = text[max(text.rfind("\n", 0, max(begin, 0)) + 1, begin - 200) : max(begin, 0)]
    after = text.find("\n", read.understood)
    behind = text[after + 1 : after + 200].partition("\n")[0] if after >= 0 else ""
    return any(_STATEMENT.match(line) for line in (before, behind) if line.strip())
