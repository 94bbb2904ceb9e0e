"""Every row of the table of algorithms is a configuration of the trainers that it names."""

from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.reference.losses import LOSSES
from adapters.training.algorithms.advantages import ESTIMATORS, TURN_ESTIMATORS
from adapters.training.settings import GrpoSettings
from adapters.trl import grpo_config
from tests.test_docs import table_under

pytestmark = pytest.mark.torch

ALGORITHMS = table_under(
    "algorithms.md", "| algorithm | `GrpoSettings(...)` | `grpo_config(...)` |"
)
NAMES = [row[0] for row in ALGORITHMS]
SCALED_BY = {"none": "group_centered", "group": "group_normalized", "batch": "batch_scaled"}
"""Values of TRL's `scale_rewards`, and the estimators that they mean."""


def settings_in(cell: str) -> dict[str, Any] | None:
    """The keyword arguments in a cell, or None where it is empty."""
    return eval(f"dict({cell.strip('`')})") if cell else None


@pytest.mark.parametrize(("name", "ours", "trls"), ALGORITHMS, ids=NAMES)
def test_an_algorithm_is_what_both_configs_make_of_its_row(name, ours, trls, tmp_path):
    mine, theirs = settings_in(ours), settings_in(trls)
    reference = GrpoSettings.model_validate(mine or {})
    if theirs is None:
        return
    config = grpo_config(output_dir=str(tmp_path), use_cpu=True, **theirs)

    loss = LOSSES[reference.loss]
    assert SCALED_BY[config.scale_rewards] == reference.advantages
    if reference.loss == "cispo":  # TRL's bound is on the weight, and it has no lower one
        assert config.epsilon_high == 1 + loss.high
    else:
        assert (config.epsilon, config.epsilon_high or config.epsilon) == (loss.low, loss.high)
    is_sequence = config.importance_sampling_level == "sequence"
    assert ("gspo" if is_sequence else config.loss_type) == reference.loss


def test_every_estimator_and_every_loss_has_a_row_that_chooses_it():
    made = [GrpoSettings.model_validate(settings_in(row[1]) or {}) for row in ALGORITHMS]
    named = {str((settings_in(row[1]) or {}).get("loss", "dapo")) for row in ALGORITHMS}

    assert {config.advantages for config in made} == {*ESTIMATORS, *TURN_ESTIMATORS}
    assert named == LOSSES.keys()
