"""Verdicts and letters are read in the forms in which models write them."""

from hypothesis import given
from hypothesis import strategies as st

from aflowgym.operators.replies import letters, read_letter, read_verdict, without_thoughts

PASSES = [
    "Verdict: right",
    "verdict: RIGHT.",
    "**Verdict: right**",
    "**Verdict:** right",
    "## Verdict\nRight",
    "Verdict:\n\n**Correct.** Each step holds.",
    "- Verdict: right — all steps hold",
    "Final verdict: correct",
    "The verdict is: right",
    "The sum holds.\n\nVerdict: right",
    "<verdict>right</verdict>",
    "<review_result>True</review_result><feedback>fine</feedback>",
    '{"verdict": "right", "feedback": ""}',
    'Here it is:\n```json\n{"is_correct": true, "feedback": "fine"}\n```',
    "\\boxed{right}",
    "Right.\nAll of it follows.",
    "All of it follows.\nCorrect",
    "Verdict: wrong\nNo, I see it now.\nVerdict: right",
]
FAILS = [
    "Verdict: wrong",
    "Verdict: Wrong, the second step divides by 3.",
    "**Verdict:** *incorrect*",
    "Verdict: not right",
    "Verdict: not quite right, the unit is missing",
    "Verdict: partially correct",
    "Verdict: The solution is wrong because 2 + 2 = 4.",
    "Verdict - FAIL",
    "Verdict: the given solution is wrong",
    "<result>False</result>",
    '{"review_result": false, "feedback": "The unit is missing."}',
    '{"Verdict": "incorrect"}',
    "Wrong\nThe unit is missing.",
    "\\boxed{\\text{wrong}}",
    "Verdict: right\nWait, 3 * 4 is 12.\nVerdict: wrong",
]
UNREAD = [
    "It looks fine.",
    "Verdict: right or wrong",
    "Verdict: right/wrong",
    "Verdict: hard to say",
    "The right way is to add first, and the wrong one to multiply.",
    "Wrong\nThen again:\nRight",
    "I have no verdict. Correct me if I am wrong.",
    "",
    "{",
]


def test_a_verdict_that_passes_is_read():
    for reply in PASSES:
        assert read_verdict(reply)[0] is True, reply


def test_a_verdict_that_fails_is_read():
    for reply in FAILS:
        assert read_verdict(reply)[0] is False, reply


def test_what_says_both_or_neither_is_not_guessed():
    for reply in UNREAD:
        assert read_verdict(reply) is None, reply


def test_what_stands_around_a_verdict_is_its_feedback():
    for reply, feedback in [
        ("Verdict: wrong\nThe unit is missing.", "The unit is missing."),
        ("Verdict: wrong, since the unit is missing.", "since the unit is missing."),
        ("I checked.\nVerdict: wrong\nThe unit.", "I checked.\nThe unit."),
        ("<verdict>wrong</verdict>\n<feedback>x</feedback>", "<feedback>x</feedback>"),
        ("Wrong.\nThe unit.", "The unit."),
    ]:
        assert read_verdict(reply) == (False, feedback), reply


def test_a_letter_is_read_in_the_forms_that_models_write():
    for reply in [
        "B", "b", "(B)", "[B]", "**B**", "B.", "Answer: B", "answer: (b)", "The answer is B.",
        "B: it is the shortest", "B) 12", "**B** - since 12 is right", "Candidate B",
        "The best is candidate B.", "A majority gives 12, so I take candidate B.",
        "I choose B because it is right.", "\\boxed{B}", "\\boxed{\\text{B}}",
        "<answer>B</answer>", '{"answer": "B"}', '```json\n{"solution_letter": "B"}\n```',
        "Candidates A and C divide by 3, which is wrong.\nThe best one is B.",
        "Final answer: Option B", "Solution B",
    ]:  # fmt: skip
        assert read_letter(reply, 3) == 1, reply


def test_no_letter_or_several_are_not_guessed():
    for reply in [
        "", "A good answer would be 12.", "A or B", "Option A or option B",
        "Both A and C are right.", "D", "Z", "7",
        "None of them.", "I think so.", "It depends", "AB", "{}",
    ]:  # fmt: skip
        assert read_letter(reply, 3) is None, reply


def test_candidates_after_z_are_called_by_numbers():
    assert letters(28)[25:] == ("Z", "27", "28")
    assert read_letter("Answer: 28", 28) == 27
    assert read_letter("I take candidate I.", 28) == 8


def test_thoughts_are_not_said():
    for reply, said in [
        ("Answer: 4", "Answer: 4"),
        ("<think>\\boxed{3}</think>Answer: 4", "Answer: 4"),
        ("is it 3?\n</think>\n\nAnswer: 4", "\n\nAnswer: 4"),
        ("<think>a</think>x<THINK>b</THINK>y", "xy"),
        ("<reasoning>3</reasoning>4", "4"),
        (" <think>it may be", ""),
        ("a < b and b > c", "a < b and b > c"),
        ("The tag <think> opens a thought.", "The tag <think> opens a thought."),
    ]:
        assert without_thoughts(reply) == said, reply


@given(st.text(alphabet=st.sampled_from('Verdict: rightwrongABC {}"<>/\\\n*.'), max_size=120))
def test_any_text_can_be_looked_at(text):
    read_verdict(text)
    read_letter(text, 3)
    without_thoughts(text)
