"""What AFlow's first implementation of this language got wrong, and what happens here instead.

Each row was seen there: rejected though advertised, rewritten in silence, run on the wrong types,
or answered by a default workflow. Here a text either is what it says, or is refused with a
workflow that works.
"""

import pytest

from aflowgym import parse

RUN = [
    ("Custom -> (Review -> Revise) * 3", None, []),
    ("Custom -> Review ? Revise : done", None, []),
    ("Custom -> Review ? Revise : Format", None, []),
    (
        "Custom -> Review ? done : Revise",
        "Custom -> Review ? Revise : done",
        ["W-COND-POLARITY"],
    ),
    ("Programmer -> Review ? Revise : done -> Test ? Revise : done", None, []),
    ("[Custom, Programmer] -> ScEnsemble", None, []),
    ("Custom -> [Custom, Review] -> MdEnsemble", None, []),
    ("-> Custom", "Custom", ["W-ARROW-EXTRA"]),
    ("Custom -> -> Review", "Custom -> Review", ["W-ARROW-EXTRA"]),
    ("custom", "Custom", ["W-OP-NAME"]),
    ("Custom*3", "Custom * 3", ["W-LOOP-NOEXIT"]),
    ("Custom => Review", "Custom -> Review", ["W-ARROW-SPELLING"]),
    ("Custom -> Review;", "Custom -> Review", ["N-MARKUP"]),
    ("[Custom, Custom,] -> ScEnsemble", "[Custom, Custom] -> ScEnsemble", ["W-COMMA"]),
    ("[Custom -> Review, Custom] -> ScEnsemble", None, []),
    ("# comment\nCustom -> Review", "Custom -> Review", ["N-COMMENT"]),
    ("[Custom,\n Custom\n] -> ScEnsemble", "[Custom, Custom] -> ScEnsemble", []),
    ("1. Custom -> Review", "Custom -> Review", ["N-MARKUP"]),
]


def test_what_was_rejected_or_rewritten_runs_as_written():
    for text, canonical, said in RUN:
        parsed = parse(text)

        assert str(parsed.workflow) == (canonical or text)
        assert [found.code for found in parsed.diagnostics] == said, text


REFUSED = [
    ("(Review -> Revise) * 3", ["E-NEEDS-SOLUTION"], "Custom -> (Review -> Revise) * 3"),
    ("Review ? Revise : done", ["E-NEEDS-SOLUTION"], "Custom -> Review ? Revise : done"),
    ("Review ? Revise : Format", ["E-NEEDS-SOLUTION"], "Custom -> Review ? Revise : Format"),
    ("Custom ? Revise : done", ["E-COND-TYPE"], "Custom -> Review ? Revise : done"),
    ("[Custom, Review] -> MdEnsemble", ["E-NEEDS-SOLUTION"],
     "[Custom, Custom -> Review] -> MdEnsemble"),
    ("[Custom, Custom]", ["E-LIST-END"], "[Custom, Custom] -> ScEnsemble"),
    ("[Custom, Custom] -> Review", ["E-LIST"], "[Custom, Custom] -> ScEnsemble -> Review"),
    ("[Custom, Custom] -> Custom", ["E-LIST"], "[Custom, Custom] -> ScEnsemble -> Custom"),
    ("Custom -> ScEnsemble", ["E-NEEDS-LIST"], "[Custom, Custom, Custom] -> ScEnsemble"),
    ("Custom * 3 -> ScEnsemble", ["E-NEEDS-LIST", "W-LOOP-NOEXIT"],
     "[Custom, Custom, Custom] -> ScEnsemble"),
    ("Test", ["E-NEEDS-SOLUTION"], "CustomCodeGenerate -> Test"),
    ("Testing", ["E-OP-UNKNOWN"], "CustomCodeGenerate -> Test"),
    ("Customer -> Review", ["E-OP-UNKNOWN"], "Custom -> Review"),
]  # fmt: skip


def test_what_ran_on_the_wrong_types_is_refused_with_what_works():
    for text, said, works in REFUSED:
        parsed = parse(text)

        assert parsed.workflow is None, text
        assert [found.code for found in parsed.diagnostics] == said, text
        assert {found.suggestion for found in parsed.diagnostics} == {works}, text
        assert str(parse(works).workflow) == works


def test_text_without_a_workflow_is_no_default_workflow():
    for text in (
        "",
        "I cannot do this.",
        "### Step 1: Analyze the problem and review the code.",
        "I would test and revise it, then format the code.",
        "graph = Workflow()\nreturn await self.run(problem)",
        "Customers are Testing the Formatting",
    ):
        parsed = parse(text)

        assert parsed.workflow is None, text
        assert "E-NO-WORKFLOW" in [found.code for found in parsed.diagnostics], text


def test_no_part_of_a_faulty_workflow_is_run():
    for text in (
        "Custom -> Review -> Foo",
        "Foo -> Custom -> Review",
        "Custom -> Foo -> Review",
        "I choose Custom -> Review -> because it works.",
        "Custom -> [Custom, Foo] -> ScEnsemble",
        "Best: (Custom -> Review Foo) * 3 -> Format",
        "Custom -> done -> Review",
        "Use Custom -> Review Programmer -> Test",
        "Custom -> Review; Programmer -> Review",
        "1. Custom -> Review\n2. Custom -> Programmer",
        "Custom -> Review ->",
        "[Custom, Custom] -> (ScEnsemble",
        "<think>I take\nCustom -> Review",
        "<workflow>Custom -> Review",
        "```\nCustom -> Review",
        "### Step 1: Analyze the problem\nCustom -> Review",
    ):
        assert parse(text).workflow is None, text


STORY = [
    "Custom -> Programmer -> Review ? Revise : done",
    "Custom -> Programmer -> Review -> Revise",
    "Programmer",
    "Custom -> Programmer",
    "Custom -> Programmer -> Review",
    "Programmer -> Review ? Revise : done",
    "Programmer -> Review -> Revise",
    "Custom",
    "Programmer -> Review",
    "Custom -> Review ? Revise : done",
]


FORMS = {
    "bare": "{}",
    "fenced": "```\n{}\n```",
    "tagged": "<workflow>{}</workflow>",
    "labeled": "DSL: {}",
    "after thoughts": "<think>I compare both.</think>\n{}",
    "fenced in an answer": "I draft, then check:\n\n```dsl\n{}\n```\n\nThis costs little.",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [None, "math", "code", "qa"])
def test_the_ten_workflows_of_the_story_are_read_in_every_form(kind, form):
    for text in STORY:
        parsed = parse(FORMS[form].replace("{}", text), kind=kind)

        assert str(parsed.workflow) == text
        assert all(found.severity == "note" for found in parsed.diagnostics)
        assert bool(parsed.diagnostics) == (form != "bare")
