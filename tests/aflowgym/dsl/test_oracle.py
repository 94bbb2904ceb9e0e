"""The parser against a second grammar, written apart from it for `lark`: same verdict, same tree.

The oracle knows the language with the slips that are read: spare arrows and a comma at the end of a
list. Its names are written out here.
"""

import functools
import random
import re

import pytest

from aflowgym.dsl.nodes import DONE, Cond, ListOf, Op, Repeat, Seq
from aflowgym.dsl.parsing import read
from aflowgym.operators.aflow import OPERATORS

lark = pytest.importorskip("lark", reason="needs the extra dev")

GRAMMAR = r"""
start: after_step | after_arrow DONE
seq: after_step
after_step: step | arrows step | after_arrow step
after_arrow: after_step ARROW | after_arrow ARROW
arrows: ARROW | arrows ARROW
step: loop | loop "?" branch -> when | loop "?" branch ":" branch -> when
branch: DONE | loop
loop: atom | atom TIMES INT
atom: name | name "(" STRING ")" | "(" seq ")" -> group | "[" items [","] "]" -> list
name: OP | SPACED
items: seq | items "," seq
ARROW: "->" | "-->" | "=>" | "→" | "⇒" | "|>" | ">>" | "⟶" | "⟹" | "➜" | "➔" | "➡"
DONE.9: /(?:done|end|stop|finish|pass)(?![A-Za-z0-9_]|-[A-Za-z0-9_])/i
SPACED.8: /(?:@)(?![A-Za-z0-9_]|-[A-Za-z0-9_])/i
OP: /[A-Za-z_][A-Za-z_0-9]*(?:-[A-Za-z0-9_]+)*/
TIMES: "*" | "×"
INT: /[0-9]+/
STRING: /"(?:[^"\\\n]|\\[^\n])*"/
COMMENT: /(?:#|\/\/)[^\n]*/
%ignore COMMENT
%ignore /\s+/
"""
WITH_BLANKS = [
    "answer generate", "answer gen", "chain of thought", "custom code generate", "code generate",
    "program of thought", "sc ensemble", "md ensemble", "med ensemble", "sc ensamble",
    "self consistency", "majority vote",
]  # fmt: skip
GRAMMAR = GRAMMAR.replace("@", "|".join(words.replace(" ", r"\s+") for words in WITH_BLANKS))

NAMES = {
    "Custom": "custom",
    "AnswerGenerate": "answergenerate cot answergen chainofthought",
    "CustomCodeGenerate": "customcodegenerate codegenerate",
    "Programmer": "programmer code python programofthought pot",
    "Test": "test",
    "Format": "format",
    "Review": "review critique check",
    "Revise": "revise refine fix",
    "ScEnsemble": "scensemble selfconsistency vote scensamble",
    "MdEnsemble": "mdensemble majorityvote medensemble",
}
CANONICAL = {spelling: name for name, known in NAMES.items() for spelling in known.split()}


@functools.cache
def grammar():
    return lark.Lark(GRAMMAR, parser="lalr", lexer="basic", maybe_placeholders=False)


class Unreadable(Exception):
    pass


def node(tree):
    """The tree of nodes that a tree of lark means."""
    below = tree.children
    match tree.data:
        case "start" | "seq" | "group" | "step" | "branch":
            return node(below[0]) if isinstance(below[0], lark.Tree) else DONE
        case "after_step" | "after_arrow":
            steps = list(steps_of(tree))
            return steps[0] if len(steps) == 1 else Seq(tuple(steps))
        case "loop":
            body = node(below[0])
            return body if len(below) == 1 else Repeat(body, min(max(int(below[2]), 1), 5))
        case "atom":
            written = re.sub(r"[\s_-]", "", str(below[0].children[0])).lower()
            if written not in CANONICAL:
                raise Unreadable(written)
            said = unescaped(str(below[1])[1:-1]) if len(below) > 1 else ""
            return Op(CANONICAL[written], said)
        case "list":
            return ListOf(tuple(branches_of(below[0])))
        case "when":
            check, fail, passed = (*map(node, below), DONE)[:3]
            return Cond(check, passed, fail) if fail == DONE else Cond(check, fail, passed)


