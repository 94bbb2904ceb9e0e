"""Rephrases questions with a chat model, and rejects replies that omit a value of the query.

Questions from templates are exact but monotonous. A chat model makes the questions more natural,
but sometimes changes their meaning. A reply is accepted if it contains every value of the SQL that
the question contained, contains neither SQL nor the answer, and is not the question of another
task. A number may be written in digits, with commas or as a word, a date in digits or in words, and
a string in upper or lower case. No check ensures that the words between the values still have the
same meaning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date
from typing import Final

from sqlgym.database.database import open_database
from sqlgym.synthesis import english
from sqlgym.tasks.splits import plain_question
from sqlgym.tasks.task import SqlTask
from toolgym.errors import EnvironmentFault, ToolError

BATCH: Final = 64
"""Number of requests that are sent at the same time."""
MOST_CHARS: Final = 600
"""Maximum number of characters of a rephrased question."""
INSTRUCTIONS: Final = (
    "You rephrase questions about a database. Ask for exactly the same facts in the same order, in"
    " the words of a person who does not know the database. Keep every name, number and date as it"
    " is written. Do not mention SQL, tables or columns, and do not answer the question. Reply with"
    " the rephrased question only."
)
# A doubled quote ends one text and starts the next, so a missing quote costs one search.
LITERAL: Final = re.compile(r"(?:\"[^\"]*+\")++|((?:'[^']*+')++)|(?<![\w.])(\d++(?:\.\d++)?)(?!\w)")
"""A quoted name, a text (group 1, with its quotes), or a number (group 2), in SQL."""
_DIGITS: Final = 19  # digits of SQLite's integers; Python refuses to parse thousands of digits
_SQL: Final = re.compile(r"\bselect\b.*\bfrom\b", re.IGNORECASE | re.DOTALL)


def rephrase(
    tasks: Sequence[SqlTask],
    ask: Callable[[Sequence[tuple[str, str]]], Sequence[str]],
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[str | None], Counter[str]]:
    """Return a new question or None for each task, and the number of rejected replies by reason.

    Args:
        tasks: The tasks.
        ask: Function that sends requests, each a system message and a user message, and returns the
            replies.
        progress: Called with the number of finished tasks and the total.
    """
    taken = {plain_question(task.question) for task in tasks}
    questions: list[str | None] = []
    refused: Counter[str] = Counter()
    for start in range(0, len(tasks), BATCH):
        batch = tasks[start : start + BATCH]
        replies = ask(
            [(INSTRUCTIONS, f"Question: {one.question}\nSQL: {one.gold_sql}") for one in batch]
        )
        for task, reply in zip(batch, replies, strict=True):
            text = english.sentence(reply)
            code = refusal_of(task, text, taken)
            if code:
                refused[code] += 1
            else:
                taken.add(plain_question(text))
            questions.append(None if code else text)
        if progress is not None:
            progress(len(questions), len(tasks))
    return questions, refused


def refusal_of(task: SqlTask, text: str, taken: set[str]) -> str:
    """Return the code of the reason why text cannot be the question of a task, or "" if it can.

    * `no_text`: the text is empty, very long, or contains control characters.
    * `same_text`: the text is the question itself, or the question of another task.
    * `value_lost`: the text lacks a value of the query that the question contained.
    * `gold_told`: the text contains SQL, or an answer that the question did not contain.

    Args:
        task: The task. If a task has no SQL, the text must contain the numbers and quoted strings
            of the question.
        text: The text.
        taken: The questions of all tasks, as returned by `plain_question`.
    """
    if not text or len(text) > MOST_CHARS or not text.isprintable():
        return "no_text"
    if plain_question(text) in taken:
        return "same_text"
    sql = task.gold_sql if task.answerable else task.question
    if any(not _names(text, forms) for forms in question_values(task.question, sql)):
        return "value_lost"
    return "gold_told" if _SQL.search(text) or _tells_answer(task, text) else ""


def _tells_answer(task: SqlTask, text: str) -> bool:
    """Return whether a string contains all values of an answer that is not in the question."""
    try:
        rows = open_database(task.database).query(task.gold_sql).rows if task.answerable else ()
    except (ToolError, EnvironmentFault):
        return False  # a gold query that fails has no answer
    cells = [_number_forms(str(value)) for row in rows for value in row]
    fresh = [_names(text, forms) and not _names(task.question, forms) for forms in cells]
    return bool(fresh) and all(fresh)


def question_values(question: str, sql: str) -> Iterator[list[str]]:
    """Yield the accepted spellings of each literal that occurs in both the query and its question.

    >>> list(question_values("Which cost more than 5,000 euros?", "SELECT a FROM t WHERE b > 5000"))
    [['5000', '5,000']]
    """
    for match in LITERAL.finditer(sql):
        if match[1] is None and match[2] is None:
            continue  # a quoted name
        text = (match[1] or "")[1:-1].replace("''", "'")
        forms = _number_forms(match[2]) if match[2] else _text_forms(text)
        if _names(question, forms):
            yield forms


def _number_forms(text: str) -> list[str]:
    forms = [text]
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        number = int(text)
        forms += [f"{number:,}", english.number_word(number)]
    return list(dict.fromkeys(forms))


def _text_forms(text: str) -> list[str]:
    forms = [text.strip("%-").strip()]
    with suppress(ValueError):
        forms.append(english.written_date(date.fromisoformat(text[:10])))
    if month := re.fullmatch(r"(?:(\d{4})-)?(0[1-9]|1[0-2])-?%?", text):
        forms.append(f"{english.month_name(int(month[2]))} {month[1] or ''}".strip())
    return forms


def _names(text: str, forms: list[str]) -> bool:
    """Return whether a string contains one of these forms.

    Case is ignored unless the form is a single letter.

    Otherwise the article "a" would count as the A at the start of a name.
    """
    for form in filter(None, forms):
        searched, before, behind = text, r"[\w.]", r"\w|\.\d"
        if re.fullmatch(r"[\d.,]+", form):
            before, behind = r"[\w.,-]", r"[\w%]|[.,]\d"
        elif len(form) > 1:
            form, searched = form.casefold(), text.casefold()
        if re.search(rf"(?<!{before}){re.escape(form)}(?!{behind})", searched):
            return True
    return False
