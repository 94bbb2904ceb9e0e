"""Loading workflow tasks: layouts of data sets, and entries that are refused with their place."""

import json
import os

import pytest

from aflowgym.answers import CodeTest
from aflowgym.tasks.loading import load_tasks
from toolgym.errors import ConfigurationError

GSM8K = {"question": "How many?", "answer": "He has 3 + 4 = <<3+4=7>>7 apples.\n#### 1,007"}
HUMANEVAL = {
    "task_id": "HumanEval/900",
    "prompt": 'def inc(n):\n    """Add 1.\n    >>> inc(1)\n    2\n    >>> inc(x)\n    3\n    """\n',
    "entry_point": "inc",
    "canonical_solution": "    return n + 1\n",
    "test": "def check(candidate):\n assert candidate(1) == 2\n assert candidate(-1) == 0\n",
}
MBPP = {
    "task_id": 901, "text": "Write a doubling function.", "code": "def twice(n):\n    return 2 * n",
    "test_list": ["assert twice(2) == 4", "assert twice(0) == 0"], "test_setup_code": "",
    "challenge_test_list": ["assert twice(-3) == -6"],
}  # fmt: skip
HOTPOTQA = {
    "_id": "5a8b", "question": "Which?", "answer": "Paris", "type": "bridge", "level": "hard",
    "context": [["France", ["Its capital is Paris.", " It is large."]], ["Spain", ["Madrid."]]],
}  # fmt: skip
OWN = {"kind": "math", "question": "1 + 1?", "gold": "2", "hardness": "easy"}


def written(tmp_path, rows, name="set.jsonl"):
    path = tmp_path / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_gsm8k_is_read():
    [task] = load_tasks([GSM8K], "test")

    assert (task.id, task.item, task.kind, task.gold) == ("test-0", "test-0", "math", "1,007")
    assert task.solution == "He has 3 + 4 = 7 apples."


def test_code_is_read_with_public_and_hidden_tests():
    [humaneval] = load_tasks([HUMANEVAL], "test")
    [mbpp] = load_tasks([MBPP], "test")

    assert humaneval.tests == (CodeTest("inc", "(1,)", "2"), CodeTest("inc", "(-1,)", "0"))
    assert humaneval.public_tests == (CodeTest("inc", "(1,)", "2"),)
    assert humaneval.solution.endswith("return n + 1\n")
    assert (mbpp.id, mbpp.entry_point, len(mbpp.tests)) == ("901", "twice", 3)
    assert mbpp.question.endswith("pass this test: assert twice(2) == 4")


@pytest.mark.parametrize(
    "context",
    [
        HOTPOTQA["context"],
        {
            "title": ["France", "Spain"],
            "sentences": [["Its capital is Paris.", " It is large."], ["Madrid."]],
        },
    ],
)
def test_hotpotqa_is_read_in_both_forms_of_its_context(context):
    [task] = load_tasks([{**HOTPOTQA, "context": context}], "test")

    assert task.context == ("France: Its capital is Paris. It is large.", "Spain: Madrid.")
    assert (task.gold, task.extra["level"]) == ("Paris", "hard")


CHECK = "def check(candidate):\n    assert candidate(2) == 4\n"
MATH = {
    "problem": "What is 1/4 + 1/4?", "level": "Level 1", "type": "Algebra",
    "solution": "It is $\\frac{2}{4} = \\boxed{\\frac{1}{2}}$.",
}  # fmt: skip
QA = {"question": "Who won?", "context": "Ann won, as always."}
MIXED = {"problem": "Who won?", "problem_type": "qa", "ground_truth": "Ann"}
ROWS = [
    (MATH, "math", "\\frac{1}{2}"),
    ({**MATH, "answer": "1/2", "unique_id": "test/algebra/1.json"}, "math", "1/2"),
    ({"passage": "Ann won 3 times.", "question": "How often?", "query_id": "q",
      "answers_spans": {"spans": ["3", "3"], "types": ["number", "number"]}}, "qa", "3"),
    ({"context": "Passage: Ann won.\nQuestion: Who?", "ref_text": "Ann|Ann B.", "id": 4},
     "qa", "Ann"),
    ({**QA, "id": "s", "answers": {"text": ["Ann", "Ann", "ann"], "answer_start": [0, 0, 0]}},
     "qa", "Ann"),
    (MIXED, "qa", "Ann"),
    ({**MIXED, "problem_type": "math", "ground_truth": "It is 2.\n#### 2"}, "math", "2"),
    ({**MIXED, "problem_type": "math", "ground_truth": "So \\boxed{3}."}, "math", "3"),
    ({**MIXED, "problem_type": "math", "ground_truth": "18"}, "math", "18"),
]  # fmt: skip


