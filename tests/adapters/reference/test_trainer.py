"""The reference trainer's loop: what it writes, how it goes on, and what the guards make it do."""

import dataclasses
import json
import math
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.reference import generation
from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.distributed import Processes
from adapters.reference.sampling import Sampler
from adapters.reference.trainer import ReferenceTrainer
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import train_tokenizer
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.models.chat_policy import load_model
from adapters.training.models.low_rank import lora_config
from adapters.training.models.supervised import WarmupSettings, warm_up
from adapters.training.models.tokenized_examples import examples_of
from tests.adapters.reference.scripted import Script
from toolgym import ConfigurationError, EnvironmentFault, Task, TaskSet, ToolEnv, tool
from toolgym.messages import episode_messages
from toolgym.runs.metrics import METRICS

pytestmark = pytest.mark.torch

DIGITS = "reference-tests/Digits-v0"
Metrics = list[tuple[int, dict[str, float]]]


class DigitEnv(ToolEnv[Task]):
    """Say the digit that nobody tells you."""

    def __init__(self, size: int = 5, **options: Any) -> None:
        tasks = [Task(f"d-{i}", f"Which digit? ({i})") for i in range(size)]
        super().__init__(TaskSet(tasks, name="digits"), **{"step_limit": 3, **options})

    def begin(self, task: Task) -> str:
        return task.question

    @tool
    def warmer(self, value: int) -> str:
        """Ask whether a digit is near.

        Args:
            value: A digit.
        """
        self.reach(1.0 - abs(value - 7) / 9)
        return "warm" if abs(value - 7) < 2 else "cold"

    @tool(terminal=True)
    def answer(self, value: int) -> str:
        """Submit the digit.

        Args:
            value: A digit.
        """
        return self.submit(value == 7)


