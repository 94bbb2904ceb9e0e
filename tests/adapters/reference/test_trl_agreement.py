"""The reference losses and the advantage estimators against the installed TRL, on one batch.

TRL's side is its real trainer: what `GRPOTrainer._compute_loss` returns and leaves in the gradient
of every parameter, and the advantages that `_generate_and_score_completions` makes of the rewards,
here and in its RLOO trainer. Ours starts from the same model's logits.

The batch is recorded once from a seeded tiny model: prompts and completions of unequal lengths,
stretches of tool results, log-probabilities of an older policy and of a reference that differ from
the present ones, so that on either side many tokens are clipped, and rewards that float32 holds
exactly, since TRL keeps them so. It is trained on in two parts, which is where losses that divide
by different things come apart.
"""

import copy
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from datasets import Dataset
from torch import Tensor
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from adapters.reference.losses import (
    LossConfig,
    Totals,
    loss_config,
    penalized_rewards,
    policy_loss,
)
from adapters.tiny.model import TinySize, build_model
from adapters.training.algorithms.advantages import (
    batch_deviations,
    batch_scaled,
    batch_std,
    floored,
    group_centered,
    group_normalized,
    leave_one_out,
)
from tests.sweeps import sweep

pytestmark = pytest.mark.torch

GROUPS, GROUP_SIZE = 4, 4
ROWS = GROUPS * GROUP_SIZE
PARTS = 2
LONGEST = 40
PROMPT_LENGTHS = (5, 9, 6, 11)
LENGTHS = (12, 31, 7, 22, 40, 15, 9, 26, 18, 35, 11, 28, 8, 24, 38, 14)
# Log-ratios of whole rollouts, so that sequence ratios leave their bounds on both sides too.
SHIFTS = (0.5, -0.5, -0.15, 0.4, -0.4, 0.6, -0.1, 0.3, 0.1, -0.1, 0.3, -0.3, 0.4, -0.3, 0.15, -0.5)
REWARDS = (1, 0, 0.25, 0.5, 0, 0, 0.75, 0, 0.5, 0.5, 0.5, 0.5, 0.9375, 1, 0.875, 0)
TOLERANCE = 1e-5


class Recorded(NamedTuple):
    """A batch as both sides read it; prompts are padded on the left, completions on the right."""

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


def groups() -> Tensor:
    return torch.arange(GROUPS).repeat_interleave(GROUP_SIZE)


def rewards(unscored: tuple[int, ...] = ()) -> Tensor:
    earned = torch.tensor(REWARDS, dtype=torch.float64)
    earned[list(unscored)] = math.nan
    return earned


@torch.no_grad()
def sample(model: Any, prompts: Tensor, prompt_mask: Tensor, stream: torch.Generator) -> Tensor:
    """LONGEST tokens for each prompt, at temperature 1."""
    tokens, mask = prompts, prompt_mask
    for _ in range(LONGEST):
        logits = model(input_ids=tokens, attention_mask=mask).logits[:, -1]
        drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=stream)
        tokens, mask = torch.cat([tokens, drawn], 1), torch.cat([mask, mask[:, :1] * 0 + 1], 1)
    return tokens[:, prompts.shape[1] :]


def score(model: Any, batch: Recorded) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies of the completions' tokens, from the logits."""
    ids = torch.cat([batch.prompts, batch.tokens], dim=1)
    mask = torch.cat([batch.prompt_mask, batch.present], dim=1)
    logits = model(input_ids=ids, attention_mask=mask).logits
    logs = logits[:, batch.prompts.shape[1] - 1 : -1].log_softmax(dim=-1)
    chosen = logs.gather(2, batch.tokens[:, :, None]).squeeze(2)
    return chosen, -(logs.exp() * logs).sum(dim=-1)


@pytest.fixture(scope="module")
def words(make_tokenizer: Any) -> Any:
    """A tokenizer; nothing here depends on its words."""
    return make_tokenizer()


@pytest.fixture(scope="module")
def saved(words: Any, tmp_path_factory: Any) -> Any:
    """The tiny model in float64, loaded from a folder, since TRL loads its reference from there."""
    folder = tmp_path_factory.mktemp("agreement")
    made = build_model(words, size=TinySize(hidden=32, heads=2, feed_forward=64)).double()
    made.save_pretrained(folder)
    return type(made).from_pretrained(folder, dtype=torch.float64)


@pytest.fixture
def model(saved: Any) -> Any:
    """A copy of it, without gradients."""
    return copy.deepcopy(saved)


