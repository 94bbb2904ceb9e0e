"""Losses and advantages against the installed TRL, on one batch.

TRL's side is its real trainer: what `GRPOTrainer._compute_loss` returns and leaves in the gradient
of every parameter, and the advantages that `_generate_and_score_completions` makes of rewards, here
and in its RLOO trainer. Ours starts from the same model.

The batch is recorded once from a seeded tiny model: prompts and completions of unequal lengths,
tool results, log-probabilities of an older policy and of a reference that differ from the present
ones, so that many tokens are clipped on either side. It is trained on in two parts, which is where
losses that divide by different things differ.
"""

import copy
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from datasets import Dataset
from torch import Tensor
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from adapters.reference.losses import Pass, Totals, policy_loss
from adapters.tiny.model import TinySize, build_model
from adapters.training.algorithms.advantages import advantages
from adapters.training.models.token_log_probs import token_log_probs
from adapters.training.models.tokenized_examples import Example
from adapters.training.settings import GrpoSettings

pytestmark = pytest.mark.torch

GROUPS, GROUP_SIZE, PARTS = 4, 4, 2
ROWS = GROUPS * GROUP_SIZE
LONGEST = 40
PROMPT_LENGTHS = (5, 9, 6, 11)
LENGTHS = (12, 31, 7, 22, 40, 15, 9, 26, 18, 35, 11, 28, 8, 24, 38, 14)
# Log-ratios of whole rollouts, so that sequence ratios leave their bounds on both sides too.
SHIFTS = (0.5, -0.5, -0.15, 0.4, -0.4, 0.6, -0.1, 0.3, 0.1, -0.1, 0.3, -0.3, 0.4, -0.3, 0.15, -0.5)
REWARDS = (1, 0, 0.25, 0.5, 0, 0, 0.75, 0, 0.5, 0.5, 0.5, 0.5, 0.9375, 1, 0.875, 0)
TASK = torch.arange(GROUPS).repeat_interleave(GROUP_SIZE)


