"""The tags that hide text: of thinking, around results of tools, and before turns of other roles.

The table of call formats names them; `toolgym.calls.hidden` takes out what they hide. This module
and those that it imports need the standard library alone, and so does `toolgym.sanitize`, which
runs where nothing else is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolgym.calls.families import CONTROLS, FORMATS


@dataclass(frozen=True, slots=True)
class HidingTag:
    """A tag that hides what follows, or ends that.

    Attributes:
        closing: Whether it ends it.
        kind: What it opens is ended by a tag of the same kind.
        lone: Without an opening tag, it hides all before it.
    """

    closing: bool
    kind: str
    lone: bool


_THOUGHT: Final = "thought"
_TO_THE_END: Final = "all"  # what is never closed
_SYMMETRIC: Final = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<ifm|think_fast>", "</ifm|think_fast>"),
    ("<ifm|think_faster>", "</ifm|think_faster>"),
)
"""Tags of thinking besides those of the table."""
_SHARED: Final = {"<|end|>", "<|end_message|>"}
"""Tokens that end every message: they end a thought that was opened, and nothing else."""
_ROLES: Final = ("user", "tool", "system", "developer", "ipython", "environment", "functions.")
_BEFORE_ROLES: Final = (
    *("<|im_start|>", "<|start_header_id|>", "<|header_start|>", "<|start_of_role|>", "<|start|>"),
    *("<start_of_turn>", "<|turn>", "<seed:bos>", "]~b]"),
)
_TURNS: Final = (
    *(before + role for before in _BEFORE_ROLES for role in _ROLES),
    *("<|user|>", "<|system|>", "<|observation|>", "<|im_user|>", "<|im_system|>", "[INST]"),
    *("<|USER_TOKEN|>", "<|SYSTEM_TOKEN|>", "<\uff5cUser\uff5c>", "[SYSTEM_PROMPT]"),
)
"""What opens a turn that the model does not write: nothing behind it is the model's."""


def _tags() -> dict[str, HidingTag]:
    tags: dict[str, HidingTag] = {}
    pairs = [entry.thinking for entry in FORMATS if entry.thinking]
    for opening, close in (*_SYMMETRIC, *pairs):
        kind = close if close in _SHARED else _THOUGHT
        tags.setdefault(opening, HidingTag(False, kind, lone=False))
        tags.setdefault(close, HidingTag(True, kind, lone=close not in _SHARED))
    for opening, close in [entry.result for entry in FORMATS if entry.result]:
        if opening not in tags:
            tags[opening] = HidingTag(False, close or _TO_THE_END, lone=False)
            if close:
                tags.setdefault(close, HidingTag(True, close, lone=False))
    for opening in _TURNS:
        tags.setdefault(opening, HidingTag(False, _TO_THE_END, lone=False))
    return tags


_THOUGHTS: Final = {_THOUGHT, *_SHARED}
TAGS: Final = _tags()
"""The tags, by their texts."""
_OPENINGS: Final = tuple(
    text for text, tag in TAGS.items() if not tag.closing and tag.kind in _THOUGHTS
)
CONTROL_TEXTS: Final = tuple(dict.fromkeys((*CONTROLS, *TAGS)))
"""Every text of any format that is no ordinary text: marks, frames, ends of turns, thinking."""


def opened_thought(prompt: str) -> str:
    """The tag of thinking that a prompt ends with, which belongs to the turn; empty without one."""
    end = prompt.rstrip()[-64:]
    return next((text for text in _OPENINGS if end.endswith(text)), "")
