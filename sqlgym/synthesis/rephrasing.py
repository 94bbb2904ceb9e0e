"""Questions reworded by a model of your own, kept only if the round trip verifies.

A model writes livelier questions than templates do, and sometimes other ones. So what it gives is
checked as far as a program can: see `Rephraser`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date

from sqlgym.database.database import Database
from sqlgym.synthesis import english
from sqlgym.synthesis.report import SynthesisReport, SynthTask
from sqlgym.tasks.task import SqlTask
from toolgym.errors import TaskRefused
from toolgym.tasks import TaskSet

EXPLORE = "sqlgym/Explore-v0"
MOST_CHARS = 600
"""Characters of a reworded question."""
REPHRASINGS_REFUSED: dict[str, str] = {
    "hook_failed": "The hook raised an error; the report has the first one.",
    "no_text": "The hook gave no text, a very long one, or one with control characters.",
    "same_text": "The question came back as it was, or is that of another task.",
    "value_lost": "A value of the query that the question told is not in the new text.",
    "gold_told": "The new text holds SQL, or an answer that the question did not hold.",
    "expert_failed": "The expert, who knows the gold, does not get the answer right in an episode.",
}
"""Code and meaning of every reason for which a rewording is not kept."""
# A quote that is doubled ends one text and begins the next, so an open one is looked for once.
LITERAL = re.compile(r"(?:\"[^\"]*+\")++|((?:'[^']*+')++)|(?<![\w.])(\d++(?:\.\d++)?)(?!\w)")
"""A quoted name, a text (group 1, with its quotes), or a number (group 2), in SQL."""
_DIGITS = 19  # of SQLite's integers; Python refuses to read thousands
_SELECT, _FROM = (re.compile(rf"\b{word}\b", re.IGNORECASE) for word in ("select", "from"))


class Rephraser:
    """Rewords questions by a hook and checks what comes back.

    Kept is a text that still names every value of the query that the question named (a number in
    digits, with commas or as a word; a date in digits or written out; a text as it stands, whatever
    its case), holds neither SQL nor the answer, is no other task's question, and whose task the
    expert solves in an episode of `sqlgym/Explore-v0`. That the words between the values still mean
    the same is not checked; that is the hook's part. Where a check fails the question stays as it
    was, and the report counts the reason.

    Args:
        hook: Gets question and SQL, gives the question in other words.
        report: Counts what was kept and what not.
        is_taken: Whether a question is already that of another task.
        is_solved: Whether the expert solves a task in an episode; see `solved_by_expert`.
    """

    def __init__(
        self,
        database: Database,
        hook: Callable[[str, str], str],
        report: SynthesisReport,
        is_taken: Callable[[str], bool],
        is_solved: Callable[[SqlTask], bool],
    ) -> None:
        self._database, self._hook, self._report = database, hook, report
        self._is_taken, self._is_solved = is_taken, is_solved

    def reword(self, task: SynthTask) -> SynthTask:
        """The task with its question reworded if that verifies, else as it is."""
        text = self._ask(task)
        reason = "hook_failed" if text is None else self._problem(task, text)
        if text is None or reason:
            self._report.rephrasings_refused[reason] += 1
            return task
        self._report.rephrased += 1
        return replace(task, question=text)

    def _ask(self, task: SynthTask) -> str | None:
        """What the hook gives, with single blanks; "" where it is no text, None if it fails."""
        try:
            text = self._hook(task.question, task.sql)
        except Exception as problem:  # noqa: BLE001 - a stranger's model must not end the search
            message = f"{type(problem).__name__}: {problem}"
            self._report.hook_error = self._report.hook_error or message
            return None
        return english.sentence(text) if isinstance(text, str) else ""

    def _problem(self, task: SynthTask, text: str) -> str:
        if not text or len(text) > MOST_CHARS or not text.isprintable():
            return "no_text"
        if self._is_taken(text):
            return "same_text"
        if any(not _tells(text, forms) for forms in question_values(task.question, task.sql)):
            return "value_lost"
        if _holds_sql(text) or self._tells_answer(task, text):
            return "gold_told"
        path = self._database.path
        one = SqlTask("reworded", text, item="db", gold_sql=task.sql, database=path)
        return "" if self._is_solved(one) else "expert_failed"

    def _tells_answer(self, task: SynthTask, text: str) -> bool:
        rows = self._database.query(task.sql).rows
        cells = [_number_forms(str(value)) for row in rows for value in row]
        fresh = [_tells(text, forms) and not _tells(task.question, forms) for forms in cells]
        return bool(fresh) and all(fresh)


def solved_by_expert(task: SqlTask) -> bool:
    """Whether the expert solves a task in an episode of `sqlgym/Explore-v0`.

    The environment is reached by its id, as trainers reach it: it can write tasks itself, so it
    stands above all that writes them.
    """
    from toolgym.policies import ExpertPolicy
    from toolgym.rollout import play

    tasks = TaskSet([task], name="a reworded question")
    try:
        return play(EXPLORE, ExpertPolicy(), task_id=task.id, dataset=tasks).correct
    except TaskRefused:
        return False


def _holds_sql(text: str) -> bool:
    """Whether there is a "from" behind a "select"; if behind any, then behind the first."""
    select = _SELECT.search(text)
    return select is not None and _FROM.search(text, select.end()) is not None


def question_values(question: str, sql: str) -> Iterator[list[str]]:
    """For each literal of a query that its question tells: the forms in which it may be told.

    >>> list(question_values("Which cost more than 5,000 euros?", "SELECT a FROM t WHERE b > 5000"))
    [['5000', '5,000']]
    """
    for match in LITERAL.finditer(sql):
        if match[1] is None and match[2] is None:
            continue  # a quoted name
        text = (match[1] or "")[1:-1].replace("''", "'")
        forms = _number_forms(match[2]) if match[2] else _text_forms(text)
        if _tells(question, forms):
            yield forms


def _number_forms(text: str) -> list[str]:
    forms = [text]
    if text.isdigit() and len(text) <= _DIGITS:
        number = int(text)
        forms += [f"{number:,}"] if number > 999 else []
        forms += [english.number_word(number)] if english.number_word(number) != text else []
    return forms


def _text_forms(text: str) -> list[str]:
    forms = [text.strip("%-").strip()]
    for form in dict.fromkeys((text, text[:10])):
        try:
            forms.append(english.written_date(date.fromisoformat(form)))
        except ValueError:
            continue
    if re.fullmatch(r"\d{4}-\d{2}-?%?", text):
        forms.append(f"{english.month_name(int(text[5:7]))} {text[:4]}")
    if re.fullmatch(r"0[1-9]|1[0-2]", text):
        forms.append(english.month_name(int(text)))
    return forms


def _tells(text: str, forms: list[str]) -> bool:
    """Whether a text has one of these forms in it, whatever its case; a single letter in its case.

    Otherwise the article would be taken for the A that a name starts with.
    """
    folded = text.casefold()
    return any(
        english.stands_alone(form, text, ".", decimals=True)
        if len(form) == 1
        else english.stands_alone(form.casefold(), folded, ".", decimals=True)
        for form in forms
        if form
    )