if DIGITS not in gym.registry:
    gym.register(id=DIGITS, entry_point=DigitEnv)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small model that knows how to call, and nothing of the digit."""
    env, draw, transcripts = DigitEnv(), random.Random(0), []
    for number in range(150):
        env.reset(options={"task_id": f"d-{number % 5}"})
        for name in ["warmer", "answer"][number % 2 :]:
            env.step({"name": name, "arguments": {"value": draw.randrange(10)}})
        transcripts.append(episode_messages(env))
    tokenizer = train_tokenizer(transcripts, 400)
    model = build_model(tokenizer, size=TinySize(hidden=64, heads=2, feed_forward=96))
    examples = [e for t in transcripts for e in examples_of(t, env.tool_schemas(), tokenizer)]
    warm_up(model, examples, WarmupSettings(steps=60, batch=8, learning_rate=1e-2))
    folder = tmp_path_factory.mktemp("start")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def make(start: Path, tmp_path: Path) -> Callable[..., Any]:
    """Makes a trainer that keeps its metrics in `told`."""

    def build(**options: Any) -> Any:
        folder, told = options.pop("folder", tmp_path / "run"), list[Any]()
        hooks = {key: options.pop(key) for key in ("on_rollouts",) if key in options}
        watch = options.pop("watch", lambda step, numbers: None)
        rank = options.pop("rank", 0)
        hooks |= {"adapter": lora_config(rank, 2 * rank, "all-linear")} if rank else {}
        model, tokenizer = load_model(str(start), for_training=True)

        def on_metrics(step: int, numbers: dict[str, float]) -> None:
            told.append((step, numbers))
            watch(step, numbers)

        trainer: Any = ReferenceTrainer(
            options.pop("model", model),
            tokenizer,
            DIGITS,
            folder,
            settings(**options),
            on_metrics=on_metrics,
            **hooks,
        )
        trainer.told, trainer.model = told, trainer._model
        return trainer

    return build


def settings(**options: Any) -> ReferenceConfig:
    """A short run in which every rollout counts."""
    return reference_config(
        {
            "steps": 4,
            "group_size": 4,
            "prompts": 2,
            "max_completion_length": 40,
            "learning_rate": 1e-3,
            "save_every": 2,
            "workers": 1,
            "guards": {"only_warn": True},
            "sampling": None,
            **options,
        }
    )


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


def repeatable(told: Metrics) -> Metrics:
    """Without the numbers of the clock."""
    return [
        (step, {k: v for k, v in n.items() if METRICS[k].source != "clock"}) for step, n in told
    ]


def test_every_step_tells_its_numbers_by_the_names_of_the_vocabulary(make: Any) -> None:
    episodes: list[tuple[int, int]] = []
    loss = {"name": "dapo", "beta": 0.1}
    trainer = make(
        steps=3,
        loss=loss,
        learn_from_unfinished=True,
        on_rollouts=lambda step, some: episodes.append((step, len(some))),
    )
    before = weights(trainer.model)

    trainer.train()

    assert [step for step, _ in trainer.told] == [1, 2, 3]
    assert episodes == [(1, 4), (2, 4), (3, 4)]
    for _, numbers in trainer.told:
        assert not numbers.keys() - METRICS.keys()
        assert {"reward", "validity", "loss", "grad_norm", "entropy", "kl"} <= set(numbers)
        assert {"learning_rate", "rollout_seconds", "peak_memory", "dead_groups"} <= set(numbers)
    first = trainer.told[0][1]
    assert first["kl"] == pytest.approx(0.0, abs=1e-6)
    assert trainer.told[-1][1]["kl"] > 1e-6
    assert first["clip_low"] == first["clip_high"] == 0.0
    assert first["learnt_tokens"] == pytest.approx(8 * first["completion_length"])
    assert not same(before, weights(trainer.model))


def test_the_model_learns_what_is_rewarded(make: Any) -> None:
    # Seeds 0 to 7 end between .66 and .80.
    trainer = make(
        steps=20,
        updates_per_batch=2,
        group_size=16,
        prompts=2,
        learning_rate=1.5e-3,
        save_every=100,
    )

    trainer.train()

    accuracy = [numbers["accuracy"] for _, numbers in trainer.told if "accuracy" in numbers]
    assert sum(accuracy[:2]) / 2 < 0.3
    assert sum(accuracy[-3:]) / 3 > 0.5


def test_groups_of_one_learn_from_the_other_tasks_of_the_batch(make: Any) -> None:
    trainer = make(
        advantages="batch_normalized",
        group_size=1,
        prompts=8,
        steps=2,
        save_every=100,
    )
    before = weights(trainer.model)

    trainer.train()

    assert [numbers["updates"] for _, numbers in trainer.told] == [1.0, 2.0]
    assert all("dead_groups" not in numbers for _, numbers in trainer.told)
    assert not same(before, weights(trainer.model))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"advantages": "leave_one_out"}, "'leave_one_out' nobody to compare .*batch_normalized"),
        ({"sampling": {}}, "every group, .* set sampling=None"),
        ({"prompts": 1}, "a batch of one rollout: set prompts"),
    ],
)
def test_groups_of_one_that_could_teach_nothing_are_refused(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        settings(**{"group_size": 1, "advantages": "batch_normalized", **options})


def test_a_loss_that_divides_by_a_constant_takes_the_room_of_a_rollout() -> None:
    for loss in ("dr_grpo", {"name": "dr_grpo"}, {"name": "dapo", "aggregation": "constant"}):
        assert settings(loss=loss, max_completion_length=60).loss.constant_length == 60
    told = {"name": "dr_grpo", "constant_length": 9}
    assert settings(loss=told).loss.constant_length == 9
    assert settings(loss="dapo").loss.constant_length is None


def test_the_first_update_sees_the_ratio_one(make: Any) -> None:
    """What was recorded while playing is what the update computes."""
    trainer = make(loss={"name": "grpo", "epsilon_low": 1e-4, "epsilon_high": 1e-4}, steps=1)

    trainer.train()

    numbers = trainer.told[0][1]
    assert numbers["clip_low"] == numbers["clip_high"] == 0.0


def test_later_updates_of_a_batch_tell_of_no_rollouts(make: Any) -> None:
    trainer = make(updates_per_batch=2, steps=3)

    trainer.train()

    told = [numbers for _, numbers in trainer.told]
    assert ["reward" in numbers for numbers in told] == [True, False, True]
    assert all("loss" in numbers and "learning_rate" in numbers for numbers in told)
    assert told[0]["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert abs(told[1]["ratio"] - 1.0) > 1e-5


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"updates_per_batch": 2, "prompts": 1, "seed": 3}, id="plain"),
        pytest.param(
            {"dtype": "bfloat16", "decay": "cosine", "ramp": 1}
            | {"loss": {"name": "gspo", "beta": 0.1}, "sampling": {"max_draws": 2.0}},
            id="half precision",
            marks=pytest.mark.integration,
        ),
        pytest.param(
            {"dtype": "bfloat16", "rank": 4},
            id="adapter",
            marks=pytest.mark.integration,
        ),
    ],
)
def test_a_run_that_was_interrupted_ends_as_one_that_was_not(
    options: dict[str, Any], make: Any, tmp_path: Path
) -> None:
    whole = make(folder=tmp_path / "whole", **options)
    whole.train()

    def interrupt(step: int, numbers: dict[str, float]) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        make(watch=interrupt, **options).train()
    again = make(**options)
    torch.manual_seed(12345)
    again.train()

    assert repeatable(again.told) == repeatable(whole.told)[2:]
    assert same(weights(again.model), weights(whole.model))


def test_a_resumed_run_has_the_random_numbers_and_the_faults_of_its_checkpoint(make: Any) -> None:
    trainer = make(steps=1, max_completion_length=3)
    trainer._batch_sampler._player.play = _lost(trainer._batch_sampler._player.play)
    trainer.train()
    states, faults = torch.get_rng_state(), trainer._faults.state_dict()
    torch.manual_seed(12345)

    again = make(steps=1)
    again.train()

    assert torch.equal(torch.get_rng_state(), states)
    assert again._faults.state_dict() == faults == {"steps": [[8, 8]]}


SCRIPT = """
import json, os, signal, sys, threading
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, {root!r})
from adapters.reference import generation
from adapters.reference.config import reference_config
from adapters.reference.trainer import ReferenceTrainer
from adapters.training.models.chat_policy import load_model
from tests.adapters.reference import test_trainer
model, tokenizer = load_model({start!r}, for_training=True)
if {recites}:
    generation.Sampler = test_trainer.recite(tokenizer)