def unescaped(text):
    said, chars = "", iter(text)
    for char in chars:
        after = next(chars) if char == "\\" else ""
        known = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
        said += known.get(after, char + after) if after else char
    return said


def steps_of(tree):
    for child in tree.children:
        if not isinstance(child, lark.Tree) or child.data == "arrows":
            continue
        if child.data in ("after_step", "after_arrow"):
            yield from steps_of(child)
        else:
            step = node(child)
            yield from step.steps if isinstance(step, Seq) else (step,)


def branches_of(items):
    *rest, last = items.children
    for more in rest:
        yield from branches_of(more)
    branch = node(last)
    outer = next(tree for tree in last.iter_subtrees_topdown() if tree.data in ("loop", "when"))
    if isinstance(branch, Repeat) and len(outer.children) > 1:
        yield from (branch.body,) * branch.times
    else:
        yield branch


def oracle(text):
    """The tree of a text, None if it is not in the language."""
    try:
        return node(grammar().parse(text))
    except (lark.UnexpectedInput, Unreadable):
        return None


WORDS = [
    *NAMES,
    *NAMES,
    "custom",
    "answer_generate",
    "Md-Ensemble",
    "Critique",
    "CoT",
    "vote",
    "answer generate",
    "Custom Code Generate",
    "Foo",
    "done",
    "END",
    "pass",
    "Customer",
    "sc  ensemble",
]
PIECES = [
    *WORDS, "->", "->", "=>", "→", "-->", ">>", "|>", "(", ")", "[", "]", ",", "?", ":", "*", "×",
    "3", "0", "12", '"think"', r'"a\"b\n"', '"', ";", "- >", "\n", "# note\n", "// x", "->->",
]  # fmt: skip


def rep(rng):
    return rng.choice(["", "", "", " * 2", "*3", " × 9"])


def atom(rng, deep):
    draw = rng.random()
    if deep <= 0 or draw < 0.6:
        word = rng.choice(list(NAMES) if rng.random() < 0.8 else WORDS)
        return word + rng.choice([""] * 12 + ['("think hard")', r'("a \"b\" \frac\\")'])
    if draw < 0.8:
        return f"({seq(rng, deep - 1)})"
    items = ", ".join(seq(rng, deep - 1) for _ in range(rng.randint(1, 3)))
    return f"[{items}{rng.choice(['', '', '', ','])}]"


def branch(rng, deep):
    if rng.random() < 0.4:
        return rng.choice(["done", "done", "stop"])
    return atom(rng, deep) + rep(rng)


def step(rng, deep):
    text = atom(rng, deep) + rep(rng)
    if rng.random() < 0.2:
        text += f" ? {branch(rng, deep)}"
        if rng.random() < 0.8:
            text += f" : {branch(rng, deep)}"
    return text


def seq(rng, deep=2):
    arrow = rng.choice([" -> "] * 6 + ["->", " => ", "→", " --> \n", " -> -> "])
    return arrow.join(step(rng, deep) for _ in range(rng.choice([1, 1, 2, 2, 3, 4])))


def mutated(rng, text):
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
        if not text:
            break
        at, to = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        draw = rng.random()
        if draw < 0.35:
            text = f"{text[:at]} {rng.choice(PIECES)} {text[at:]}"
        elif draw < 0.6:
            text = text[:at] + text[at + 1 :]
        elif draw < 0.75:
            text = text[:at]
        elif draw < 0.9:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        else:
            text = text[:at] + text[to:]
    return text


def disagreements(count, seed):
    rng = random.Random(seed)
    accepted, different = 0, []
    for _ in range(count):
        text = mutated(rng, seq(rng) + rng.choice([""] * 6 + [" -> done", " -> stop ->"]))
        ours, theirs = read(text, OPERATORS), oracle(text)
        accepted += theirs is not None
        if (ours.tree if ours.sound else None) != theirs:
            different.append(text)
    return accepted, different


def agrees(count, seed):
    accepted, different = disagreements(count, seed)
    assert not different, different[:5]
    assert 0.25 * count < accepted < 0.75 * count, "texts of both verdicts are needed"


def test_the_parser_agrees_with_an_independent_grammar():
    agrees(250, seed=1)


@pytest.mark.nightly
def test_the_parser_agrees_with_an_independent_grammar_on_30000_texts():
    agrees(30_000, seed=2)
