"""What excuses that another reader found a call which we did not, or another one.

A rule looks at the text and at both readings, the other's written again in the format; our word
alone excuses nothing. What `OPEN` names is no excuse, but known: there we are wrong. Whatever
neither names is a fault, and so is a text that is as it was written and not read as it was meant.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.call_readers.cases import (
    Case,
    beyond,
    changed,
    expression,
    has_conflict,
    is_same,
    is_text_of,
    json_inner,
    literal,
    plain,
    without_thoughts,
)
from benchmarks.call_readers.written import MARKS_IN_TEXT, SPECS
from toolgym.calls.repairs import MISSING_CLOSE_TAG
from toolgym.calls.source import RawCall

FAULT = "faults"


def reason(case: Case) -> str:
    """The rule, or the open difference, that a case needs, or `FAULT`; empty if it needs none."""
    misread = not case.written.mistake and not (is_meant(case) or has_own_mark(case))
    if not case.extra and not misread:
        return ""
    rules = AS_WRITTEN if misread else RULES | OPEN
    name = _rule(case, rules)
    if name == FAULT and len(case.extra) > 1 and not misread:
        names = [_rule(replace(case, theirs=[call]), rules) for call in case.extra]
        name = max(names, key=lambda name: (name == FAULT, name in OPEN))
    return name


def _rule(case: Case, rules: dict[str, Callable[[Case], bool]]) -> str:
    return next((name for name, rule in rules.items() if rule(case)), FAULT)


def is_settled(case: Case) -> bool:
    """Whether a case is neither a fault nor an open difference."""
    return reason(case) not in {FAULT, *OPEN}


NAME = re.compile(r"[\w.\-/:]+")


def is_meant(case: Case) -> bool:
    """We read exactly what the text was made from."""
    meant, found = case.written.meant, case.found
    return len(meant) == len(found) and not beyond(found, [(n, a) for n, a in meant])


def _stands_there(case: Case) -> bool:
    """Our calls, written again, stand in the text letter by letter; theirs do not."""
    ours = [(str(call.name), call.arguments) for call in case.found]
    if _is_there(case, ours):
        return not _is_there(case, case.theirs)
    return all(
        not _is_there(case, [call])
        and any(_is_there(case, [own]) for own in ours if own[0] == call[0])
        for call in case.extra
    )


def _is_there(case: Case, calls: Sequence[tuple[str, Any]]) -> bool:
    if not calls or not all(isinstance(arguments, dict) for _, arguments in calls):
        return False
    write = case.shape.write
    whole = write(calls) in case.text
    return whole or all(write([call]) in case.text for call in calls)


def _thought(case: Case) -> bool:
    """Without the thinking, nothing is left to excuse: a call in a thought is never run."""
    shown = {without_thoughts(case), without_thoughts(case, leading=True)} - {case.text}
    return any(is_settled(case.other(text)) for text in shown)


def _cut_off(case: Case) -> bool:
    """Their one extra call is the last, and the text ends before that call is closed."""
    if len(case.extra) > 1 or not _is_refused(case, "truncated_call") or not case.shape.marks:
        return False
    closing = case.shape.closing
    opened = max(case.text.rfind(mark) for mark in case.shape.marks if mark not in closing)
    return not closing or opened > case.text.rfind(closing[-1])


def _conflict(case: Case) -> bool:
    """One object has a key with two values, and we refuse it."""
    return _is_refused(case, "two different values") and has_conflict(case.text)


def _marks_left_over(case: Case) -> bool:
    """We refuse a call, and their reading, written again, has other marks than the text."""
    if not case.refused or not all(isinstance(arguments, dict) for _, arguments in case.theirs):
        return False
    again = case.shape.write([(str(name), arguments) for name, arguments in case.theirs])
    shown = without_thoughts(case)
    return any(shown.count(mark) != again.count(mark) for mark in case.shape.marks)


def has_own_mark(case: Case) -> bool:
    """We refuse a call that holds a mark of its format: a value could end in two places."""
    values = json.dumps([case.written.meant, case.theirs], ensure_ascii=False, default=repr)
    tags = MARKS_IN_TEXT if _is_refused(case, "where a value of it ends") else ()
    marks = map(json_inner, (*case.shape.marks, *tags))
    return bool(case.refused) and any(mark in values for mark in marks)


def _stray_text(case: Case) -> bool:
    """We refuse a call, and their reading, written again, is not in the text, blanks aside."""
    return bool(case.refused) and not _is_there_but_for_blanks(case)


def _is_there_but_for_blanks(case: Case) -> bool:
    if not all(isinstance(arguments, dict) for _, arguments in case.theirs):
        return False
    again = case.shape.write([(str(name), arguments) for name, arguments in case.theirs])
    return BLANK.sub("", again) in BLANK.sub("", case.text)


BLANK = re.compile(r"\s+")


def _damaged_mark(case: Case) -> bool:
    """The mark that a call begins with stands in the text with one letter wrong only."""
    mark = case.shape.marks[0] if case.shape.marks else ""
    damaged = [
        wrong
        for k in range(len(mark))
        for wrong in (
            re.escape(mark[:k] + mark[k + 1 :]),
            re.escape(mark[:k] + mark[k : k + 2][::-1] + mark[k + 2 :]),
            f"{re.escape(mark[:k])}.{re.escape(mark[k:])}",
        )
    ]
    shown = without_thoughts(case)
    return mark not in shown and any(re.search(wrong, shown) for wrong in damaged)


def _unknown(case: Case) -> bool:
    """A name that is no tool's, which we refuse or find without its arguments."""
    names = [call.name for call in case.found if not call.arguments]
    return all(
        name not in SPECS and (name in names or (case.refused and arguments == {}))
        for name, arguments in case.extra
    )


