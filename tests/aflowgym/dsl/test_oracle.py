"""The parser against a second grammar, written apart from it for `lark`: same verdict, same tree.

The oracle knows the language with the slips that are read: spare arrows and a comma at the end of a
list. Its names are written out here.
"""

import functools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aflowgym.dsl.nodes import DONE, Cond, ListOf, Op, Repeat, Seq
from aflowgym.dsl.parsing import read
from aflowgym.operators.aflow import OPERATORS
from tests.aflowgym.dsl.test_properties import TREES

lark = pytest.importorskip("lark", reason="needs the extra dev")

GRAMMAR = r"""
start: after_step | after_arrow DONE
seq: after_step
after_step: step | arrows step | after_arrow step
after_arrow: after_step ARROW | after_arrow ARROW
arrows: ARROW | arrows ARROW
step: loop | loop "?" branch -> when | loop "?" branch ":" branch -> when
branch: DONE | loop
loop: atom | atom TIMES
atom: name | name "(" STRING ")" | "(" seq ")" -> group | "[" items [","] "]" -> list
name: OP | SPACED
items: seq | items "," seq
ARROW: "->" | "-->" | "=>" | "→" | "⇒" | "|>" | ">>" | "⟶" | "⟹" | "➜" | "➔" | "➡"
DONE.9: /(?:done|end|stop|finish|pass)(?![A-Za-z0-9_]|-[A-Za-z0-9_])/i
SPACED.8: /(?:@)(?![A-Za-z0-9_]|-[A-Za-z0-9_])/i
OP: /[A-Za-z_][A-Za-z_0-9]*(?:-[A-Za-z0-9_]+)*/
TIMES: /[*×]\s*[0-9]+/
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
            return body if len(below) == 1 else Repeat(body, min(max(int(below[1][1:]), 1), 5))
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


PIECES = [
    *NAMES, "custom", "Md-Ensemble", "CoT", "vote", "answer generate", "sc  ensemble", "Foo",
    "Customer", "done", "END", "->", "=>", "→", ">>", "|>", "(", ")", "[", "]", ",", "?", ":", "*",
    "×", "3", "0", '"think"', r'"a\"b\n"', '"', ";", "- >", "\n", "# note\n", "// x", "->->",
]  # fmt: skip
CHANGES = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 2), st.sampled_from(PIECES)), max_size=3
)


def agrees(text, changes):
    for place, dropped, piece in changes:
        at = int(place * len(text))
        text = f"{text[:at]} {piece} {text[at + dropped :]}"
    ours = read(text, OPERATORS)

    assert (ours.tree if ours.sound else None) == oracle(text), text


@settings(max_examples=60)
@given(TREES.map(str), CHANGES)
def test_the_parser_agrees_with_an_independent_grammar(text, changes):
    agrees(text, changes)


@pytest.mark.nightly
@settings(max_examples=20_000)
@given(TREES.map(str), CHANGES)
def test_the_parser_agrees_with_an_independent_grammar_on_20000_texts(text, changes):
    agrees(text, changes)