@pytest.fixture(scope="module")
def batch(saved: Any) -> Recorded:
    """The recorded batch."""
    stream = torch.Generator().manual_seed(7)
    width = max(PROMPT_LENGTHS)
    lengths = torch.tensor(PROMPT_LENGTHS).repeat_interleave(GROUP_SIZE)
    prompt_mask = (torch.arange(width) >= width - lengths[:, None]).long()
    prompts = torch.randint(10, 200, (GROUPS, width), generator=stream)
    prompts = prompts.repeat_interleave(GROUP_SIZE, dim=0) * prompt_mask
    tokens = sample(saved, prompts, prompt_mask, stream)
    places = torch.arange(LONGEST)
    present = (places < torch.tensor(LENGTHS)[:, None]).long()
    # Every third rollout called a tool after its fourth token, and was answered in five.
    called = torch.arange(ROWS)[:, None] % 3 == 1
    sampled = present * ~(called & (places >= 4) & (places < 9))
    blank = torch.zeros(ROWS, LONGEST, dtype=torch.float64)
    lead = group_normalized(rewards(), groups())
    made = Recorded(prompts, prompt_mask, tokens, present, sampled, blank, blank, lead)
    with torch.no_grad():
        now, _ = score(saved, made)
    spread = torch.rand(2, ROWS, LONGEST, generator=stream, dtype=torch.float64) - 0.5
    shifts = torch.tensor(SHIFTS, dtype=torch.float64)[:, None]
    return made._replace(old=now - shifts - 1.2 * spread[0], ref=now + spread[1] - 0.3)


def trl_inputs(batch: Recorded, total: Tensor) -> dict[str, Tensor]:
    """A part of the batch under TRL's names."""
    return {
        "prompt_ids": batch.prompts,
        "prompt_mask": batch.prompt_mask,
        "completion_ids": batch.tokens,
        "completion_mask": batch.present,
        "tool_mask": torch.where(batch.present.bool(), batch.sampled, 1),
        "old_per_token_logps": batch.old,
        "ref_per_token_logps": batch.ref,
        "advantages": batch.advantages,
        "num_items_in_batch": total,
    }


def tasks() -> Dataset:
    return Dataset.from_list([{"prompt": f"task {number}"} for number in range(GROUPS)])


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "output_dir": str(folder / "out"),
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "per_device_train_batch_size": ROWS // PARTS,
        "gradient_accumulation_steps": PARTS,
        "num_generations": GROUP_SIZE,
        "max_completion_length": LONGEST,
        **changes,
    }


@pytest.fixture
def grpo(saved: Any, words: Any, batch: Recorded, tmp_path: Path) -> Any:
    """Makes a real GRPOTrainer whose rollouts are those of the batch."""

    def make(scores: Any = (), **changes: Any) -> GRPOTrainer:
        paid = enumerate(scores or [rewards()])
        trainer = GRPOTrainer(
            model=copy.deepcopy(saved),
            reward_funcs=[reward_function(number, each) for number, each in paid],
            processing_class=copy.deepcopy(words),
            args=GRPOConfig(**settings(tmp_path, **changes)),
            train_dataset=tasks(),
            rollout_func=lambda prompts, trainer: played(batch),
        )
        trainer.current_gradient_accumulation_steps = PARTS
        trainer.model.train()
        return trainer

    return make


def reward_function(number: int, scores: Tensor) -> Any:
    """Pays what is written, and None for nan."""

    def pay(**columns: Any) -> list[float | None]:
        return [None if math.isnan(score) else score for score in scores.tolist()]

    pay.__name__ = f"pay_{number}"
    return pay


def played(batch: Recorded) -> dict[str, Any]:
    """The batch as a rollout function returns it: lists without padding."""
    lists: dict[str, Any] = {"prompt_ids": [], "completion_ids": [], "env_mask": []}
    for row in range(ROWS):
        lists["prompt_ids"].append(batch.prompts[row][batch.prompt_mask[row].bool()].tolist())
        present = batch.present[row].bool()
        lists["completion_ids"].append(batch.tokens[row][present].tolist())
        lists["env_mask"].append(batch.sampled[row][present].tolist())
    return {**lists, "logprobs": None}


class Case(NamedTuple):
    """What makes TRL and us compute the same loss."""

    theirs: dict[str, Any]
    ours: LossConfig
    per_part: bool = False
    """Each part is divided by its own tokens, not by those of the step."""