def _namespace(case: Case) -> bool:
    """They leave out what stands before the last point of a name."""
    return all(
        any(str(own.name).rpartition(".")[2] == name and "." in str(own.name) for own in case.found)
        for name, _ in case.extra
    )


def _nameless(case: Case) -> bool:
    """What they found has no name, or a name or key that no tool could have."""
    strange = [
        not all(NAME.fullmatch(str(word or "?")) for word in (name, *arguments))
        for name, arguments in case.extra
        if isinstance(arguments, dict)
    ]
    return any(strange) and (all(strange) or bool(case.refused))


def _no_object(case: Case) -> bool:
    """They hand on arguments that are no JSON object."""
    return all(not isinstance(arguments, dict) for _, arguments in case.extra)


def _fewer_arguments(case: Case) -> bool:
    """Each call that they found is one of ours, of which they lost arguments."""
    return all(
        any(
            call.name == name
            and isinstance(call.arguments, dict)
            and isinstance(arguments, dict)
            and len(call.arguments) > len(arguments)
            and all(is_text_of(call.arguments.get(key), arguments[key]) for key in arguments)
            for call in case.found
        )
        for name, arguments in case.extra
    )


def _stripped(case: Case) -> bool:
    """Bare values differ in the blanks around them only, and they kept fewer of them."""
    return _pairs(case, lambda own, their: isinstance(their, str) and own.strip() == their.strip())


def _retyped(case: Case) -> bool:
    """Bare text comes back as the text of another value: 3.10 as 3.1, `maybe` as false."""

    def like(own: str, their: Any) -> bool:
        if their is None:
            return own.strip().lower() not in ("null", "none")
        if their == {}:
            return not own.strip()
        if their is False:
            return own.strip().lower() not in ("true", "false")
        texts = []
        for read in (literal, json.loads):
            try:
                texts.append(str(read(own.strip())))
            except (ValueError, SyntaxError):
                continue
        return their in texts

    return _pairs(case, like)


def _left_as_text(case: Case) -> bool:
    """They leave a value as the text of what we read: null, or a number with an exponent."""

    def like(own: Any, their: Any) -> bool:
        if isinstance(own, dict) and isinstance(their, dict):
            return own.keys() == their.keys() and all(like(own[key], their[key]) for key in own)
        if isinstance(own, list) and isinstance(their, list):
            return len(own) == len(their) and all(map(like, own, their))
        return own == their or (isinstance(their, str) and is_text_of(their, own))

    return all(
        any(own.name == name and like(own.arguments, arguments) for own in case.found)
        for name, arguments in case.extra
    )


