"""Sampling by a stream of uniform numbers."""

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from toolgym.generation.sampling import sample, uniform_numbers

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("vocabulary", [50, 4097, 10_000])
def test_a_token_is_drawn_where_its_number_falls_in_the_cumulative_distribution(
    vocabulary: int,
) -> None:
    logits = 3 * torch.randn(64, vocabulary, generator=torch.Generator().manual_seed(0))
    uniforms = uniform_numbers("a", 64)

    tokens, log_probs = sample(logits, uniforms, 0.7)

    expected = torch.log_softmax(logits.double() / 0.7, dim=1)
    sums = torch.cat([torch.zeros(64, 1), expected.exp().cumsum(1)], dim=1)
    low, high = (sums.gather(1, tokens[:, None] + n).squeeze(1) for n in (0, 1))
    assert ((low - 1e-6 <= uniforms) & (uniforms <= high + 1e-6)).all()
    assert log_probs.tolist() == pytest.approx(
        expected.gather(1, tokens[:, None]).squeeze(1).tolist(), abs=1e-4
    )
    assert len(set(tokens.tolist())) > 10


def test_a_row_is_drawn_alike_wherever_it_stands() -> None:
    logits = 3 * torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    uniforms = uniform_numbers("a", 6)
    together, _ = sample(logits, uniforms, 1.0)
    order = [4, 0, 5]

    found, _ = sample(logits[order], uniforms[order], 1.0)

    assert found.tolist() == together[order].tolist()


def test_the_first_numbers_of_a_stream_are_the_same_however_many_are_drawn() -> None:
    assert uniform_numbers("a", 40)[:7].tolist() == uniform_numbers("a", 7).tolist()
    assert uniform_numbers("a", 7).tolist() != uniform_numbers("b", 7).tolist()


def test_a_stream_gives_the_same_numbers_on_every_machine() -> None:
    assert uniform_numbers("0-1-2-3", 2).tolist() == [0.5514255846765176, 0.878316999038151]
