"""The settings of `toolgym train`: from the command line, a file, Python, and by default."""

import json
import logging
import re
import warnings
from pathlib import Path
from typing import Any, get_args

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
import transformers

from adapters.commands.train import MAPPINGS, SECTIONS, read_config, settings_from
from adapters.commands.train_with_trl import check_settings, quiet_libraries, trl_options
from adapters.reference.losses import LOSSES
from adapters.training.algorithms.advantages import ESTIMATORS, TURN_ESTIMATORS
from adapters.training.settings import GrpoSettings, TrainSettings, read_settings, resolve
from adapters.trl import grpo_config
from tests.toolgym.commands.command_line import run_here
from toolgym import ConfigurationError
from toolgym.runs.checkpoints import write_origin

pytestmark = pytest.mark.torch

EXPLORE = "sqlgym/Explore-v0"
RECIPE = Path(__file__).parents[3] / "examples" / "recipes" / "smollm2.yaml"


def shown(*arguments: object) -> dict[str, tuple[Any, str]]:
    """The settings that `--show-settings` prints, each with its value and its source."""
    done = run_here("train", *arguments, "--show-settings", "--json")
    assert done.returncode == 0, done.stderr
    return {name: (each["value"], each["from"]) for name, each in json.loads(done.stdout).items()}


def test_every_setting_has_one_option_with_a_help_text_and_a_name_that_exists() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted([*listed, *MAPPINGS, "env_id", "separation"]) == sorted(
        TrainSettings.model_fields
    )
    text = " ".join(run_here("train", "--help").stdout.split())
    for name in listed:
        assert f"--{name.replace('_', '-')} " in text
        assert TrainSettings.model_fields[name].description
    for section in SECTIONS:
        assert f"{section}: --" in text
    loss, advantages = (GrpoSettings.model_fields[name] for name in ("loss", "advantages"))
    assert {*get_args(loss.annotation)} == {*LOSSES}
    assert {*get_args(advantages.annotation)} == {*ESTIMATORS, *TURN_ESTIMATORS}


def test_the_command_line_overrides_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("max_new_tokens: 33\nbeta: 5e-1\nstep_limit: 9\nenv_kwargs: {match: spider}\n")
    given = ["--steps", 7, "--beta", "0.25", "--config", file, "--set", "row_limit=4"]

    settings = shown(EXPLORE, *given, "--dataset", "bundled")

    assert settings.keys() == TrainSettings.model_fields.keys()
    assert settings["steps"] == (7, "--steps")
    assert settings["beta"] == (0.25, "--beta")
    assert settings["max_new_tokens"] == (33, "--config")
    environment = {"match": "spider", "step_limit": 9, "dataset": "bundled", "row_limit": 4}
    assert settings["env_kwargs"] == (environment, "--set")
    assert settings["sft_learning_rate"] == (0.008, "default of the tiny model")
    assert settings["max_completion_length"] == (512, "default of the tiny model on other data")
    assert settings["prompts"] == (4, "default")
    assert not list(tmp_path.glob("runs*"))