def test_rows_of_math_drop_squad_and_mixed_sets_are_read():
    for row, kind, gold in ROWS:
        [task] = load_tasks([row], "test")

        assert (task.kind, task.gold) == (kind, gold), row
    assert load_tasks([ROWS[3][0]], "test")[0].aliases == ("Ann B.",)
    assert load_tasks([ROWS[1][0]], "test").ids == ["test/algebra/1.json"]
    assert load_tasks([MATH], "test")[0].extra == {"level": "Level 1", "type": "Algebra"}


def test_rows_of_code_are_read_with_a_body_or_a_whole_program_as_solution():
    body, whole = "    return 2 * n\n", "def twice(n):\n    return 2 * n\n"
    prompt = 'def twice(n):\n    """Double it."""\n'
    code = {"prompt": prompt, "entry_point": "twice", "test": CHECK}
    mixed = {"problem": prompt, "problem_type": "code", "ground_truth": body}
    for row in [
        {**code, "canonical_solution": body},
        {**code, "code": whole, "test": "def check():\n    assert twice(2) == 4\n", "task_id": 3},
        {**mixed, "entry_point": "twice", "test": CHECK},
        {**mixed, "ground_truth": whole, "test_list": ["assert twice(2) == 4"]},
    ]:
        [task] = load_tasks([row], "test")

        assert task.tests == (CodeTest("twice", "(2,)", "4"),)
        assert task.solution in (whole, prompt + body)


def test_a_row_of_no_layout_says_which_keys_the_nearest_layouts_need():
    for row, reason in [
        ({"question": "?", "context": []}, "HotpotQA needs 'answer'; SQuAD needs 'answers'"),
        ({"problem": "?"}, "MATH needs 'solution'"),
        ({"prompt": "?", "entry_point": "f"}, "HumanEval needs 'test'"),
        ({"text": "?"}, "it has the keys of no layout"),
    ]:
        with pytest.raises(ConfigurationError, match=reason):
            load_tasks([row], "test")


BROKEN = [
    ("{", "not_json"),
    ({"text": "?"}, "unknown_layout"),
    ({"kind": "math", "question": "?"}, "missing_key"),
    ({"kind": "song", "question": "?", "gold": "2"}, "bad_value"),
    ({**OWN, "gold": "\\log 7"}, "unreadable_gold"),
    ({**GSM8K, "answer": "7"}, "bad_value"),
    ({**MBPP, "test_list": ["assert twice(x) == 4"]}, "unsupported_test"),
    ({**MBPP, "test_setup_code": "root = Node(1)"}, "unsupported_test"),
    ({**HOTPOTQA, "context": 3}, "bad_value"),
    ({**QA, "answers": {"text": [], "answer_start": []}}, "unanswerable"),
    ({"passage": "?", "question": "?", "answers_spans": {"spans": ["a b", "c"]}}, "bad_value"),
    ({**MIXED, "problem_type": "mixed"}, "bad_value"),
    ({**MATH, "solution": "It is 1/2."}, "bad_value"),
    ({**OWN, "id": "good"}, "duplicate_id"),
]


@pytest.mark.parametrize(("row", "code"), BROKEN)
def test_a_broken_entry_is_refused_with_file_and_line_and_the_rest_loads(row, code, tmp_path):
    path = written(tmp_path, [{**OWN, "id": "good"}, row, GSM8K])

    tasks = load_tasks(path, "train")

    assert tasks.ids == ["good", "set-3"]
    [refusal] = tasks.refused.values()
    assert refusal.code == code
    assert refusal.reason.startswith(f"{path}, line 2: ")


def test_a_folder_is_read_by_split_and_anew_after_a_change(tmp_path):
    path = written(tmp_path, [OWN], "train.jsonl")
    (tmp_path / "dev.json").write_text(json.dumps([OWN, MBPP]), encoding="utf-8")

    assert len(load_tasks(tmp_path, "train")) == 1
    assert len(load_tasks(tmp_path, "dev")) == 2
    written(tmp_path, [OWN, GSM8K], "train.jsonl")
    os.utime(path, ns=(1, 1))
    assert len(load_tasks(tmp_path, "train")) == 2


@pytest.mark.parametrize(
    ("dataset", "split", "message"),
    [
        ("nowhere", "train", "there is no data set 'nowhere'"),
        ("bundled", "final", "has no split 'final'; its splits are 'dev', 'test', 'train'"),
        ({"train": [OWN]}, "dev", "has no split 'dev': it has 'train'"),
        (7, "train", "a data set cannot be of type int"),
        ([{"text": "?"}], "train", "no usable entry; the first: row 0"),
        ([], "train", "no usable entry"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(dataset, split, message):
    with pytest.raises(ConfigurationError, match=message):
        load_tasks(dataset, split)
