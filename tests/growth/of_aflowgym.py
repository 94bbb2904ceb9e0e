"""The readers of aflowgym: workflows, replies, answers, programs, tasks and records."""

from typing import Any

import aflowgym
from aflowgym.answers import answer, assertions, code, literals, squad, words
from aflowgym.answers.math import expression, math_reading
from aflowgym.answers.math.exact import Unreadable
from aflowgym.answers.math.mathematics import canonical, judge_math, read_gold
from aflowgym.backends import simulated
from aflowgym.dsl.tokens import tokenize, unquote
from aflowgym.dsl.unwrap import in_words, is_prose, unwrap
from aflowgym.envs import base as env_base
from aflowgym.envs import compose, players, recheck
from aflowgym.operators import replies
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.operator import key
from aflowgym.operators.replies import program_in
from aflowgym.sandbox import base, values
from aflowgym.statistics import read_log
from aflowgym.statistics.workflows import workflows_of
from aflowgym.tasks import code_prompts, layouts
from tests.growth.measuring import Reader

LONGEST_WORKFLOW = aflowgym.dsl.LONGEST_TEXT
DSL_MARKS = (
    "Custom", "Custom -> ", "ScEnsemble", "Review ? ", " : done", "[", "[Custom, ", "]",
    "(Custom", ")", " * 3", " * 10", ", ", "-> ", "→ ", "=> ", "x 3", "? ", ": ", '"', '("',
    "<workflow>", "</workflow>", "<workflow ", "<think>", "</think>", "```", "```dsl\n",
    "workflow:", "DSL: ", "**", "1. ", "- ", "done", "Costum -> ", "`",
    " then ", "3 x ", "{3}", "(3 times) ", "up to ", " else ", "？", "（", '"a": "b", ', "\\u0041",
    "'", "“", "$", "> ", "\\boxed{", "<b>", " + ", ". I use Review. ", "# Review\n", " | ",
)  # fmt: skip
DSL_STARTS = (
    "Custom",
    "Custom -> ",
    "Custom -> (Review -> ",
    "[Custom, ",
    'Custom("',
    "<workflow>",
    "<workflow ",
    "```\n",
    "workflow: ",
    "<think>",
    '{"workflow": "',
    "I take\nCustom -> Review ? Revise : done\n",
)
DSL_ENDS = (
    "] -> ScEnsemble",
    '")',
    ")",
    "</workflow>",
    "```",
    "\nCustom -> Review ? Revise : done",
    '"}',
    ".",
)
REPLY_MARKS = (
    "<think>", "</think>", "<thinking>", "Verdict: ", "verdict", "**Verdict:** ", "right",
    "wrong ", "correct", "not ", "<verdict>", "</verdict>", "{", '{"verdict": "', '"answer": "A"',
    "\\boxed{", "\\text{", "}", "Answer: ", "(A)", "A. ", "candidate ", "A", "B ", "I ", "####",
    "</answer>", "<answer>", "The answer is ", "```", "```python\n", "\n", "n't ",
)  # fmt: skip
REPLY_STARTS = (
    "Verdict: ",
    "Verdict: right\n",
    "**Verdict",
    "<verdict>",
    "<think>",
    '{"verdict": "',
    "\\boxed{",
    "Answer: ",
    "#### ",
    "A",
    "```python\n",
    "<answer>",
)
REPLY_ENDS = ("</think>", "}", '"}', "</verdict>", "</answer>", "\nAnswer: B", "```")
MATH_MARKS = (
    "1", "1,000", ",000", ".5", "1/2 ", "-", "+", "*", "^2", "^", "**", "!", "(", ")",
    "\\frac{1}{2}", "\\frac", "\\sqrt{", "\\sqrt[3]{", "{", "}", "\\boxed{", "\\text{", "\\left(",
    "\\pi ", "x = ", "f(x) = ", "%", "$", "km/h ", "and ", " or ", ", ", "per ", "x^2", "1e9",
    "0.", "\\overline{3}", "\\cdot ", "\\,", "cm^2 ", "1 000", "½", "²",
)  # fmt: skip
MATH_STARTS = ("1", "-", "x = ", "\\frac{1}{", "\\boxed{", "(", "\\sqrt{", "1 ", "0.", "$")
MATH_ENDS = ("}", ")", "%", " km", "1", "$", "/2")
CODE_MARKS = (
    "```", "```python\n", "~~~", "def solve():\n", "    return 1\n", "import os\n",
    "assert solve(1) == 2\n", "assert ", "solve(", "'''", '"""', "#", "\\\n", "(", "[", "{",
    "lambda: ", "not ", "-", "1 if 1 else ", "f'{", "@a\n", "if 1:\n ", "1,", ">>> solve(1)\n",
    "x.",
)  # fmt: skip
CODE_STARTS = (
    "```python\ndef solve():\n",
    "def solve():\n    return ",
    "```",
    "assert solve(",
    "x = ",
)
CODE_ENDS = ("\n```", ")", "\ndef solve():\n    return 1\n", " == 1")