def tell(step, numbers):
    print(json.dumps([step, numbers]), flush=True)
    if step == {killed_after}:
        threading.Timer(0.005, os.kill, (os.getpid(), signal.SIGKILL)).start()
config = reference_config(json.loads({config!r}))
ReferenceTrainer(model, tokenizer, {env!r}, Path({folder!r}), config, on_metrics=tell).train()
"""


def script(
    start: Path,
    folder: Path,
    options: dict[str, Any],
    recites: bool = False,
    killed_after: int | None = None,
) -> str:
    """A program that trains, and is killed in the step after the given one."""
    return SCRIPT.format(
        root=str(Path(__file__).parents[3]),
        start=str(start),
        config=json.dumps(settings(**options).model_dump(mode="json")),
        env=DIGITS,
        folder=str(folder),
        recites=recites,
        killed_after=killed_after,
    )


def recite(tokenizer: Any) -> Callable[..., Sampler]:
    """A sampler that says a whole episode, decided by the rollout's name and by nothing else.

    So runs that round differently are told apart by what they learn, not by what they drew.
    """

    def said(name: str) -> list[int]:
        draw = random.Random(name)
        names = ["warmer", "answer"][draw.randrange(2) :]
        calls = [{"name": each, "arguments": {"value": draw.randrange(6, 9)}} for each in names]
        text = "".join(f"<tool_call>\n{json.dumps(c)}\n</tool_call><|im_end|>" for c in calls)
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    def sampler(names: Sequence[str], *draw: Any) -> Sampler:
        return Script([said(name) for name in names], names, *draw)

    return sampler


@pytest.mark.nightly
def test_kill_9_in_the_middle_of_a_step_costs_no_digit(
    make: Any, start: Path, tmp_path: Path
) -> None:
    options = {"steps": 6, "sampling": {"max_draws": 2.0}}
    whole = make(folder=tmp_path / "whole", **options)
    whole.train()

    def run(**how: Any) -> tuple[int, Metrics]:
        command = [sys.executable, "-c", script(start, tmp_path / "run", options, **how)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
        lines = done.stdout.splitlines()
        return done.returncode, [tuple(json.loads(line)) for line in lines]

    killed, told = run(killed_after=3)  # somewhere in the fourth step
    finished, resumed = run()

    assert (killed, finished) == (-signal.SIGKILL, 0)
    assert resumed[0][0] in (3, 5)
    told = [(step, n) for step, n in told if step < resumed[0][0]] + resumed
    assert repeatable(told)[-4:] == repeatable(whole.told)[-4:]
    final = load_model(str(tmp_path / "run" / "checkpoint-6"), for_training=True)[0]
    assert same(weights(final), weights(whole.model))


def in_two_processes(
    start: Path, folder: Path, options: dict[str, Any], recites: bool = False
) -> Metrics:
    """Train under torchrun; what process 0 told."""
    checked = "\nimport torch.distributed\nassert torch.distributed.get_world_size() == 2\n"
    (folder / "train.py").write_text(script(start, folder / "run", options, recites) + checked)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [sys.executable, *launch, str(folder / "train.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [tuple(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("[")]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"steps": 1}, id="one update", marks=pytest.mark.nightly),
        pytest.param(
            {
                "steps": 3,
                "prompts": 4,
                "updates_per_batch": 2,
                "advantages": "turn_normalized",
                "loss": {"name": "gspo", "beta": 0.1},
                "sampling": {"max_draws": 1.0},
            },
            id="a short run",
            marks=pytest.mark.integration,
        ),
    ],
)
def test_two_processes_do_what_one_does(
    options: dict[str, Any], make: Any, start: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    tokenizer = load_model(str(start))[1]
    with monkeypatch.context() as patch:
        patch.setattr(generation, "Sampler", recite(tokenizer))
        whole = make(folder=tmp_path / "whole", **options)
        whole.train()

    told = in_two_processes(start, tmp_path, options, recites=True)

    assert all(numbers["grad_norm"] > 0 for _, numbers in told)
    assert [step for step, _ in told] == [step for step, _ in whole.told]
    for (_, split), (_, one) in zip(repeatable(told), repeatable(whole.told), strict=True):
        assert split == pytest.approx(one, rel=1e-4, abs=1e-6)
    last = tmp_path / "run" / f"checkpoint-{options['steps']}"
    both = load_model(str(last), for_training=True)[0].state_dict()
    # AdamW divides by the root of the second moment: where a gradient is as small as its rounding,
    # the two differ by a part of the rate, at once in a weight or two and later on in more.
    usual, most = (1e-6, 5e-5) if options["steps"] == 1 else (1e-4, 1e-4)
    for name, value in weights(whole.model).items():
        differences = (both[name] - value).abs() - 1e-5 * value.abs()
        assert differences.max() <= most, name
        assert (differences > usual).float().mean() <= 1e-3, name


@pytest.mark.nightly
def test_two_processes_refill_together(start: Path, tmp_path: Path) -> None:
    options = {"steps": 3, "sampling": {"max_draws": 3.0}, "max_completion_length": 24}

    told = in_two_processes(start, tmp_path, options)

    assert [step for step, _ in told] == [1, 2, 3]
    assert max(numbers["sampling_rounds"] for _, numbers in told) > 1
    for _, numbers in told:
        assert numbers["drawn_groups"] <= 6
        assert numbers["drawn_groups"] - numbers["dropped_groups"] - numbers["surplus_groups"] == (
            2 - numbers["masked_groups"]
        )


def test_tasks_that_cannot_be_dealt_evenly_are_refused() -> None:
    processes = Processes()
    processes.size = 3

    assert processes.share_of(6) == 2
    with pytest.raises(ConfigurationError, match="multiple of the number of processes"):
        processes.share_of(4)


def test_processes_that_do_not_find_each_other_are_refused(monkeypatch: Any) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("adapters.reference.distributed.PartialState", _Alone)

    with pytest.raises(ConfigurationError, match="2 processes were started, and they found 1"):
        Processes()


class _Alone:
    """What accelerate says where it was told of no other process."""

    process_index, num_processes, device = 0, 1, torch.device("cpu")

    def __init__(self, **options: Any) -> None:
        pass


def test_a_checkpoint_that_was_cut_off_is_passed_over(make: Any, tmp_path: Path) -> None:
    make(steps=2, save_every=1).train()
    folder = tmp_path / "run"
    assert "checkpoint-2" in [path.name for path in folder.iterdir()]
    (folder / "checkpoint-2" / "trainer_state.json").unlink()
    (folder / ".checkpoint-3.new").mkdir()

    again = make(steps=2)
    again.train()

    assert [step for step, _ in again.told] == [2]


def test_a_run_goes_on_with_the_same_tasks_only(make: Any) -> None:
    make(steps=1).train()

    with pytest.raises(ConfigurationError, match="resume with the same tasks and seed"):
        make(steps=2, seed=7).train()


def test_a_checkpoint_is_a_model_folder(make: Any, tmp_path: Path) -> None:
    trainer = make(steps=1)
    trainer.train()

    model, tokenizer = load_model(str(tmp_path / "run" / "checkpoint-1"))

    assert same(weights(model), weights(trainer.model))
    assert tokenizer.chat_template == trainer._tokenizer.chat_template


def test_broken_weights_are_undone(make: Any) -> None:
    """A weight becomes nan, as after a fault of the machine; the guards see it and go back."""
    trainer: Any = None

    def damage(step: int, numbers: dict[str, float]) -> None:
        if step == 3:
            with torch.no_grad():
                next(trainer.model.parameters())[0, 0] = math.nan

    trainer = make(
        steps=5,
        watch=damage,
        guards={"actions": {"gradient": ["roll_back"]}},
    )
    trainer.train()

    told = dict(trainer.told)
    assert told[4]["nonfinite_weights"] == 1.0
    assert told[4]["guard_severity"] == 4.0
    assert told[5]["nonfinite_weights"] == 0.0
    assert told[5]["roll_backs"] == 1.0
    assert told[5]["learning_rate"] == pytest.approx(0.5e-3)
    assert all(value.isfinite().all() for value in weights(trainer.model).values())


def test_an_adapter_is_what_a_checkpoint_holds_and_is_merged_at_the_end(
    make: Any, tmp_path: Path
) -> None:
    trainer = make(steps=2, rank=4, loss={"name": "dapo", "beta": 0.1}, learning_rate=1e-2)
    before = weights(trainer.model)

    trainer.train()

    told = [numbers for _, numbers in trainer.told]
    assert told[0]["kl"] == pytest.approx(0.0, abs=1e-6)  # the reference is the model without it
    assert told[-1]["kl"] > 1e-6
    folder = tmp_path / "run" / "checkpoint-2"
    assert (folder / "adapter_model.safetensors").is_file()
    assert not (folder / "model.safetensors").exists()
    merged = weights(trainer.model)
    assert not [name for name in merged if "lora" in name]
    plain = {name.replace(".base_layer", ""): value for name, value in before.items()}
    moved = {name for name, value in merged.items() if not torch.equal(value, plain[name])}
    assert moved
    assert all(name.endswith("_proj.weight") for name in moved)


def test_going_back_restores_an_adapter(make: Any) -> None:
    trainer = make(steps=4, rank=4)
    trainer._save()
    before = weights(trainer.model)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            if parameter.requires_grad:
                parameter.add_(1.0)
    trainer._guards.choose_snapshot = lambda steps: max(steps)

    trainer._roll_back()

    assert same(before, weights(trainer.model))


def test_without_healthy_weights_the_run_stops(make: Any) -> None:
    trainer = make(steps=2)
    trainer._guards.choose_snapshot = lambda steps: None

    with pytest.raises(TrainingStopped, match=r"(?s)there are none.*Lower save_every"):
        trainer._roll_back()


def test_an_update_that_is_left_out_moves_nothing(make: Any) -> None:
    """In the third step no rollout can end: the gradient is 0, but there is momentum."""
    trainer: Any = None
    kept: list[dict[str, torch.Tensor]] = []

    def narrow(step: int, numbers: dict[str, float]) -> None:
        kept.append(weights(trainer.model))
        if step == 2:
            player = trainer._batch_sampler._player
            player.settings = dataclasses.replace(player.settings, max_tokens=3)

    trainer = make(steps=3, watch=narrow, guards={"actions": {"validity": ()}})
    trainer.train()

    told = dict(trainer.told)
    assert told[2]["grad_norm"] > 0.0
    assert told[3]["grad_norm"] == 0.0
    assert told[3]["skipped_updates"] == 1.0
    assert not same(kept[0], kept[1])
    assert same(kept[1], kept[2])
    assert same(kept[2], weights(trainer.model))


def test_the_guards_end_a_run_with_a_diagnosis(make: Any) -> None:
    guards = {"actions": {"idle": ["stop"]}, "idle_steps": 1}
    trainer = make(steps=4, max_completion_length=3, guards=guards)

    with pytest.raises(TrainingStopped, match="no turn had a valid call"):
        trainer.train()

    assert [step for step, _ in trainer.told] == [1]


def test_places_that_cannot_be_filled_take_no_part_in_the_loss(make: Any) -> None:
    """Nobody can finish a call in three tokens, so all groups are dead."""
    trainer = make(steps=1, sampling={"max_draws": 2.0}, max_completion_length=3)

    trainer.train()

    numbers = trainer.told[0][1]
    assert (numbers["drawn_groups"], numbers["dropped_groups"]) == (4.0, 4.0)
    assert numbers["rollouts"] == 16.0  # of the groups that were dropped, too
    assert (numbers["masked_groups"], numbers["learnt_tokens"]) == (2.0, 0.0)
    assert numbers["grad_norm"] == 0.0
    assert "loss" not in numbers


def test_shuffled_rewards_are_the_same_rewards_elsewhere(make: Any) -> None:
    plain = make(control=None, steps=1)
    shuffled = make(control="shuffled-rewards", steps=1)

    one, other = (trainer._batch_sampler.sample(1) for trainer in (plain, shuffled))

    rewards = [[rollout.reward for rollout in gathered.rollouts] for gathered in (one, other)]
    assert sorted(rewards[0]) == sorted(rewards[1])
    assert [r.completion for r in one.rollouts] == [r.completion for r in other.rollouts]


def test_an_environment_that_keeps_failing_ends_the_run(make: Any) -> None:
    trainer = make(steps=20, max_completion_length=3)
    trainer._batch_sampler._player.play = _lost(trainer._batch_sampler._player.play)

    with pytest.raises(EnvironmentFault, match=r"failed in 40 of the last 40 .*the disk is gone"):
        trainer.train()


def _lost(playing: Any) -> Any:
    """As if the environment had failed in every rollout."""

    def play_all(requests: Any) -> Any:
        lost = {"reward": math.nan, "episode": None, "fault": "the disk is gone"}
        return [dataclasses.replace(rollout, **lost) for rollout in playing(requests)]

    return play_all


def test_gradient_checkpointing_changes_no_gradient(make: Any, tmp_path: Path) -> None:
    plain, saving = (
        make(gradient_checkpointing=flag, steps=1, folder=tmp_path / str(flag))
        for flag in (False, True)
    )
    plain.train()
    saving.train()

    for (_, one), (_, other) in zip(plain.told, saving.told, strict=True):
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-5)
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-7)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