class Recorded(NamedTuple):
    """A batch; prompts are padded on the left, completions on the right."""

    prompts: Tensor
    prompt_mask: Tensor
    tokens: Tensor
    present: Tensor
    sampled: Tensor
    old: Tensor
    ref: Tensor
    advantages: Tensor

    def part(self, number: int) -> "Recorded":
        rows = slice(number * ROWS // PARTS, (number + 1) * ROWS // PARTS)
        return Recorded(*(tensor[rows] for tensor in self))

    def lists(self) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
        """Prompts, completions and masks of the sampled tokens, without padding."""
        masks = (self.prompt_mask, self.present, self.present)
        pairs = zip((self.prompts, self.tokens, self.sampled), masks, strict=True)
        prompts, tokens, sampled = (
            [row[kept.bool()].tolist() for row, kept in zip(rows, mask, strict=True)]
            for rows, mask in pairs
        )
        return prompts, tokens, sampled

    def score(self, model: Any) -> tuple[Tensor, Tensor]:
        """Log-probabilities [M] and entropies [M] of the sampled tokens."""
        texts = [
            Example((*prompt, *tokens), (*[False] * len(prompt), *map(bool, sampled)))
            for prompt, tokens, sampled in zip(*self.lists(), strict=True)
        ]
        return token_log_probs(model, texts)


def padded(values: Tensor, batch: Recorded) -> Tensor:
    """Numbers of the sampled tokens, [M], as a table [N, T]."""
    return torch.zeros_like(batch.old).masked_scatter(batch.sampled.bool(), values)


@pytest.fixture(scope="module")
def words(make_tokenizer: Any) -> Any:
    """A tokenizer; nothing here depends on its words."""
    return make_tokenizer()


@pytest.fixture(scope="module")
def model(words: Any, tmp_path_factory: Any) -> Any:
    """The tiny model in float64, loaded from a folder, since TRL loads its reference from there."""
    folder = tmp_path_factory.mktemp("agreement")
    made = build_model(words, size=TinySize(hidden=32, heads=2, feed_forward=64)).double()
    made.save_pretrained(folder)
    return type(made).from_pretrained(folder, dtype=torch.float64)


@pytest.fixture(scope="module")
def batch(model: Any) -> Recorded:
    """The recorded batch."""
    draw = torch.Generator().manual_seed(7)
    width, places = max(PROMPT_LENGTHS), torch.arange(LONGEST)
    lengths = torch.tensor(PROMPT_LENGTHS)[TASK]
    prompt_mask = (torch.arange(width) >= width - lengths[:, None]).long()
    prompts = torch.randint(10, 200, (GROUPS, width), generator=draw)[TASK] * prompt_mask
    tokens = torch.randint(10, 200, (ROWS, LONGEST), generator=draw)
    present = (places < torch.tensor(LENGTHS)[:, None]).long()
    # Every third rollout called a tool after its fourth token, and was answered in five.
    called = torch.arange(ROWS)[:, None] % 3 == 1
    sampled = present * ~(called & (places >= 4) & (places < 9))
    blank = torch.zeros(ROWS, LONGEST, dtype=torch.float64)
    lead = advantages("group_normalized", rewards(), TASK)
    made = Recorded(prompts, prompt_mask, tokens, present, sampled, blank, blank, lead)
    with torch.no_grad():
        now = padded(made.score(model)[0], made)
    spread = torch.rand(2, ROWS, LONGEST, generator=draw, dtype=torch.float64) - 0.5
    shifts = torch.tensor(SHIFTS, dtype=torch.float64)[:, None]
    return made._replace(old=now - shifts - 1.2 * spread[0], ref=now + spread[1] - 0.3)


def rewards(unscored: tuple[int, ...] = ()) -> Tensor:
    """Rewards that float32 holds exactly, since TRL keeps them so."""
    earned = torch.tensor(REWARDS, dtype=torch.float64)
    earned[list(unscored)] = math.nan
    return earned


def trainer_of(
    kind: Any, config: Any, model: Any, words: Any, folder: Path, scores: Tensor, **given: Any
) -> Any:
    """A real trainer of TRL."""

    def pay(**columns: Any) -> list[float | None]:
        return [None if math.isnan(each) else each for each in scores.tolist()]

    hooks = {"rollout_func": given.pop("rollout_func")} if "rollout_func" in given else {}
    args = config(
        output_dir=str(folder / "out"),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        per_device_train_batch_size=ROWS // PARTS,
        gradient_accumulation_steps=PARTS,
        num_generations=GROUP_SIZE,
        max_completion_length=LONGEST,
        **given,
    )
    tasks = Dataset.from_list([{"prompt": f"task {number}"} for number in range(GROUPS)])
    trainer = kind(
        model=copy.deepcopy(model),
        reward_funcs=pay,
        processing_class=copy.deepcopy(words),
        args=args,
        train_dataset=tasks,
        **hooks,
    )
    trainer.current_gradient_accumulation_steps = PARTS
    trainer.model.train()
    return trainer


@pytest.fixture
def grpo(model: Any, words: Any, batch: Recorded, tmp_path: Path) -> Any:
    """Makes a GRPOTrainer whose rollouts are those of the batch."""
    prompts, tokens, sampled = batch.lists()
    played = {"prompt_ids": prompts, "completion_ids": tokens, "env_mask": sampled}

    def make(scores: Tensor | None = None, **given: Any) -> Any:
        given["rollout_func"] = lambda prompts, trainer: {**played, "logprobs": None}
        scores = rewards() if scores is None else scores
        return trainer_of(GRPOTrainer, GRPOConfig, model, words, tmp_path, scores, **given)

    return make


def their_step(trainer: Any, batch: Recorded) -> float:
    """What the real `_compute_loss` makes of the two parts; gradients are left in the model."""
    value = 0.0
    for number in range(PARTS):
        part = batch.part(number)
        inputs = {
            "prompt_ids": part.prompts,
            "prompt_mask": part.prompt_mask,
            "completion_ids": part.tokens,
            "completion_mask": part.present,
            "tool_mask": torch.where(part.present.bool(), part.sampled, 1),
            "old_per_token_logps": part.old,
            "ref_per_token_logps": part.ref,
            "advantages": part.advantages,
            "num_items_in_batch": batch.sampled.sum(),
        }
        loss = trainer._compute_loss(trainer.model, inputs)
        loss.backward()
        value += loss.item()
    return value


def our_step(
    model: Any, batch: Recorded, config: GrpoSettings
) -> tuple[float, dict[str, float], dict[str, Tensor]]:
    """Our loss of the two parts, its metrics, and the gradients."""
    model, value, metrics = copy.deepcopy(model), 0.0, dict[str, float]()
    for number in range(PARTS):
        part = batch.part(number)
        learn = part.sampled.bool()
        log_probs, entropy = part.score(model)
        advantages = part.advantages if part.advantages.dim() > 1 else part.advantages[:, None]
        flat = Pass(
            log_probs,
            part.old[learn],
            advantages.expand_as(part.old)[learn],
            learn.nonzero()[:, 0],
        )
        totals = Totals(ROWS, int(batch.sampled.sum()), LONGEST)
        loss, found = policy_loss(flat, config, totals, reference=part.ref[learn], entropy=entropy)
        loss.backward()
        value += loss.item()
        metrics = {key: metrics.get(key, 0.0) + each.item() for key, each in found.items()}
    return value, metrics, gradients(model)


def gradients(model: Any) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def assert_same(ours: Any, theirs: Any, tolerance: float) -> None:
    """The norm of the difference over the norm is small, for each tensor."""
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert expected.norm() > 0
        assert (ours[name] - expected).norm() / expected.norm() < tolerance, name


SEQUENCE = {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4}
CASES: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo", "beta": 0.04},
    "dapo": {"loss_type": "dapo", "epsilon_high": 0.28, "beta": 0.04},
    "dr_grpo": {"loss_type": "dr_grpo", "beta": 0.04},
    # TRL's bound is on the weight, and has no lower one.
    "cispo": {"loss_type": "cispo", "epsilon_high": 5.0, "beta": 0.04},
    # TRL weights the penalty of a token with the ratio of its sequence, which is not exact.
    "gspo": {**SEQUENCE, "epsilon_high": 4e-4, "beta": 0.0},
}
LOGGED = {
    "entropy": "entropy",
    "clip_low": "clip_ratio/low_mean",
    "clip_high": "clip_ratio/high_mean",
    "kl": "kl",
}