def reply_reader(name: str, read: Any, *refuses: type[BaseException], **others: Any) -> Reader:
    """A reader of what a model replied."""
    return Reader(
        name, read, refuses, marks=REPLY_MARKS, before=REPLY_STARTS, after=REPLY_ENDS, **others
    )


def math_reader(name: str, read: Any, *refuses: type[BaseException], **others: Any) -> Reader:
    """A reader of an answer in mathematics."""
    return Reader(
        name, read, refuses, marks=MATH_MARKS, before=MATH_STARTS, after=MATH_ENDS, **others
    )


def code_reader(name: str, read: Any, *refuses: type[BaseException], **others: Any) -> Reader:
    """A reader of a program, or of a text that holds one."""
    return Reader(
        name, read, refuses, marks=CODE_MARKS, before=CODE_STARTS, after=CODE_ENDS, **others
    )


def _recorded(text: str) -> Any:
    turn = {
        "calls": [{"name": "run_workflow", "arguments": {"dsl": text}}],
        "errors": [],
        "observation": f"error[invalid_workflow] {text}",
        "action": text,
    }
    return list(workflows_of({"turns": [turn]}, OPERATORS))


def _task(question: str, **more: Any) -> Any:
    return layouts.task_of({"question": question, **more}, "one")


SUM = _task("How many eggs?", id="sum", kind="math", gold="12")
PLACE = _task("Where?", id="place", kind="qa", gold="Paris")
SOLVE = _task(
    "Write solve.",
    id="solve",
    kind="code",
    entry_point="solve",
    solution="def solve(a): return a + 1",
    tests=["assert solve(1) == 2"],
    public_tests=1,
)

