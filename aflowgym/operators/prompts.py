"""The prompts of the ten operators, all in one place.

A prompt is paragraphs with fields. `{problem}` is the task with its passages, `{instruction}` what
the workflow says in quotes, `{form}` how an answer to such a task is to be written, and the others
are slots of the state. A paragraph whose fields are all empty is left out, so that a first step is
not told of previous work that does not exist.

Each asks for one form of reply, the plainest that a small model keeps to: a line `Answer: ...`, one
fenced block, a line `Verdict: ...`, a letter. What is made of a reply in another form is the work
of `aflowgym.execution.replies`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from string import Formatter
from typing import Final

from aflowgym.tasks.task import WorkflowTask

#: How an answer is written, by kind of task; `{function}` is the function that a program defines.
FORMS: Final[Mapping[str, str]] = {
    "math": "End with one line `Answer: ...` that holds the value alone, exact, in lowest terms.",
    "code": "Give the whole program in one ```python block. It defines `{function}` under exactly"
    " this name, imports what it needs, reads no input and prints nothing.",
    "qa": "End with one line `Answer: ...` that holds the answer alone, in as few words as possible"
    " and as the passages spell it.",
}

_PREVIOUS: Final = "Previous work:\n{solution}\n\nWhat was said of it:\n{feedback}"

#: What each operator asks.
PROMPTS: Final[Mapping[str, str]] = {
    "Custom": f"""Solve this problem.

{{instruction}}

Problem:
{{problem}}

{_PREVIOUS}

{{form}}""",
    "AnswerGenerate": f"""Solve this problem. Think step by step: write down what is given, then
each step and why it follows, and check the result against the question before you give it.

{{instruction}}

Problem:
{{problem}}

{_PREVIOUS}

{{form}}""",
    "CustomCodeGenerate": f"""Write the Python function that this problem asks for. Mind empty
input, single elements, repeated values and negative numbers.

{{instruction}}

Problem:
{{problem}}

{_PREVIOUS}

Give the whole program in one ```python block, with the function under the name that the problem
gives it.""",
    "Programmer": """Write a Python program for this problem, in one ```python block. If the problem
asks for a function, write that function, under its own name. Otherwise write `solve()`, without
arguments, which computes the answer and returns it as a number, a text or a list: it is run, and
what it returns is the answer. Use the standard library only; read no input and print nothing.

{instruction}

Problem:
{problem}

Analysis so far:
{solution}

Mind this:
{feedback}""",
    "Test": """This program fails one of its tests. Work out by hand what it does with that input,
say in one sentence why that is wrong, and write the whole program anew in one ```python block,
under the same name. Do not write the test's result into it: other inputs are tried as well.

{instruction}

Problem:
{problem}

Program:
{code}

Failure:
{feedback}""",
    "Format": """Reduce this solution to its final answer: the value, name or program alone, without
a sentence around it, and without changing it.

{instruction}

Problem:
{problem}

Solution:
{solution}""",
    "Review": """Check this solution. Work through it step by step against the problem. It is wrong
only if you can name the step that is, or a question that it does not answer.

{instruction}

Problem:
{problem}

Solution:
{solution}

Begin with one line, `Verdict: right` or `Verdict: wrong`. If it is wrong, then say where and why
in a few sentences; do not write a new solution.""",
    "Revise": """Write this solution anew so that it answers the review. Keep what is right, and do
not follow the review where it errs.

{instruction}

Problem:
{problem}

Solution:
{solution}

Review:
{feedback}

{form}""",
    "ScEnsemble": """Several people answered this problem, and each of these answers was given
equally often. Which is right? Reply with its letter alone.

{instruction}

Problem:
{problem}

{candidates}""",
    "MdEnsemble": """Which of these solutions to the problem is the best? Judge whether the result
is right before you judge how it is written. Reply with its letter alone.

{instruction}

Problem:
{problem}

{candidates}""",
}


def fill(template: str, task: WorkflowTask, fields: Mapping[str, str]) -> str:
    """A prompt with its fields filled in.

    Args:
        template: The prompt of an operator.
        fields: `instruction` and the slots, as they are shown; empty where there is nothing.

    >>> from aflowgym import load_tasks
    >>> task = load_tasks("bundled", "train")[0]
    >>> print(fill("Solve it.\\n\\nWork:\\n{solution}\\n\\n{form}", task, {"solution": ""}))
    Solve it.
    <BLANKLINE>
    End with one line `Answer: ...` that holds the value alone, exact, in lowest terms.
    """
    empty = tuple([name for name, value in fields.items() if not value])
    text = _without(template, empty, task.kind, task.entry_point)
    return text.format(problem=task.prompt, **fields)


@functools.lru_cache(maxsize=4096)
def _without(template: str, empty: tuple[str, ...], kind: str, function: str) -> str:
    """A prompt with its form filled in and without the paragraphs whose fields are all empty."""
    paragraphs = []
    for paragraph in template.split("\n\n"):
        names = fields_of(paragraph)
        if not names or not set(names) <= set(empty):
            paragraphs.append(paragraph)
    form = FORMS[kind].format(function=function).replace("{", "{{").replace("}", "}}")
    return "\n\n".join(paragraphs).replace("{form}", form)


@functools.lru_cache(maxsize=256)
def fields_of(template: str) -> tuple[str, ...]:
    """The names of the fields in a text."""
    return tuple(name for _, name, _, _ in Formatter().parse(template) if name)
