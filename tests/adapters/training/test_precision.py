"""Which precision a model computes in, on which machine; the tests run alike on every one."""

import platform
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.training.models import weights
from adapters.training.models.weights import fast_dtype, multiplies_bfloat16
from adapters.training.runs.preparation import for_this_machine
from adapters.training.settings import TrainSettings, resolve

pytestmark = pytest.mark.torch
EXPLORE = "sqlgym/Explore-v0"


def settings(**given: Any) -> TrainSettings:
    return resolve(EXPLORE, **{"model": "m/m", "trainer": "reference", **given})


@pytest.mark.parametrize("has_instructions", [True, False])
def test_a_pretrained_model_is_in_half_precision_where_the_machine_has_instructions_for_it(
    has_instructions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "multiplies_bfloat16", lambda: has_instructions)

    assert for_this_machine(settings()).dtype == ("bfloat16" if has_instructions else "float32")
    assert for_this_machine(settings(dtype="bfloat16")).dtype == "bfloat16"
    assert for_this_machine(settings(dtype="float32")).dtype == "float32"


@pytest.mark.parametrize(
    "given",
    [
        {"trainer": "trl", "dtype": "auto"},
        {"sft_matrix_rate": 0.1},
        {"model": "tiny", "dtype": "auto"},
    ],
)
def test_what_needs_float32_has_it_on_every_machine(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "multiplies_bfloat16", lambda: True)

    assert for_this_machine(settings(**given)).dtype == "float32"


@pytest.mark.parametrize(
    ("told", "has_instructions"),
    [
        ({"avx2": True, "avx512_bf16": True}, True),
        ({"avx2": True, "amx_bf16": True}, True),
        ({"avx2": True, "avx512_bf16": False, "amx_bf16": False}, False),
        (None, False),  # an older PyTorch does not tell
    ],
)
def test_a_processor_computes_in_half_precision_where_pytorch_tells_of_the_instructions(
    told: dict[str, bool] | None, has_instructions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    if told is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: told, raising=False)

    assert multiplies_bfloat16() is has_instructions
    assert fast_dtype() == ("bfloat16" if has_instructions else "float32")


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not hasattr(torch.cpu, "get_capabilities"),
    reason="asks PyTorch what it tells of an x86 processor",
)
def test_pytorch_tells_of_the_instructions_by_these_names() -> None:
    assert {"avx512_bf16", "amx_bf16"} <= torch.cpu.get_capabilities().keys()