READERS = [
    Reader(
        "aflowgym.parse",
        aflowgym.parse,
        limit=LONGEST_WORKFLOW,
        marks=DSL_MARKS,
        before=DSL_STARTS,
        after=DSL_ENDS,
    ),
    Reader(
        "aflowgym.parse for a kind",
        lambda text: aflowgym.parse(text, kind="math"),
        limit=LONGEST_WORKFLOW,
        marks=DSL_MARKS[:20],
        before=DSL_STARTS[:5],
        after=DSL_ENDS[:3],
    ),
    Reader(
        "aflowgym.dsl.tokens.tokenize",
        tokenize,
        marks=DSL_MARKS,
        before=('"', "Custom"),
        after=('"',),
    ),
    Reader("aflowgym.dsl.tokens.unquote", lambda text: unquote(f'"{text}"'), marks=('\\"', "\\n")),
    Reader(
        "aflowgym.dsl.unwrap",
        lambda text: (
            unwrap(text, OPERATORS)[0],
            in_words(text, OPERATORS),
            is_prose(text, OPERATORS),
        ),
        marks=DSL_MARKS,
        before=DSL_STARTS,
        after=DSL_ENDS,
    ),
    Reader(
        "aflowgym.operators.operator.key",
        key,
        marks=("Custom", "_"),
    ),
    Reader(
        "aflowgym.statistics.workflows.workflows_of",
        _recorded,
        marks=("E-", "E-LIST-", "Custom -> "),
        before=("E-A", "Custom -> "),
    ),
    Reader(
        "aflowgym.statistics.logs.read_log",
        lambda text: list(read_log(text.splitlines())),
        marks=("fallback=True, ops=", "1, chain=True, DSL=", "Step 1/2", "跳过", "更新", "\n"),
        before=('{"workflow": "', '"', "fallback=True, ops="),
        after=('"}', '"'),
    ),
    reply_reader(
        "aflowgym.operators.replies.without_thoughts",
        replies.without_thoughts,
    ),
    reply_reader(
        "aflowgym.operators.replies.read_verdict",
        replies.read_verdict,
    ),
    reply_reader(
        "aflowgym.operators.replies.read_letter", lambda text: replies.read_letter(text, 5)
    ),
    reply_reader("aflowgym.operators.replies.last_block", replies.last_block),
    reply_reader(
        "aflowgym.operators.replies.answer_key",
        lambda text: [replies.answer_key(task, text) for task in (SUM, PLACE, SOLVE)],
    ),
    reply_reader(
        "aflowgym.operators.replies.plain_text",
        replies.plain_text,
    ),
    reply_reader(
        "aflowgym.answers.answer.final_answer",
        answer.final_answer,
    ),
    reply_reader("aflowgym.answers.answer.statement_in", answer.statement_in),
    reply_reader("aflowgym.answers.answer.bare", answer.bare),
    reply_reader(
        "aflowgym.answers.squad.judge_qa",
        lambda text: squad.judge_qa(["The Beatles"], text),
    ),
    reply_reader(
        "aflowgym.answers.squad.judge_qa of a gold", lambda text: squad.judge_qa([text], "A")
    ),
    reply_reader(
        "aflowgym.answers.math.mathematics.judge_math of a reply",
        lambda text: judge_math("0.5", text),
    ),
    math_reader(
        "aflowgym.answers.math.mathematics.judge_math",
        lambda text: judge_math("0.5", text, "How many km per hour is it?"),
    ),
    math_reader(
        "aflowgym.answers.math.mathematics.judge_math of a gold", lambda t: judge_math(t, "0.5")
    ),
    math_reader(
        "aflowgym.answers.math.mathematics.judge_math for a question",
        lambda text: judge_math("0.5", "0.5 km", text),
    ),
    math_reader("aflowgym.answers.math.mathematics.canonical", canonical),
    math_reader("aflowgym.answers.math.mathematics.read_gold", read_gold, Unreadable),
    math_reader("aflowgym.answers.math.math_reading.read_math", math_reading.read_math, Unreadable),
    math_reader(
        "aflowgym.answers.math.expression.read_expression", expression.read_expression, Unreadable
    ),
    math_reader(
        "aflowgym.answers.math.expression.read_number",
        expression.read_number,
        Unreadable,
        ValueError,
    ),
    math_reader("aflowgym.answers.answer.plain", answer.plain),
    math_reader(
        "aflowgym.answers.words.read_unit", lambda text: words.read_unit(text, frozenset({"km"}))
    ),
    math_reader(
        "aflowgym.answers.words of a question",
        lambda text: (
            words.units_of(words.words_of(text)),
            words.asked_for(text),
            words.asks_percent(text),
        ),
    ),
    code_reader(
        "aflowgym.answers.code.extract_code",
        lambda text: code.extract_code(text, "solve"),
    ),
    code_reader("aflowgym.operators.replies.program_in", lambda text: program_in(text, "solve")),
    code_reader(
        "aflowgym.answers.literals.read_literal",
        literals.read_literal,
        ValueError,
    ),
    code_reader(
        "aflowgym.answers.assertions.read_tests",
        lambda text: assertions.read_tests(text, "solve"),
        ValueError,
    ),
    code_reader(
        "aflowgym.answers.code.passes",
        lambda text: code.passes(code.CodeTest("solve", "(1,)", "2"), code.Outcome(text)),
    ),
    code_reader(
        "aflowgym.tasks.layouts.task_of in HumanEval's layout",
        lambda text: _task(
            text, prompt=text, test=text, entry_point="solve", canonical_solution=text
        ),
        layouts.Refused,
    ),
    Reader(
        "aflowgym.tasks.code_prompts",
        lambda text: [
            code_prompts.examples(f"{text}\ndef solve(x):\n    '''{text}'''\n", "solve", ()),
            code_prompts.setup(f"{text}\ndef solve(x):\n    pass\n", "solve"),
        ],
        marks=(
            *(
                "solve(",
                "solve(1) == 2 ",
                ">>> solve(1)\n2\n",
                "other(1) => ",
            ),
            *("[", "'", '"', "1", "1+", "# ", "\\'"),
        ),
        before=("solve(", "solve(1) == [", ">>> solve('"),
        after=(") == 2\n", "] == 2", " the output should be 2.\n", "\nOutput: 2\n", "'"),
    ),
    code_reader(
        "aflowgym.tasks.layouts.task_of in MBPP's layout",
        lambda text: _task(text, text=text, code=text, test_list=[text]),
        layouts.Refused,
    ),
    Reader(
        "aflowgym.tasks.layouts.task_of in GSM8K's layout",
        lambda text: _task(text, answer=f"{text}#### 5"),
        (layouts.Refused,),
        marks=("<<", ">>", "<<1+1=2>>", "#### "),
        before=("<<",),
        after=(">>", "#### 4"),
    ),
    Reader(
        "aflowgym.envs.recheck, an answer",
        lambda text: [recheck._right(task, text) for task in (SUM, PLACE)],
        marks=("answer: ", "Answer :", "1,", ".5", "/2", "the "),
        before=("Answer: ", "1"),
        after=(".", "1"),
    ),
    code_reader(
        "aflowgym.envs.recheck, a program",
        lambda text: recheck._is_known_program(SOLVE, text),
    ),
    Reader(
        "aflowgym.envs.base.solution_in",
        env_base.solution_in,
        marks=("\nSolution:\n", "\n(3 calls left)", "\n("),
        before=("Solution:\n",),
        after=("\n(3 calls left)",),
    ),
    Reader("aflowgym.envs.base.solution_text", env_base.solution_text),
    Reader(
        "aflowgym.envs.players, the tests in an observation",
        players._FAILS_A_TEST.search,
        marks=("Public tests: 1 of 1 pass", "Public tests: ", "1"),
        before=("Public tests: 1", "Public tests: 1 of 1"),
    ),
    Reader(
        "aflowgym.envs.compose, a message",
        lambda text: compose.bare_workflow(OPERATORS, False, text[:LONGEST_WORKFLOW]),
        marks=DSL_MARKS,
        before=("Custom -> ", "```\nCustom\n```", "DSL: Custom\n", "<workflow>Custom</workflow>"),
    ),
    Reader(
        "aflowgym.backends.simulated, a program",
        simulated._RETURNS.match,
        marks=("def solve():\n    return ", "\n", " \n"),
        before=("def solve():\n    return ", "\n"),
        after=("\n",),
    ),
    Reader(
        "aflowgym.sandbox.values.outcome",
        lambda text: values.outcome(text.encode("utf-8", "surrogatepass")),
        marks=('["list", ', '{"value": ', '["dict", [', "1,", '"a",', '["bytes", "61"]'),
        before=('{"value": ', '{"value": ["list", ', '{"error": "', '["list", '),
        after=("]}", "}", '"}', "]"),
    ),
    Reader("aflowgym.sandbox.base.printable", base.printable),
]
