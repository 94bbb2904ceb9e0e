"""The reference trainer's loop: its metrics, checkpoints, processes, and what guards make it do."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch
from torch import Tensor

from adapters.reference.processes import Processes
from adapters.training.guards.config import Action
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.guards.guards import Decision
from adapters.training.models.chat_policy import load_model
from tests.adapters.reference.digits import SETTINGS, speech
from tests.adapters.reference.scripted import ScriptedEngine
from toolgym import ConfigurationError, EnvironmentFault
from toolgym.runs.metrics import METRICS

pytestmark = pytest.mark.torch


def weights(model: Any) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


def repeatable(told: Any) -> list[tuple[int, dict[str, float]]]:
    """Steps and metrics, without those of the clock."""
    clock = {key for key, metric in METRICS.items() if metric.source == "clock"}
    return [(step, {k: v for k, v in found.items() if k not in clock}) for step, found, *_ in told]


def decide(trainer: Any, step: int, action: Action, update: bool = False, **given: Any) -> None:
    """Let the guards decide so at one step."""
    observe = trainer._guards.observe

    def decided(now: int, metrics: Any) -> Decision:
        decision: Decision = observe(now, metrics)
        return Decision(now, action, (), update, 0.5, **given) if now == step else decision

    trainer._guards.observe = decided


def test_a_step_reports_its_metrics_and_its_episodes(make: Any) -> None:
    trainer = make(steps=3, temperature=0.8, beta=0.1, learn_from_unfinished=True)
    before = weights(trainer._model)

    trainer.train()

    assert [(step, len(episodes)) for step, _, episodes in trainer.told] == [(1, 8), (2, 8), (3, 8)]
    first, *_, last = (metrics for _, metrics, _ in trainer.told)
    own = {"reward", "validity", "dead_groups", "rollout_seconds", "peak_memory", "learnt_tokens"}
    shared = {"loss", "grad_norm", "entropy", "kl", "mismatch", "learning_rate", "updates"}
    assert own | shared <= first.keys()
    assert first["kl"] == pytest.approx(0.0, abs=1e-6)
    assert first["mismatch"] == pytest.approx(0.0, abs=1e-6)
    assert first["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert first["learnt_tokens"] == pytest.approx(8 * first["completion_length"])
    assert last["kl"] > 1e-6
    assert not same(before, weights(trainer._model))


@pytest.mark.integration
def test_the_model_learns_what_is_rewarded(make: Any) -> None:
    trainer = make(
        steps=24, updates_per_batch=2, group_size=16, learning_rate=1.5e-3, save_every=100
    )

    trainer.train()

    accuracy = [metrics["accuracy"] for _, metrics, _ in trainer.told if "accuracy" in metrics]
    assert sum(accuracy[:2]) / 2 < 0.3
    assert sum(accuracy[-3:]) / 3 > 0.5


def test_groups_of_one_learn_from_the_other_tasks_of_the_batch(make: Any) -> None:
    trainer = make(advantages="batch_normalized", group_size=1, prompts=8, steps=1)
    before = weights(trainer._model)

    trainer.train()

    assert "dead_groups" not in trainer.told[0][1]
    assert not same(before, weights(trainer._model))


def test_further_updates_of_a_batch_clip_and_report_nothing_of_its_rollouts(make: Any) -> None:
    trainer = make(updates_per_batch=2, steps=3, epsilon_low=1e-4, epsilon_high=1e-4)

    trainer.train()

    told = [metrics for _, metrics, _ in trainer.told]
    assert ["reward" in metrics for metrics in told] == [True, False, True]
    assert ["mismatch" in metrics for metrics in told] == [True, False, True]
    assert [len(episodes) for _, _, episodes in trainer.told] == [8, 0, 8]
    clipped = [metrics["clip_low"] + metrics["clip_high"] for metrics in told]
    assert clipped[0] == clipped[2] == 0.0 < clipped[1]
    assert told[0]["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert abs(told[1]["ratio"] - 1.0) > 1e-5


# Checkpoints


@pytest.mark.integration
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"updates_per_batch": 2, "prompts": 1}, id="plain"),
        pytest.param(
            {"dtype": "bfloat16", "lr_decay": "cosine", "lr_warmup_steps": 1}
            | {"loss": "gspo", "beta": 0.1, "max_draws": 2.0},
            id="half precision",
        ),
        pytest.param({"lora_rank": 4, "dtype": "bfloat16"}, id="adapter"),
    ],
)
def test_a_run_that_was_interrupted_ends_as_one_that_was_not(
    options: dict[str, Any], make: Any
) -> None:
    whole = make(folder="whole", **options)
    whole.train()

    def interrupt(step: int) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        make(watch=interrupt, **options).train()
    again = make(**options)
    torch.manual_seed(12345)
    again.train()

    assert repeatable(again.told) == repeatable(whole.told)[2:]
    assert same(weights(again._model), weights(whole._model))


def test_a_resumed_run_remembers_the_faults(make: Any) -> None:
    trainer = make(steps=1)
    lose_rollouts(trainer)
    trainer.train()

    again = make(steps=1)
    again.train()

    assert again._faults.state_dict() == {"steps": [[8, 8]]}


@pytest.mark.integration
def test_an_incomplete_checkpoint_is_passed_over(make: Any, tmp_path: Path) -> None:
    make(steps=2, save_every=1).train()
    (tmp_path / "run" / "checkpoint-2" / "trainer_state.json").unlink()
    (tmp_path / "run" / ".checkpoint-3.new").mkdir()

    again = make(steps=2)
    again.train()

    assert [step for step, _, _ in again.told] == [2]


def test_a_run_resumes_with_the_same_tasks_only(make: Any) -> None:
    make(steps=1).train()

    with pytest.raises(ConfigurationError, match="Resume with the same tasks and seed"):
        make(steps=2, seed=7).train()


def test_a_checkpoint_is_a_model_folder_with_files_of_the_caller(make: Any, tmp_path: Path) -> None:
    trainer = make(steps=1, on_save=lambda folder: (folder / "note").write_text("mine"))
    trainer.train()

    folder = tmp_path / "run" / "checkpoint-1"
    model, tokenizer = load_model(str(folder))
    assert same(weights(model), weights(trainer._model))
    assert tokenizer.chat_template == trainer._tokenizer.chat_template
    assert (folder / "note").read_text() == "mine"


@pytest.mark.integration
def test_an_adapter_is_all_that_a_checkpoint_holds(make: Any, tmp_path: Path) -> None:
    trainer = make(steps=2, lora_rank=4, loss="dapo", beta=0.1, learning_rate=1e-2)
    before = weights(trainer._model)

    trainer.train()

    told = [metrics for _, metrics, _ in trainer.told]
    assert told[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert told[1]["kl"] > 1e-6
    assert told[-1]["mismatch"] == pytest.approx(0.0, abs=1e-6)  # sampled with merged weights
    folder = tmp_path / "run" / "checkpoint-2"
    assert (folder / "adapter_model.safetensors").is_file()
    assert not (folder / "model.safetensors").exists()
    moved = [
        name for name, value in weights(trainer._model).items() if (value != before[name]).any()
    ]
    assert moved
    assert all("lora" in name for name in moved)
    trainer.adapter.merge()
    assert not [name for name in weights(trainer._model) if "lora" in name]


# Guards


@pytest.mark.integration
@pytest.mark.parametrize("lora_rank", [0, 4])
def test_a_roll_back_restores_all_that_was_learned_and_nothing_that_was_drawn(
    lora_rank: int, make: Any
) -> None:
    seen: dict[int, Any] = {}

    def look(step: int) -> None:
        optimizer = {k: v.clone() for k, v in trainer._optimizer.state_dict().items()}
        seen[step] = weights(trainer._model), optimizer

    trainer = make(steps=3, lora_rank=lora_rank, lr_decay="linear", save_every=1, watch=look)
    decide(trainer, 2, Action.ROLL_BACK)
    trainer._guards.choose_snapshot = lambda steps: 1
    load = trainer._load

    def loaded(step: int) -> Any:
        state = load(step)
        look(-1)
        return state

    trainer._load = loaded
    trainer.train()

    assert same(seen[1][0], seen[-1][0])
    assert same(seen[1][1], seen[-1][1])
    assert trainer.step == 3
    assert trainer._tasks.state_dict()["walked"] == 3 * 2


def test_without_healthy_weights_the_run_stops(make: Any) -> None:
    trainer = make(steps=2)
    decide(trainer, 1, Action.ROLL_BACK)
    trainer._guards.choose_snapshot = lambda steps: None

    with pytest.raises(TrainingStopped, match=r"(?s)no healthy checkpoint.*Lower save_every"):
        trainer.train()


def test_a_skipped_update_moves_nothing_and_a_scale_lowers_the_learning_rate(make: Any) -> None:
    seen: dict[int, Any] = {}
    trainer = make(steps=3, watch=lambda step: seen.update({step: weights(trainer._model)}))
    decide(trainer, 2, Action.SKIP)

    trainer.train()

    assert trainer.told[1][1]["grad_norm"] > 0
    assert trainer.told[1][1]["learning_rate"] == pytest.approx(0.5e-3)
    assert same(seen[1], seen[2])
    assert not same(seen[2], seen[3])


def test_the_guards_end_a_run_with_a_diagnosis(make: Any) -> None:
    trainer = make()
    decide(trainer, 2, Action.STOP, diagnosis="It learns nothing.")

    with pytest.raises(TrainingStopped, match="It learns nothing"):
        trainer.train()

    assert [step for step, _, _ in trainer.told] == [1, 2]


def test_held_out_metrics_reach_the_guards_and_none_ends_the_training(make: Any) -> None:
    observed: list[tuple[int, Any]] = []

    def evaluate(step: int, adapter: Any) -> Any:
        return None if step == 4 else {"held_out_accuracy": 0.25} if step == 2 else {}

    trainer = make(steps=6, updates_per_batch=2, evaluate=evaluate, save_every=100)
    observe = trainer._guards.observe

    def noted(step: int, metrics: Any) -> Decision:
        observed.append((step, metrics.get("held_out_accuracy")))
        decision: Decision = observe(step, metrics)
        return decision

    trainer._guards.observe = noted
    trainer.train()

    assert observed == [(1, None), (2, None), (3, 0.25), (4, None)]
    assert trainer._saved_steps() == [0, 4]


# Batches


def test_dead_groups_are_replaced_and_places_without_a_live_one_are_left_empty(make: Any) -> None:
    trainer = make(max_draws=2.0)
    player, streams = trainer.player, list[str]()

    def say(stream: str) -> Any:
        """The first two groups are dead; the others have right and wrong rollouts."""
        streams.append(stream)
        _, step, group, member, *_ = stream.split("-")
        value = 7 if step == "1" and int(group) > 1 and int(member) % 2 else 6
        call = {"name": "answer", "arguments": {"value": value}}
        text = f"<tool_call>\n{json.dumps(call)}\n</tool_call><|im_end|>"
        return player._chat._tokenizer(text, add_special_tokens=False)["input_ids"]

    player.engine = ScriptedEngine(player.model, player._chat.stop, say)
    learned, played, metrics = trainer.sample()

    assert len(set(streams)) == len(played) == metrics["rollouts"] == 16
    assert {rollout.group for rollout in learned} == {2, 3}
    assert (metrics["drawn_groups"], metrics["dropped_groups"]) == (4.0, 2.0)
    assert (metrics["masked_groups"], metrics["sampling_rounds"]) == (0.0, 2.0)
    trainer.step = 1
    learned, played, metrics = trainer.sample()
    assert learned == []
    assert (metrics["drawn_groups"], metrics["masked_groups"]) == (4.0, 2.0)
    assert trainer.gradient(trainer.advantages(learned), None) == {"learnt_tokens": 0.0}
    assert trainer._optimizer.norm()[0] == 0.0


def test_shuffled_rewards_are_the_same_rewards_elsewhere(make: Any) -> None:
    plain, shuffled = make(), make(control="shuffled-rewards")

    one, other = (trainer.sample()[1] for trainer in (plain, shuffled))

    rewards = [[rollout.reward for rollout in played] for played in (one, other)]
    assert rewards[0] != rewards[1]
    assert sorted(rewards[0]) == sorted(rewards[1])
    assert [r.tokens.tokens for r in one] == [r.tokens.tokens for r in other]


def lose_rollouts(trainer: Any) -> None:
    """As if the environment had failed in every rollout."""
    play = trainer.player.play

    def lost(rollouts: Any, **how: Any) -> None:
        play(rollouts, **how)
        for rollout in rollouts:
            rollout.reward, rollout.episode, rollout.fault = math.nan, None, "the disk is gone"

    trainer.player.play = lost


def test_an_environment_that_keeps_failing_ends_the_run(make: Any) -> None:
    trainer = make(steps=20, group_size=2)
    lose_rollouts(trainer)

    with pytest.raises(EnvironmentFault, match=r"failed in 20 of the last 20 .*the disk is gone"):
        trainer.train()


# The command, and several processes


SCRIPT = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, {root!r})
from adapters.reference import play
from adapters.reference.train import ReferenceTrainer
from adapters.training.models.chat_policy import load_model
from adapters.training.settings import GrpoSettings
from tests.adapters.reference import digits, scripted

out, (model, tokenizer) = Path({out!r}), load_model({start!r}, for_training=True)
if {recites}:
    def engine(model, *, stop, slots):
        return scripted.ScriptedEngine(model, stop, lambda name: digits.speech(tokenizer, name))
    play.Engine = engine

def on_step(step, metrics, episodes):
    with (out / "metrics.jsonl").open("a") as file:
        file.write(json.dumps([step, metrics]) + "\\n")

settings = GrpoSettings(**{settings!r})
trainer = ReferenceTrainer(model, tokenizer, digits.DIGITS, out, settings, on_step=on_step)
if trainer._processes.is_main:
    out.mkdir(exist_ok=True)
trainer.train()
if trainer._processes.is_main:
    model.save_pretrained(out / "final")
    tokenizer.save_pretrained(out / "final")
"""