WIDE: dict[str, Any] = {"epsilon_low": 0.2, "epsilon_high": 0.28}
CASES = {
    "grpo": Case({"loss_type": "grpo"}, loss_config("grpo")),
    "bnpo": Case({"loss_type": "bnpo", "epsilon_high": 0.28}, loss_config("dapo"), per_part=True),
    "dr_grpo": Case({"loss_type": "dr_grpo"}, loss_config("dr_grpo", constant_length=LONGEST)),
    "dapo": Case({"loss_type": "dapo", "epsilon_high": 0.28}, loss_config("dapo")),
    "dapo with dual clip": Case(
        {"loss_type": "dapo", "epsilon_high": 0.28, "delta": 1.5},
        loss_config("dapo", dual_clip=1.5),
    ),
    "bnpo with entropy bonus": Case(
        {"loss_type": "bnpo", "epsilon_high": 0.28, "entropy_coef": 0.02},
        loss_config("dapo", entropy_bonus=0.02),
        per_part=True,
    ),
    "cispo": Case(
        {"loss_type": "cispo", "epsilon_high": 1.3}, loss_config("cispo", epsilon_high=0.3)
    ),
    "gspo": Case(
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon_high": 0.28},
        loss_config("gspo", kl_ratio="policy", **WIDE),
    ),
    "gspo within its own bounds": Case(
        {
            "loss_type": "grpo",
            "importance_sampling_level": "sequence",
            "epsilon": 3e-4,
            "epsilon_high": 4e-4,
        },
        loss_config("gspo", kl_ratio="policy"),
    ),
}


def gradients(model: Any) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def their_step(trainer: GRPOTrainer, batch: Recorded) -> float:
    """What the real `_compute_loss` makes of the two parts; gradients are left in the model."""
    value = 0.0
    for number in range(PARTS):
        loss = trainer._compute_loss(
            trainer.model, trl_inputs(batch.part(number), batch.sampled.sum())
        )
        loss.backward()
        value += loss.item()
    return value


def our_step(
    model: Any, batch: Recorded, case: Case, beta: float
) -> tuple[float, dict[str, float]]:
    """What the reference loss makes of the two parts, and its metrics of the whole step."""
    config = case.ours.model_copy(update={"beta": beta})
    totals = Totals.of(batch.sampled)
    value, metrics = 0.0, dict[str, float]()
    for number in range(PARTS):
        part = batch.part(number)
        logprobs, entropy = score(model, part)
        loss = policy_loss(
            logprobs,
            part.old,
            part.advantages,
            part.sampled,
            config=config,
            ref_logprobs=part.ref,
            entropy=entropy,
            totals=None if case.per_part else totals,
        )
        share = loss.value / PARTS if case.per_part else loss.value
        share.backward()
        value += share.item()
        for name, metric in loss.metrics.items():
            added = metric.item() / PARTS if case.per_part else metric.item()
            metrics[name] = metrics.get(name, 0.0) + added
    return value, metrics


