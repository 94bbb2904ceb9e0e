"""Which workflows fit their types, what they may cost, and where an error is."""

from aflowgym import parse
from aflowgym.dsl import Limits, calls
from aflowgym.operators.aflow import OPERATORS


def codes(text, **options):
    return [found.code for found in parse(text, **options).diagnostics]


def test_the_typed_slots_decide():
    for text, said in [
        ("Custom -> Test", ["E-NEEDS-CODE"]),
        ("CustomCodeGenerate -> Test", []),
        ("Programmer -> Review -> Revise -> Test", []),
        ("[Programmer, CustomCodeGenerate] -> ScEnsemble -> Test", []),
        ("[Programmer, Custom] -> ScEnsemble -> Test", ["E-NEEDS-CODE"]),
        ("Programmer -> Review ? Custom : done -> Test", ["E-NEEDS-CODE"]),
        ("[Custom, Custom] -> [Custom, Custom] -> ScEnsemble", ["E-LIST"]),
        ("Custom -> Review ? [Custom, Custom] : done", ["E-LIST"]),
        ("Custom -> Review ? ([Custom, Custom] -> MdEnsemble) : done", []),
        ("[Custom] -> MdEnsemble", ["W-LIST-ONE"]),
        ("[Custom, Custom] * 2 -> ScEnsemble", ["E-LIST", "W-LOOP-NOEXIT"]),
        ("Custom -> (Review ? Revise : done) ? Custom : done", ["E-COND-TYPE"]),
        ("Custom -> Review ? done : done", ["W-COND-EMPTY"]),
        ("((((Custom -> Review) * 2) * 2) * 2) * 3", ["E-BUDGET"]),
        ("(((((Custom -> Review) * 1) * 1) * 1) * 1) * 1", ["E-SIZE"]),
        ("[Custom * 5] -> ScEnsemble -> [Custom * 5] -> ScEnsemble -> Custom", ["E-SIZE"]),
    ]:
        assert codes(text) == said, text


def test_tests_are_for_code_tasks_only():
    text = "Programmer -> Test ? Revise : done"
    (error,) = parse(text, kind="math").errors

    assert (error.code, error.suggestion) == ("E-KIND", "Programmer -> Review ? Revise : done")
    assert codes(text, kind="code") == codes(text) == []


def test_the_bound_on_calls_is_that_of_the_declarations():
    for text, most in [
        ("Custom", 1),
        ("Programmer -> Test", 6),
        ("[Custom * 5] -> ScEnsemble", 6),
        ("[Custom] -> MdEnsemble", 6),
        ("[Custom, Custom] -> MdEnsemble", 7),
        ("Custom -> Review ? Revise : done", 3),
        ("Custom -> (Review -> Revise) * 3", 7),
        ("Custom -> (Revise -> Review) * 3", 7),
        ("Custom * 3", 3),
        ("Custom -> ((Custom -> Review) ? Revise : Format) * 2", 7),
    ]:
        assert calls(parse(text).workflow, OPERATORS) == most, text


def test_the_limits_are_the_callers():
    text = "Custom -> (Review -> Revise) * 5"

    assert parse(text, limits=Limits(calls=11)).workflow is not None
    refused = parse(text, limits=Limits(calls=10))
    assert [found.code for found in refused.diagnostics] == ["E-BUDGET"]
    assert refused.diagnostics[0].suggestion == "Custom -> (Review -> Revise) * 4"


def test_an_error_names_its_place():
    for text, said, start in [
        ("Custom Review", "E-EXPECTED", 7),
        ("Custom -> Review ? Revise : done * 3", "E-EXPECTED", 33),
        ("Custom -> Review ? Revise : Review ? Revise : done", "E-COND-NESTED", 35),
        ("Custom -> [] -> ScEnsemble", "E-EMPTY", 11),
        ("Custom -> () -> Review", "E-EMPTY", 11),
        ("done", "E-DONE-PLACE", 0),
        ("Custom -> Revewi", "E-OP-UNKNOWN", 10),
        ("Custom -> (Review -> Revise) * many", "E-EXPECTED", 29),
        ("Custom -> Review ?", "E-EXPECTED", 18),
        ("Custom -> Review ->", "E-EXPECTED", 17),
        ("Custom -> (Review -> Revise", "E-EXPECTED", 27),
        ("Custom; Review", "E-TWO-WORKFLOWS", 6),
        ("Custom & Review", "E-CHAR", 7),
        ("(" * 60 + "Custom" + ")" * 60, "E-SIZE", 40),
    ]:
        first = parse(text).errors[0]

        assert (first.code, first.span[0]) == (said, start), text
        assert parse(first.suggestion).workflow is not None, text


def test_places_in_wrapped_text_are_places_in_the_text():
    text = "Sure!\n\n```\n- Custom -> Revies\n```\nIt drafts and it reviews."
    (error,) = parse(text).errors

    assert text[slice(*error.span)] == error.found == "Revies"


def test_an_error_is_printed_with_its_place_and_a_workflow_that_works():
    (error,) = parse("[Custom, Custom] -> Review").errors

    assert str(error) == (
        "error[E-LIST] at 20: Review takes one solution, not a list. "
        "Expected ScEnsemble, MdEnsemble.\n"
        "This works: [Custom, Custom] -> ScEnsemble -> Review"
    )
