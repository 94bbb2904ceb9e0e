"""The operators of AFlow, each declared once.

A declaration says what an operator reads and writes in the typed state of a run, what it asks the
language model, and what that costs. The language resolves names and checks types by it, the
executor fills the prompt, the environments make tools of it, the documentation prints it. A new
operator is a new declaration: `OPERATORS.register(Operator(...))`.

Two operators differ from AFlow's on purpose: `ScEnsemble` counts equal answers and asks the model
only in a tie, and `Test` judges by running tests, so a call is spent on a repair only.
"""

from __future__ import annotations

from aflowgym.declarations import BIT, DONE_WORDS, KINDS, SLOTS, Operator, Registry, key

__all__ = ["BIT", "DONE_WORDS", "KINDS", "OPERATORS", "SLOTS", "Operator", "Registry", "key"]

_WORK = "\n\nPrevious work:\n{solution}\n{feedback}"

#: The ten operators of AFlow.
OPERATORS = Registry(
    (
        Operator(
            name="Custom",
            summary="Answer the problem directly.",
            prompt="{instruction}\n\n{problem}" + _WORK,
            writes=("solution",),
            reads=("solution", "feedback"),
            tokens=120,
        ),
        Operator(
            name="AnswerGenerate",
            summary="Think step by step, then give a short answer.",
            prompt="Think step by step, then give the final answer alone on the last line, after "
            "`Answer:`.\n{instruction}\n\n{problem}" + _WORK,
            writes=("solution",),
            reads=("solution", "feedback"),
            aliases=("CoT", "AnswerGen", "ChainOfThought"),
            tokens=240,
        ),
        Operator(
            name="CustomCodeGenerate",
            summary="Write the Python function that a code problem asks for.",
            prompt="Write the Python function that the problem asks for, in one fenced block and "
            "with the name it gives.\n{instruction}\n\n{problem}" + _WORK,
            writes=("solution", "code"),
            reads=("solution", "feedback"),
            aliases=("CodeGenerate",),
            tokens=200,
        ),
        Operator(
            name="Programmer",
            summary="Write a program that computes the answer, and run it; on a code task the "
            "program itself is the answer. One that fails to run is written anew, in three tries "
            "at most.",
            prompt="Write a Python function `solve()` without arguments that returns the answer, "
            "or, if the problem asks for a function, that function. One fenced block.\n"
            "{instruction}\n\n{problem}\n\nAnalysis:\n{solution}\n{feedback}",
            writes=("solution", "code"),
            reads=("solution", "feedback"),
            aliases=("Code", "Python", "ProgramOfThought", "PoT"),
            calls=(1, 3),
            tokens=220,
        ),
        Operator(
            name="Test",
            summary="Run the public tests of the problem on the program; while one fails, repair "
            "it, three times at most.",
            prompt="This program fails one of its tests. Say why, and write it anew in one fenced "
            "block.\n{instruction}\n\n{problem}\n\nProgram:\n{code}\n\nFailure:\n{feedback}",
            writes=("solution", "code", "verdict", "feedback"),
            needs=("solution", "code"),
            reads=("feedback",),
            kinds=("code",),
            calls=(0, 3),
            tokens=220,
        ),
        Operator(
            name="Format",
            summary="Reduce the solution to the bare answer, in as few words as possible.",
            prompt="Give the answer of this solution in as few words as possible, nothing else.\n"
            "{instruction}\n\n{problem}\n\nSolution:\n{solution}",
            writes=("solution",),
            needs=("solution",),
            keeps=("code",),
            tokens=20,
        ),
        Operator(
            name="Review",
            summary="Judge whether the solution is right, and say what is wrong with it; nothing "
            "is changed.",
            prompt="Is this solution right? Write `Verdict: right` or `Verdict: wrong`, then what "
            "is wrong with it.\n{instruction}\n\n{problem}\n\nSolution:\n{solution}",
            writes=("verdict", "feedback"),
            needs=("solution",),
            aliases=("Critique", "Check"),
            tokens=100,
        ),
        Operator(
            name="Revise",
            summary="Write the solution anew, so that it answers what the last check found wrong.",
            prompt="Write the solution anew so that it answers the review.\n{instruction}\n\n"
            "{problem}\n\nSolution:\n{solution}\n\nReview:\n{feedback}",
            writes=("solution",),
            needs=("solution",),
            wants=("feedback",),
            keeps=("code",),
            aliases=("Refine", "Fix"),
            tokens=180,
        ),
        Operator(
            name="ScEnsemble",
            summary="Take the answer that most candidates give; the model is asked only in a tie.",
            prompt="Which of these answers do most of the candidates give? Write its letter.\n"
            "{instruction}\n\n{problem}\n\n{candidates}",
            writes=("solution",),
            needs=("candidates",),
            keeps=("code",),
            aliases=("SelfConsistency", "Vote", "ScEnsamble"),
            calls=(0, 1),
            tokens=10,
        ),
        Operator(
            name="MdEnsemble",
            summary="Take the candidate that wins most of five votes of the model.",
            prompt="Which of these solutions is the best? Write its letter.\n{instruction}\n\n"
            "{problem}\n\n{candidates}",
            writes=("solution",),
            needs=("candidates",),
            keeps=("code",),
            aliases=("MajorityVote", "MedEnsemble"),
            calls=(5, 5),
            tokens=10,
        ),
    )
)
