"""The operators of AFlow, each declared once.

A declaration says what an operator reads and writes in the typed state of a run, what it asks the
language model, and what that costs. The language resolves names and checks types by it, the
executor fills the prompt (`aflowgym.operators.prompts`), the environments make tools of it. A new
operator is a new declaration: `OPERATORS.register(Operator(...))`.

Two operators differ from AFlow's on purpose: `ScEnsemble` counts equal answers and asks the model
only in a tie, and `Test` judges by running tests, so a call is spent on a repair only.
"""

from __future__ import annotations

from aflowgym.operators.declaration import BIT, DONE_WORDS, SLOTS, Operator, Registry, key
from aflowgym.operators.prompts import PROMPTS

__all__ = ["BIT", "DONE_WORDS", "OPERATORS", "SLOTS", "Operator", "Registry", "key"]

#: The ten operators of AFlow.
OPERATORS = Registry(
    (
        Operator(
            name="Custom",
            summary="Answer the problem directly.",
            prompt=PROMPTS["Custom"],
            writes=("solution",),
            reads=("solution", "feedback"),
            tokens=120,
        ),
        Operator(
            name="AnswerGenerate",
            summary="Think step by step, then give a short answer.",
            prompt=PROMPTS["AnswerGenerate"],
            writes=("solution",),
            reads=("solution", "feedback"),
            aliases=("CoT", "AnswerGen", "ChainOfThought"),
            tokens=240,
        ),
        Operator(
            name="CustomCodeGenerate",
            summary="Write the Python function that a code problem asks for.",
            prompt=PROMPTS["CustomCodeGenerate"],
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
            prompt=PROMPTS["Programmer"],
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
            prompt=PROMPTS["Test"],
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
            prompt=PROMPTS["Format"],
            writes=("solution",),
            needs=("solution",),
            keeps=("code",),
            tokens=20,
        ),
        Operator(
            name="Review",
            summary="Judge whether the solution is right, and say what is wrong with it; nothing "
            "is changed.",
            prompt=PROMPTS["Review"],
            writes=("verdict", "feedback"),
            needs=("solution",),
            aliases=("Critique", "Check"),
            tokens=100,
        ),
        Operator(
            name="Revise",
            summary="Write the solution anew, so that it answers what the last check found wrong.",
            prompt=PROMPTS["Revise"],
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
            prompt=PROMPTS["ScEnsemble"],
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
            prompt=PROMPTS["MdEnsemble"],
            writes=("solution",),
            needs=("candidates",),
            keeps=("code",),
            aliases=("MajorityVote", "MedEnsemble"),
            calls=(5, 5),
            tokens=10,
        ),
    )
)
