"""By what to divide the sum over tokens: do long texts lose where each rollout counts the same?

Document 002 says so of long reasoning, and that dividing by all tokens of a step mends it. What is
done stands in `length_runs`.
"""

from __future__ import annotations

from typing import Final

from adapters.lab.experiment import Experiment
from adapters.lab.experiments.length_figures import figures
from adapters.lab.experiments.length_runs import LONG, RATE, cells, run
from adapters.lab.prediction import Prediction, mean_above, mean_unchanged

PREDICTIONS: Final[tuple[Prediction, ...]] = (
    mean_above(
        "token_writes_longer",
        "Where the longest workflow is the best, per-token training ends with longer texts than"
        " per-sample, by a token.",
        "qa-token",
        "length_end",
        than="qa-sample",
        by=1.0,
    ),
    mean_above(
        "token_scores_more",
        "There it ends with a higher score, by 0.05.",
        "qa-token",
        "score_end",
        than="qa-sample",
        by=0.05,
    ),
    mean_above(
        "token_finds_long",
        "There the longest workflow is likelier at the end, by 10 points.",
        "qa-token",
        "long_end",
        than="qa-sample",
        by=0.1,
        unit="share",
    ),
    mean_above(
        "token_grows_when_paid",
        "Paid for length alone, per-token training ends with longer texts, by a token.",
        "longer-token",
        "length_end",
        than="longer-sample",
        by=1.0,
    ),
    mean_above(
        "sample_shortens",
        "Paid by luck alone, per-sample training ends with shorter texts, by half a token.",
        "chance-token",
        "length_end",
        than="chance-sample",
        by=0.5,
    ),
    mean_unchanged(
        "token_unbiased",
        "Paid by luck alone, per-token training leaves the length as it is, within half a token.",
        "chance-token",
        "length_grew",
        within=0.5,
    ),
    mean_unchanged(
        "constant_as_token",
        "A constant divisor ends with texts as long as per-token, within a token.",
        "qa-constant",
        "length_end",
        than="qa-token",
        within=1.0,
    ),
)


EXPERIMENT: Final = Experiment(
    name="length",
    document="002",
    title="By what the sum over tokens is divided",
    claim=(
        "Dividing by each rollout's own length works against long reasoning; dividing by all"
        " tokens of a step weights longer traces as they should be."
    ),
    setting=(
        f"The workflow micro-model, 60 updates of 32 rollouts (K=8), rate {RATE:g}, on tasks for"
        f' which the longest of its workflows is the best of them, "{LONG}". Paid: the score of the'
        " episode; the length"
        " alone; or nothing but luck. Adam hides a constant factor of the loss, so that only the"
        " weights of tokens against each other differ."
    ),
    prevention=(
        "The default loss divides by all tokens of a step; per rollout and by a constant are"
        " settings."
    ),
    cells=cells,
    seeds={"smoke": 1, "quick": 24, "full": 48},
    run=run,
    predictions=PREDICTIONS,
    figures=figures,
    seconds=lambda config: 1.3,
)
