"""What goes into a process that runs a call, and how what it leaves becomes an `Outcome`.

The same for every kind of process, with walls or without: the call as bytes in, the form of
`values` out, and words for an end without a result.
"""

from __future__ import annotations

import marshal
import signal
from typing import TYPE_CHECKING, Final

from aflowgym.answers.code import Outcome
from aflowgym.sandbox import values
from toolgym.sanitize import escape_control_tokens

if TYPE_CHECKING:
    from aflowgym.execution.protocols import Job

_LONGEST_ERROR: Final = 600


def content_of(job: Job, call: tuple[str, str]) -> bytes:
    """What a child is told of a call. What a test expects is nowhere in it."""
    return encoded(job.program, job.function, *call, job.setup)


def encoded(program: str, function: str, arguments: str, keywords: str, setup: str = "") -> bytes:
    """A call as a child reads it."""
    call = {
        "program": program,
        "function": function,
        "arguments": arguments,
        "keywords": keywords,
        "setup": setup,
    }
    return marshal.dumps(call)  # for a child of the same Python


def left(content: bytes) -> Outcome:
    """What became of a call whose process ended by itself, from what it wrote."""
    if not content:
        return Outcome(error="exit: the program ended the process")
    value, error = values.outcome(content)
    return Outcome(value, printable(error))


def crashed(number: int) -> Outcome:
    """What became of a call whose process was ended by a signal."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = str(number)
    return Outcome(error=f"crash: {name}")


def printable(error: str) -> str:
    """An error's text, which a program may have written: one line, short, no control tokens."""
    line = "".join(c if c.isprintable() else " " for c in error[:_LONGEST_ERROR])
    return escape_control_tokens(line)