def _pairs(case: Case, is_like: Callable[[str, Any], bool]) -> bool:
    """Each call that they found is one of ours in bare text, if values may differ like that."""

    def like(own: RawCall, other: tuple[str, Any]) -> bool:
        name, arguments = other
        if own.name != name or not own.textual or not isinstance(arguments, dict):
            return False
        return own.arguments.keys() == arguments.keys() and all(
            is_text_of(value, arguments[key]) or is_like(value, arguments[key])
            for key, value in own.arguments.items()
        )

    return all(any(like(own, other) for own in case.found) for other in case.extra)


def _cut_value(case: Case) -> bool:
    """A value of ours holds a mark of the format, at which theirs ends."""
    ours = json.dumps([call.arguments for call in case.found], ensure_ascii=False, default=repr)
    theirs = json.dumps([entry[1] for entry in case.theirs], ensure_ascii=False)
    marks = map(json_inner, case.shape.marks)
    return any(ours.count(mark) > theirs.count(mark) for mark in marks)


def _ran_over(case: Case) -> bool:
    """A value of theirs holds a mark of the format, at which ours ends."""
    ours = json.dumps([call.arguments for call in case.found], ensure_ascii=False, default=repr)
    theirs = json.dumps([entry[1] for entry in case.theirs], ensure_ascii=False)
    marks = map(json_inner, case.shape.marks)
    return not case.refused and any(theirs.count(mark) > ours.count(mark) for mark in marks)


def _no_whole_list(case: Case) -> bool:
    """Calls in a Python list that holds something else as well: it is read whole or not at all."""
    begin, end = case.text.find("["), case.text.rfind("]")
    if not case.shape.python or not 0 <= begin < end:
        return False
    try:
        tree = expression(case.text[begin : end + 1])
    except (SyntaxError, ValueError):
        return True
    entries = tree.elts if isinstance(tree, ast.List) else []
    strange = any(getattr(entry, "args", True) for entry in entries)
    return strange or len(entries) != len(case.theirs)


def _in_prose(case: Case) -> bool:
    """A call without marks that has no line of its own, or names no tool."""
    if case.shape.marks or not case.shape.python:
        return False
    unknown = any(name not in SPECS for name, _ in case.theirs)
    begin, close = case.text.find("["), case.text.rfind("]")
    before = case.text[:begin].rpartition("\n")[2]
    behind = case.text[close + 1 :].removesuffix(case.shape.end).partition("\n")[0]
    return unknown or bool((before + behind).strip())


def _foreign_mark(case: Case) -> bool:
    """We refuse what stands behind a mark of another format, in front of the first of this one."""
    own = (case.shape.marks or ("[",))[0]
    first = case.text.find(own) % (len(case.text) + 1)
    foreign = [mark for mark in STARTS if mark not in case.shape.marks]
    return bool(case.refused) and any(mark in case.text[:first] for mark in foreign)


STARTS = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>")


def _is_refused(case: Case, why: str) -> bool:
    return any(why in reason for reason in case.refused)


RULES: dict[str, Callable[[Case], bool]] = {
    "ours was meant": is_meant,
    "ours stands there": _stands_there,
    "in a thought": _thought,
    "cut off": _cut_off,
    "conflicting keys": _conflict,
    "own mark in a value": has_own_mark,
    "marks left over": _marks_left_over,
    "stray text": _stray_text,
    "damaged mark": _damaged_mark,
    "unknown tool": _unknown,
    "they leave a namespace out": _namespace,
    "no name": _nameless,
    "arguments are no object": _no_object,
    "they lack arguments": _fewer_arguments,
    "they strip blanks": _stripped,
    "they retype a text": _retyped,
    "they leave a value as text": _left_as_text,
    "they cut a value at a mark": _cut_value,
    "their value runs over a mark": _ran_over,
    "no whole list": _no_whole_list,
    "prose in its line": _in_prose,
    "behind a foreign mark": _foreign_mark,
}


# Differences in which we are wrong, or silent, as of today. They are counted apart and fail
# nothing; one that is met no more has to be taken out (`tools/compare_calls.py` tells
# which).


def _line_break_lost(case: Case) -> bool:
    """Nothing is left once a line break at either end of each value of theirs is lost as well."""
    if not any(call.textual for call in case.found):
        return False
    other = case.other(case.text, _less)
    same = other.theirs == case.reader(case.text) and other.written == case.written
    return not same and is_settled(other)