def program(start: Path, out: Path, recites: bool = False, **options: Any) -> str:
    """A program that trains on the digits, or resumes."""
    root = str(Path(__file__).parents[3])
    named = {"root": root, "recites": recites, "start": str(start), "out": str(out)}
    return SCRIPT.format(settings=SETTINGS | options, **named)


def lines_of(out: Path) -> list[tuple[int, dict[str, float]]]:
    """The last metrics of each step of the program."""
    file = out / "metrics.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return sorted(dict(map(json.loads, lines)).items())


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.integration
def test_a_run_that_is_killed_resumes_to_the_bit(make: Any, start: Path, tmp_path: Path) -> None:
    options, out = {"steps": 6, "max_draws": 2.0}, tmp_path / "killed"
    command = [sys.executable, "-c", program(start, out, **options)]
    whole = make(**options)
    whole.train()

    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and len(lines_of(out)) < 3:
            time.sleep(0.002)
        process.kill()  # somewhere in the fourth step
    finished = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)

    assert process.returncode == -signal.SIGKILL
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert repeatable(lines_of(out)) == repeatable(whole.told)
    assert same(weights(load_model(str(out / "final"))[0]), weights(whole._model))


@pytest.mark.integration
def test_two_processes_do_what_one_does(make: Any, start: Path, tmp_path: Path) -> None:
    options = {
        "steps": 3,
        "prompts": 4,
        "updates_per_batch": 2,
        "advantages": "turn_normalized",
        "loss": "gspo",
        "beta": 0.1,
        "max_draws": 2.0,
    }
    whole, out = make(**options), tmp_path / "both"
    player = whole.player
    player.engine = ScriptedEngine(
        player.model, player._chat.stop, lambda name: speech(player._chat._tokenizer, name)
    )
    whole.train()
    file = tmp_path / "program.py"
    file.write_text(program(start, out, recites=True, **options))

    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [sys.executable, *launch, str(file)], capture_output=True, text=True, env=ENVIRONMENT
    )

    assert done.returncode == 0, done.stderr[-3000:]
    both = repeatable(lines_of(out))
    assert [step for step, _ in both] == [1, 2, 3]
    for (_, split), (_, one) in zip(both, repeatable(whole.told), strict=True):
        assert split == pytest.approx(one, rel=1e-4, abs=1e-6)
    # AdamW divides by the root of the second moment: where a gradient is as small as its rounding,
    # the two differ by a part of the learning rate.
    final = weights(load_model(str(out / "final"))[0])
    for name, value in weights(whole._model).items():
        differences = (final[name] - value).abs() - 1e-5 * value.abs()
        assert differences.max() <= 2e-4, name
        assert (differences > 1e-4).float().mean() <= 1e-3, name


def test_tasks_that_cannot_be_dealt_evenly_are_refused() -> None:
    processes = Processes()
    processes.size = 3

    assert processes.share_of(6) == 2
    with pytest.raises(ConfigurationError, match="multiple of the number of processes"):
        processes.share_of(4)


def test_processes_that_do_not_find_each_other_are_refused(monkeypatch: Any) -> None:
    class Alone:
        """The state of accelerate in a single process."""

        process_index, num_processes, device = 0, 1, torch.device("cpu")

        def __init__(self, **options: Any) -> None:
            pass

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("adapters.reference.processes.PartialState", Alone)

    with pytest.raises(
        ConfigurationError, match="2 processes were started, but the process group has 1"
    ):
        Processes()