def test_the_same_settings_are_the_same_from_texts_yaml_and_python(tmp_path: Path) -> None:
    """So numbers may be written as in 1e-6, and null where it has a meaning."""
    values: dict[str, Any] = {
        "learning_rate": 3e-4,
        "max_draws": None,
        "betas": [0.8, 0.9],
        "guards": {"only_warn": True},
        "report_to": ["wandb"],
        "lora_targets": ["q_proj"],
        "lora": True,
    }
    file = tmp_path / "config.yaml"
    file.write_text(
        "learning_rate: 3e-4\nmax_draws: null\nbetas: [0.8, 0.9]\nguards: {only_warn: true}\n"
        "report_to: wandb\nlora_targets: [q_proj]\nlora: true\n"
    )
    texts = {**values, "learning_rate": "3e-4", "max_draws": "null", "betas": "[0.8, 0.9]"}
    texts |= {"guards": '{"only_warn": true}', "lora_targets": '["q_proj"]'}

    made = [settings_from([("", {"env_id": EXPLORE, **each})])[0] for each in (values, texts)]
    made.append(settings_from([("--config", {"env_id": EXPLORE, **read_config(file)})])[0])

    assert made[0] == made[1] == made[2]
    assert (made[0].max_draws, made[0].guards.only_warn) == (None, True)
    assert read_settings(json.loads(made[0].model_dump_json())) == made[0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"stpes": 3}, "unknown setting 'stpes'; did you mean steps"),
        ({"steps": -1}, "--steps must be at least 0"),
        ({"steps": 0, "sft_steps": 0}, "there is nothing to train"),
        ({"beta": float("nan")}, "--beta must be a finite number"),
        ({"loss": "worst"}, "--loss must be 'grpo', 'dapo'"),
        ({"loss": {"name": "dapo"}}, "--loss"),
        ({"betas": (0.9, 1.0)}, "betas must be"),
        ({"model": 7}, "--model must be a valid string"),
        ({"lora": "perhaps"}, "--lora must be a valid boolean"),
        ({"env_kwargs": "[" * 3000}, "--env-kwargs must be a mapping"),
        ({"env_kwargs": {"split": "dev"}}, "use --split and --eval-split"),
        ({"steps": 10**400}, "--steps must be at most"),
        ({"seed": 2**32}, "--seed must be less than"),
        ({"guards": {"idle_stebs": 3}}, "--guards.idle_stebs: unknown setting"),
        ({"control": "nothing"}, "--control must be 'shuffled-rewards'"),
        ({"group_size": 1}, "a group of one has no variance"),
        ({"advantages": "leave_one_out"}, "others need --trainer reference"),
        ({"at_once": 4}, "--at-once needs --trainer reference"),
        ({"trainer": "reference", "vllm": "server"}, "--vllm needs --trainer trl"),
        ({"trainer": "reference", "trl": {"delta": 1}}, "--trl needs --trainer trl"),
        ({"control": "shuffled-rewards", "advantages": "turn_normalized"}, "set other advantages"),
        ({"dtype": "bfloat16"}, "lose small updates; add --lora"),
        ({"chat_template": "hermes"}, "has its own chat template"),
        ({"patience": 2, "steps": 4}, "--patience needs evaluations during GRPO; set --eval-every"),
        ({"checkpoint": "best", "steps": 4}, "--checkpoint best needs evaluations"),
        ({"steps": 0, "eval_every": 2}, "--eval-every needs GRPO steps"),
        ({"eval_env_kwargs": {"split": "dev"}}, "use --split and --eval-split"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_with_what_to_do(
    values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        resolve(EXPLORE, **values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- beta", "one setting per line"),
        ("a: [", "cannot be read"),
        ("a: 2024-01-01", "cannot be read"),
        ("[" * 3000, "cannot be read"),
        ("a: &a [*a]", "cannot be read"),
        ("a: &a [x]\nb: *a", "YAML aliases are not allowed"),
        ("steps: 3\nsteps: 4", "steps is set twice"),
        ("5: 4", "one setting per line"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        read_config(file)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_config(tmp_path / "nowhere.yaml")


def test_numbers_and_choices_in_quotes_have_the_defaults_of_those_without() -> None:
    assert resolve(EXPLORE, steps="20", lora="true") == resolve(EXPLORE, steps=20, lora=True)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"env_kwargs": '{"dataset": "tiny"}'}, "env_kwargs must be a mapping"),
        ({"dataset": "tiny", "env_kwargs": {"dataset": "bundled"}}, "dataset is given twice"),
    ],
)
def test_arguments_of_the_environment_are_one_mapping_without_contradictions(
    values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        settings_from([("train()", {"env_id": EXPLORE, **values})])


def test_a_split_of_null_means_the_same_as_a_text_and_from_python() -> None:
    made = [
        settings_from([("", {"env_id": EXPLORE, "split": split})])[0] for split in (None, "null")
    ]
    assert made[0] == made[1]


def test_the_recipe_is_a_file_of_settings() -> None:
    settings = shown("--config", RECIPE, "--steps", 3, "--eval-set", "render=json")
    assert settings["env_id"][0] == "sqlgym/TextToSQL-v0"
    assert settings["steps"] == (3, "--steps")
    assert settings["sft_steps"] == (165, "--config")
    assert settings["env_kwargs"][0]["tools"] == ["answer"]
    evaluated = {"dataset": "bundled", "render": "json"}
    assert settings["eval_env_kwargs"] == (evaluated, "--eval-set")


def test_a_checkpoint_continues_with_the_data_set_of_its_run(tmp_path: Path) -> None:
    write_origin(tmp_path, EXPLORE, {"dataset": "tiny", "split": "dev"})
    settings = shown(EXPLORE, "--model", tmp_path)
    assert settings["env_kwargs"][0] == {"dataset": "tiny"}
    assert settings["split"][0] == "train"
    other = shown("sqlgym/TextToSQL-v0", "--model", tmp_path)
    assert other["env_kwargs"][0] == {"dataset": "bundled"}


def test_a_list_is_json_on_the_command_line() -> None:
    assert shown(EXPLORE, "--betas", "[0.9, 0.95]")["betas"] == ([0.9, 0.95], "--betas")


def test_adapters_learn_at_ten_times_the_rate_unless_a_rate_is_given() -> None:
    full, adapted = (resolve(EXPLORE, model="m/m", lora=lora) for lora in (False, True))
    assert adapted.has_adapter_from_start
    for name in ("learning_rate", "sft_learning_rate"):
        assert getattr(adapted, name) == pytest.approx(10 * getattr(full, name))
    assert resolve(EXPLORE, lora=True, learning_rate=1e-5).learning_rate == 1e-5
    assert not resolve(EXPLORE, lora=True).has_adapter_from_start  # the tiny model knows nothing
    later = resolve(EXPLORE, model="m/m", lora=True, sft_lora=False)
    assert not later.has_adapter_from_start
    assert later.sft_learning_rate == full.sft_learning_rate


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_means_the_same_with_both_trainers(loss: str, tmp_path: Path) -> None:
    settings = resolve(EXPLORE, loss=loss)
    config = grpo_config(**trl_options(settings, tmp_path))
    _, low, high = LOSSES[loss]
    is_gspo = config.importance_sampling_level == "sequence"
    assert ("gspo" if is_gspo else config.loss_type) == loss
    assert (config.epsilon, config.epsilon_high) == (low, 1 + high if loss == "cispo" else high)
    assert config.beta == settings.beta == GrpoSettings().beta == 0.01


def test_trl_gets_every_setting_that_it_has(tmp_path: Path) -> None:
    changed: dict[str, Any] = {
        "steps": 7,
        "group_size": 6,
        "prompts": 3,
        "updates_per_batch": 2,
        "entropy_bonus": 0.1,
        "lr_warmup_steps": 2,
        "lr_decay": "linear",
        "betas": (0.8, 0.9),
        "advantages": "group_normalized",
        "learn_from_unfinished": True,
        "gradient_checkpointing": True,
        "trl": {"delta": 4.0, "loss_type": "bnpo"},
    }
    config = grpo_config(**trl_options(resolve(EXPLORE, **changed), tmp_path))
    assert (config.max_steps, config.num_generations, config.num_iterations) == (7, 6, 2)
    assert (config.generation_batch_size, config.entropy_coef) == (18, 0.1)
    assert (config.warmup_steps, config.lr_scheduler_type) == (2, "linear")
    assert (config.adam_beta1, config.adam_beta2, config.scale_rewards) == (0.8, 0.9, "group")
    assert (config.mask_truncated_completions, config.gradient_checkpointing) == (False, True)
    assert (config.delta, config.loss_type) == (4.0, "bnpo")


@pytest.mark.parametrize("decay", ["constant", "linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 3])
def test_the_learning_rate_of_a_step_is_the_same_with_both_trainers(
    decay: str, warmup: int, tmp_path: Path
) -> None:
    from adapters.reference.train import ReferenceTrainer

    settings = resolve(EXPLORE, steps=8, lr_decay=decay, lr_warmup_steps=warmup, learning_rate=0.5)
    config = grpo_config(**trl_options(settings, tmp_path))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=settings.learning_rate)
    schedule = transformers.get_scheduler(
        config.lr_scheduler_type, optimizer, int(config.warmup_steps), config.max_steps
    )
    trainer = object.__new__(ReferenceTrainer)
    trainer._config = settings
    for trainer.step in range(1, 10):  # the last one is the rate after the last step
        assert trainer.learning_rate() == pytest.approx(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert decay == "constant" or trainer.learning_rate() == pytest.approx(0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"trl": {"bta": 1}}, "no argument 'bta'. Did you mean beta"),
        ({"trl": {"num_generations": 4}}, "num_generations is not allowed; use --group-size"),
        ({"trl": {"use_vllm": True}}, "use_vllm is not allowed; use --vllm"),
        ({"group_size": 2, "advantages": "group_normalized"}, "groups of 2 divided by"),
        ({"vllm": "server"}, "trl[vllm]"),
    ],
)
def test_what_trl_refuses_is_found_before_a_run_begins(values: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        check_settings(resolve(EXPLORE, **values))


def test_tasks_that_cannot_be_dealt_evenly_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigurationError, match="--prompts 3 cannot be divided among 2 processes"):
        check_settings(resolve(EXPLORE, prompts=3))


def test_a_training_that_fails_leaves_logging_and_warnings_as_they_were() -> None:
    logger = logging.getLogger("adapters.trl.config")

    def state() -> tuple[object, ...]:
        return logger.level, transformers.logging.get_verbosity(), list(warnings.filters)

    @quiet_libraries()
    def training() -> None:
        assert not logger.isEnabledFor(logging.WARNING)
        raise RuntimeError("out of memory")

    before = state()
    with pytest.raises(RuntimeError, match="out of memory"):
        training()
    assert state() == before
