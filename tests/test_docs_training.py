"""The tables of algorithms and of GPU memory say what the program does."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.reference.losses import LOSSES
from adapters.training.algorithms.advantages import ESTIMATORS, TURN_ESTIMATORS
from adapters.training.models.memory_needs import Load, bytes_of_update
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


SHAPES = {
    "Qwen3-0.6B": (28, 1024, 596_049_920),
    "Qwen3-1.7B": (28, 2048, 1_720_574_976),
    "Qwen3-4B": (36, 2560, 4_022_468_096),
    "Qwen3-8B": (36, 4096, 8_190_735_360),
}
"""Layers, width and number of parameters."""


def test_the_table_of_gpu_memory_is_the_estimate_of_the_program():
    rows = table_under(
        "gpu.md",
        "| model | all weights | LoRA | pass | pass with `--gradient-checkpointing` |",
    )
    assert [row[0] for row in rows] == list(SHAPES)
    for name, *cells in rows:
        layers, width, parameters = SHAPES[name]
        sizes = SimpleNamespace(num_hidden_layers=layers, hidden_size=width, vocab_size=151_936)
        config = SimpleNamespace(get_text_config=lambda sizes=sizes: sizes)

        def update(rank: int, tokens: int, has_checkpointing: bool, config=config, n=parameters):
            load = Load("bfloat16", rank, tokens, has_checkpointing)
            return bytes_of_update(config, n, load)

        # An update of no token is gradient and moments: 12 of the 16 bytes of a trained parameter.
        full, adapter = (update(rank, 0, False) * 16 / 12 for rank in (0, 16))
        kept, recomputed = (update(0, 8192, each) - update(0, 0, False) for each in (False, True))
        state = (full + 4 * parameters, adapter + 2 * parameters)  # weights and KL reference
        estimates = [each / 1e9 for each in (*state, kept, recomputed)]
        assert cells == [f"{each:.1f}" for each in estimates], name
