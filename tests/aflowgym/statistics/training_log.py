"""A training log with the figures of a published report on a collapse.

The report's tables agree on 570 outputs, 326 of them accepted, 20 different, and on the ten most
frequent, which are 312. They do not agree otherwise: its classes of structure are 366 outputs of 18
workflows; it counts Custom in 312 outputs and Programmer in 208, but of the ten most frequent alone
Programmer is in 299 and Custom is missing in 76; and 96 steps of 6 outputs would be 576.
"""

import random
from collections.abc import Iterator

TOP = {
    "Custom -> Programmer -> Review ? Revise : done": 115,
    "Custom -> Programmer -> Review -> Revise": 69,
    "Programmer": 47,
    "Custom -> Programmer": 21,
    "Custom -> Programmer -> Review": 18,
    "Programmer -> Review ? Revise : done": 13,
    "Programmer -> Review -> Revise": 10,
    "Custom": 8,
    "Programmer -> Review": 6,
    "Custom -> Review ? Revise : done": 5,
}
REST = {  # ten more for the 14 outputs that the list of ten leaves out
    "Custom -> Review": 3,
    "Custom -> Review -> Revise": 2,
    "AnswerGenerate": 2,
    "[Custom, Custom, Custom] -> ScEnsemble": 1,
    "Custom -> Programmer -> Format": 1,
    "Custom -> Format": 1,
    "Programmer -> Format": 1,
    "AnswerGenerate -> Review ? Revise : done": 1,
    "AnswerGenerate -> Format": 1,
    "Custom -> Programmer -> Review ? Revise : done -> Format": 1,
}
FALLBACK = "### Step 1: Analyze the problem, then solve it."


def outputs() -> list[list[str]]:
    """The texts of 95 steps of 6 outputs each.

    The policy is updated after the steps 1, 3, ..., 75 and writes no workflow in 2, 4, ..., 74.
    """
    valid = [text for text, count in {**TOP, **REST}.items() for _ in range(count)]
    random.Random(1).shuffle(valid)
    steps = []
    for step in range(1, 96):
        if step % 2 == 0 and step < 76:
            steps.append([FALLBACK] * 6)
        else:
            some = 5 if sum(each[0] != FALLBACK for each in steps) < 22 else 6
            steps.append([valid.pop() for _ in range(some)] + [FALLBACK] * (6 - some))
    return steps


def log() -> Iterator[str]:
    """The lines of the log."""
    for step, texts in enumerate(outputs(), start=1):
        yield from ("=" * 60, f"📍 Step {step}/96", "=" * 60, f"📦 Batch {step}: 3 样本")
        for text in texts:
            is_fallback = text == FALLBACK
            shown = "Custom (default fallback)" if is_fallback else text
            if is_fallback:
                yield from (f"===== [QWEN] =====\n{FALLBACK}", "Step 2: Solve it.")
            yield f"  📝 DSL质量: fallback={is_fallback}, ops=2, chain=True, DSL={shown}"
        yield f"🎯 准确率统计: 3/6 = 50.0% (step {step})"
        yield "🔄 更新策略..."
        if step % 2 == 0 or step > 75:
            yield "⏭️ P28: 全部fallback, 跳过本次更新"