def differences(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> Iterator[float]:
    """Norm of the difference over the norm, for each parameter; none has no gradient."""
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert theirs[name].norm() > 0
        yield ((ours[name] - theirs[name]).norm() / theirs[name].norm()).item()


@pytest.mark.parametrize("name", sweep(CASES, ["grpo", "gspo"]))
def test_loss_and_every_gradient_are_those_of_trl(
    name: str, model: Any, batch: Recorded, grpo: Any
) -> None:
    case = CASES[name]
    trainer = grpo(beta=0.04, **case.theirs)

    theirs = their_step(trainer, batch)
    ours, _ = our_step(model, batch, case, 0.04)

    assert ours == pytest.approx(theirs, rel=TOLERANCE)
    assert max(differences(gradients(model), gradients(trainer.model))) < TOLERANCE


@pytest.mark.parametrize("name", sweep(CASES, ["dr_grpo", "dapo with dual clip", "cispo"]))
def test_they_are_the_same_to_ten_digits_where_trl_reads_float64_log_probabilities(
    name: str, model: Any, batch: Recorded, grpo: Any, monkeypatch: Any
) -> None:
    """TRL's fused head computes in float32 whatever the model's type, and so hides small terms.

    At least a tenth of the tokens is clipped on each side.
    """
    case = CASES[name]
    trainer = grpo(beta=0.04, **case.theirs)
    parts = iter(range(PARTS))

    def in_float64(model: Any, *args: Any, **kwargs: Any) -> Any:
        return *score(model, batch.part(next(parts))), None

    monkeypatch.setattr(trainer, "_get_per_token_logps_and_entropies", in_float64)
    theirs = their_step(trainer, batch)
    ours, metrics = our_step(model, batch, case, 0.04)

    assert ours == pytest.approx(theirs, rel=1e-10)
    assert max(differences(gradients(model), gradients(trainer.model))) < 1e-10
    assert metrics["clip_high"] >= 0.1
    if name != "cispo":  # has no lower bound, here as there
        assert metrics["clip_low"] >= 0.1
    if "dual" in name:
        assert metrics["clip_dual"] >= 0.05


def test_the_metrics_are_those_of_trl(model: Any, batch: Recorded, grpo: Any) -> None:
    case = CASES["dapo"]
    trainer = grpo(beta=0.04, **case.theirs)
    their_step(trainer, batch)
    _, ours = our_step(model, batch, case, 0.04)

    logged = trainer._metrics["train"]
    tokens = torch.tensor([float(batch.part(part).sampled.sum()) for part in range(PARTS)])
    names = {
        "kl": "kl",
        "entropy": "entropy",
        "clip_low": "clip_ratio/low_mean",
        "clip_high": "clip_ratio/high_mean",
    }
    for name, their_name in names.items():
        mean = (torch.tensor(logged[their_name]) * tokens).sum() / tokens.sum()
        assert ours[name] == pytest.approx(mean.item(), rel=TOLERANCE)


def test_advantages_of_single_tokens_are_read_as_trl_reads_them(
    model: Any, batch: Recorded, grpo: Any
) -> None:
    case = CASES["dapo"]
    steep = batch.advantages[:, None] * torch.linspace(-0.5, 1.5, LONGEST, dtype=torch.float64)
    batch = batch._replace(advantages=steep)
    trainer = grpo(beta=0.04, **case.theirs)

    theirs = their_step(trainer, batch)
    ours, _ = our_step(model, batch, case, 0.04)

    assert ours == pytest.approx(theirs, rel=TOLERANCE)
    assert max(differences(gradients(model), gradients(trainer.model))) < TOLERANCE


def their_advantages(trainer: Any) -> Tensor:
    """What TRL makes of the batch's rewards."""
    repeated = [trainer.train_dataset[row // GROUP_SIZE] for row in range(ROWS)]
    found: Tensor = trainer._generate_and_score_completions(repeated)["advantages"]
    return found.double()


def assert_same(ours: Tensor, theirs: Tensor) -> None:
    assert theirs.norm() > 0.1
    assert (ours - theirs).norm() / theirs.norm() < TOLERANCE


UNSCORED = (2, 12, 13, 14)


@pytest.mark.parametrize(
    ("scale", "estimator"),
    [("group", group_normalized), ("none", group_centered), ("batch", batch_scaled)],
)
def test_grpo_advantages_are_those_of_trl(scale: str, estimator: Any, grpo: Any) -> None:
    trainer = grpo([rewards(UNSCORED)], scale_rewards=scale)

    assert_same(estimator(rewards(UNSCORED), groups()), their_advantages(trainer))


def test_several_rewards_normalised_apart_are_our_pieces_put_together(grpo: Any) -> None:
    first, second = rewards(), rewards().flip(0)
    trainer = grpo(
        [first, second],
        multi_objective_aggregation="normalize_then_sum",
        reward_weights=[1.0, 0.5],
    )

    both = group_normalized(first, groups()) + 0.5 * group_normalized(second, groups())
    counted = torch.ones(ROWS, dtype=torch.bool)
    ours = batch_deviations(both, counted) / floored(batch_std(both, counted), 0.0)
    assert_same(ours, their_advantages(trainer))


@pytest.fixture
def rloo(saved: Any, words: Any, batch: Recorded, tmp_path: Path) -> Any:
    """Makes a real RLOOTrainer that says what the batch says."""

    def make(scores: Tensor, **changes: Any) -> RLOOTrainer:
        trainer = RLOOTrainer(
            model=copy.deepcopy(saved),
            reward_funcs=reward_function(0, scores),
            processing_class=copy.deepcopy(words),
            args=RLOOConfig(**settings(tmp_path, **changes)),
            train_dataset=tasks(),
        )
        said = played(batch)
        trainer._tokenize_prompts = lambda prompts: (said["prompt_ids"], None, {})
        trainer._generate_single_turn = lambda *args: said["completion_ids"]
        trainer.model.train()
        return trainer

    return make


@pytest.mark.parametrize("is_normalized", [False, True])
def test_leave_one_out_is_that_of_trl(is_normalized: bool, rloo: Any) -> None:
    scores = rewards(UNSCORED)
    trainer = rloo(scores, beta=0.0, normalize_advantages=is_normalized)

    ours = leave_one_out(scores, groups())
    if is_normalized:  # TRL leaves out who is unscored, and who is alone among the scored
        counted = scores.isfinite()
        counted[12:] = False
        ours = batch_deviations(ours, counted) / floored(batch_std(ours, counted), 0.0)
    assert_same(ours, their_advantages(trainer))


def test_kl_in_the_reward_is_that_of_trl(model: Any, batch: Recorded, rloo: Any) -> None:
    trainer = rloo(rewards(), beta=0.05)
    elsewhere = copy.deepcopy(model)
    with torch.no_grad():
        for weight, theirs in zip(
            elsewhere.parameters(), trainer.ref_model.parameters(), strict=True
        ):
            weight += 0.1 * torch.sin(torch.arange(weight.numel()).double()).view_as(weight)
            theirs.copy_(weight)
        old, ref = score(model, batch)[0], score(elsewhere, batch)[0]

    paid = penalized_rewards(rewards(), old, ref, batch.present, beta=0.05, limit=10.0)
    assert (paid - rewards()).abs().max() > 0.05
    assert_same(leave_one_out(paid, groups()), their_advantages(trainer))