def _less(value: Any) -> Any:
    return value.removeprefix("\n").removesuffix("\n") if isinstance(value, str) else value


def _tags_stepped_over(case: Case) -> bool:
    """A parameter whose tag is damaged is stepped over with all behind it, and the call stays."""
    emptied = [call.name for call in case.found if call.textual and not call.arguments]
    return bool(emptied) and all(name in emptied for name, _ in case.extra)


def _damaged_tag_in_value(case: Case) -> bool:
    """A damaged closing tag is taken for the end of the last value."""
    texts = [
        str(value)
        for call in case.found
        if call.textual and MISSING_CLOSE_TAG in call.repairs
        for value in call.arguments.values()
    ]
    return any(re.search(r"[</][\w<>/]*>?\s*\Z", text) for text in texts)


def _lost_behind_mended(case: Case) -> bool:
    """An object that was guessed at takes the call behind it along."""
    return any(call.repairs and not call.whole for call in case.found)


def _doubled_brace(case: Case) -> bool:
    """Without a tag, an object in one brace too many is no call, and nobody is told."""
    return not case.ours and "{{" in case.text


def _behind_a_mark(case: Case) -> bool:
    """Behind a mark of another format that stands in prose, no call is found, or a wrong one.

    Nobody is told, and a line of one of the values may be taken for a call.
    """
    own = case.shape.marks or ("[", "{")
    first = next((at for mark in own if (at := case.text.find(mark)) >= 0), len(case.text))
    twice = [mark for mark in STARTS if mark == own[0] and case.text.count(mark) > 1]
    other = [mark for mark in STARTS if mark not in own and mark in case.text]
    before = [mark for mark in STARTS if mark in case.text[:first]]
    return not case.refused and bool(twice or before or (other and not case.ours))


def _lost_behind_error(case: Case) -> bool:
    """Calls that were meant are lost behind one that is refused, as its end is looked for there."""
    meant = [plain(call) for call in case.written.meant]
    return bool(case.refused) and all(plain(call) in meant for call in case.extra)


def _blanks(case: Case) -> bool:
    """What they read stands in the text but for blanks at its marks and names."""
    return _is_there_but_for_blanks(case) and not _is_there(case, case.theirs)


def _strange_key(case: Case) -> bool:
    """A key inside of an argument is no word, in a notation that puts no quotes around keys."""

    def keys(value: Any) -> list[str]:
        inner = value.values() if isinstance(value, dict) else value
        here = list(value) if isinstance(value, dict) else []
        return (
            here + [key for entry in inner for key in keys(entry)]
            if (isinstance(value, dict | list))
            else []
        )

    strange = [key for _, value in case.written.meant for key in keys(value) if " " in key]
    return bool(case.refused) and any(f"{key}:" in case.text for key in strange)


def _thought_in_value(case: Case) -> bool:
    """A whole call is refused because a value of it holds a tag of thinking."""
    return _is_refused(case, "there is thinking inside of it") and "think>" in json.dumps(
        [arguments for _, arguments in case.written.meant]
    )


def _silent(case: Case) -> bool:
    """The text is damaged, so that a call is not found and nobody is told; no other is found."""
    return any(map(_says_nothing, (case, case.other(without_thoughts(case)))))


def _says_nothing(case: Case) -> bool:
    calls = [*case.theirs, *case.written.meant]
    calls += [(name, changed(arguments, _less)) for name, arguments in calls]
    known = all(any(is_same(own, call) for call in calls) for own in case.found)
    return known and not case.refused and not _is_there(case, case.theirs)


AS_WRITTEN = {
    "line break of a value lost": _line_break_lost,
    "key that is no word": _strange_key,
    "tag of thinking in a value": _thought_in_value,
}
"""Those of `OPEN` in which not even a text as it was written is read as it was meant."""


OPEN: dict[str, Callable[[Case], bool]] = {
    **AS_WRITTEN,
    "damaged tag stepped over": _tags_stepped_over,
    "damaged tag in a value": _damaged_tag_in_value,
    "call behind a guess lost": _lost_behind_mended,
    "silent behind a doubled brace": _doubled_brace,
    "lost behind a mark in prose": _behind_a_mark,
    "blanks at marks and names": _blanks,
    "call behind an error lost": _lost_behind_error,
    "silent on a damaged text": _silent,
}