@pytest.mark.parametrize("name", CASES)
def test_loss_gradients_and_metrics_are_those_of_trl(
    name: str, model: Any, batch: Recorded, grpo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To ten digits; TRL's fused head computes in float32 and would hide small terms."""
    trainer, parts = grpo(**CASES[name]), iter(range(PARTS))

    def in_float64(model: Any, *args: Any, **kwargs: Any) -> Any:
        part = batch.part(next(parts))
        log_probs, entropy = part.score(model)
        return padded(log_probs, part), padded(entropy, part), None

    monkeypatch.setattr(trainer, "_get_per_token_logps_and_entropies", in_float64)
    theirs = their_step(trainer, batch)
    ours, metrics, found = our_step(model, batch, GrpoSettings(loss=name, beta=trainer.beta))

    assert ours == pytest.approx(theirs, rel=1e-10)
    assert_same(found, gradients(trainer.model), 1e-10)
    if name != "cispo":  # hardly a weight is above its bound
        assert min(metrics["clip_high"], metrics["clip_low"]) >= 0.1
    if name == "dapo":
        logged = trainer._metrics["train"]
        counts = torch.tensor([float(batch.part(number).sampled.sum()) for number in range(PARTS)])
        for key, their_key in LOGGED.items():
            mean = (torch.tensor(logged[their_key]) * counts).sum() / counts.sum()
            assert metrics[key] == pytest.approx(mean.item(), rel=1e-5)


def test_advantages_of_single_tokens_and_trls_own_head_give_the_same(
    model: Any, batch: Recorded, grpo: Any
) -> None:
    steep = batch.advantages[:, None] * torch.linspace(-0.5, 1.5, LONGEST, dtype=torch.float64)
    batch, trainer = batch._replace(advantages=steep), grpo(**CASES["dapo"])

    theirs = their_step(trainer, batch)
    ours, _, found = our_step(model, batch, GrpoSettings(loss="dapo", beta=0.04))

    assert ours == pytest.approx(theirs, rel=1e-5)
    assert_same(found, gradients(trainer.model), 1e-5)


def their_advantages(trainer: Any) -> dict[str, Tensor]:
    """What TRL makes of the batch's rewards."""
    repeated = [trainer.train_dataset[row // GROUP_SIZE] for row in range(ROWS)]
    return {"": trainer._generate_and_score_completions(repeated)["advantages"].double()}


UNSCORED = (2, 12, 13, 14)


@pytest.mark.parametrize(
    ("scale", "name"),
    [("group", "group_normalized"), ("none", "group_centered"), ("batch", "batch_scaled")],
)
def test_grpo_advantages_are_those_of_trl(scale: str, name: str, grpo: Any) -> None:
    trainer = grpo(rewards(UNSCORED), scale_rewards=scale)

    assert_same({"": advantages(name, rewards(UNSCORED), TASK)}, their_advantages(trainer), 1e-5)


def test_leave_one_out_is_that_of_trl(
    model: Any, words: Any, batch: Recorded, tmp_path: Path
) -> None:
    scores, (prompts, tokens, _) = rewards(UNSCORED), batch.lists()
    trainer = trainer_of(RLOOTrainer, RLOOConfig, model, words, tmp_path, scores, beta=0.0)
    trainer._tokenize_prompts = lambda asked: (prompts, None, {})
    trainer._generate_single_turn = lambda *args: tokens

    ours = advantages("leave_one_out", scores, TASK)
    assert_same({"": ours}, their_advantages(trainer), 1e-5)
