"""`--set` and `--config` of `toolgym train`: what is whose."""

import json
import logging
import warnings
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import transformers

from adapters.commands.train_options import (
    OWN_OPTIONS,
    arguments_of,
    divide_options,
    read_config,
)
from adapters.commands.train_run import reference_options
from adapters.commands.train_with_trl import (
    ROLLOUT_OPTIONS,
    check_settings,
    grpo_options,
    quiet_libraries,
)
from adapters.reference.losses import LOSSES
from adapters.training.runs.preparation import adapter_config
from adapters.training.settings import (
    TrainSettings,
    read_settings,
    resolve,
)
from adapters.trl import grpo_config
from tests.toolgym.commands.command_line import run_here
from toolgym import ConfigurationError
from toolgym.runs.checkpoints import write_origin

pytestmark = pytest.mark.torch

EXPLORE = "sqlgym/Explore-v0"
RECIPE = Path(__file__).parents[3] / "examples" / "recipes" / "smollm2.yaml"


def test_a_name_is_the_environments_or_else_the_trainers() -> None:
    pairs = ["step_limit=9", "beta=0.02", 'guards={"idle_steps": 3}', "loss_type=bnpo"]
    divided = divide_options(EXPLORE, "trl", pairs, {})
    assert divided.environment == ["step_limit=9"]
    assert divided.trainer == {"beta": 0.02, "guards": {"idle_steps": 3}, "loss_type": "bnpo"}


def test_a_file_holds_arguments_of_the_trainer_and_set_goes_before_it(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("beta: 1e-2\nloss_type: bnpo\ntop_k: 5\nguards:\n  idle_steps: 3\n")
    config = read_config(file)
    divided = divide_options(EXPLORE, "trl", ["beta=0.5"], config)
    assert divided.environment == []
    options = {"beta": 0.5, "loss_type": "bnpo", "top_k": 5, "guards": {"idle_steps": 3}}
    assert divided.trainer == options
    assert divided.sources == {**dict.fromkeys(options, "--config"), "beta": "--set"}
    assert divide_options(EXPLORE, "trl", None, config).trainer["beta"] == 0.01


def test_settings_without_an_option_are_reached_by_set_and_by_the_file() -> None:
    config = {"lora_rank": 4, "sft_batch": 2}
    divided = divide_options(EXPLORE, "trl", ["sft_batch=3", "dtype=bfloat16"], config)
    assert (divided.environment, divided.trainer) == ([], {})
    assert divided.settings == {"lora_rank": 4, "sft_batch": 3, "dtype": "bfloat16"}
    settings = resolve(EXPLORE, lora=True, **divided.settings)
    assert (settings.lora_rank, settings.sft_batch, settings.dtype) == (4, 3, "bfloat16")
    adapted = adapter_config(settings)
    assert (adapted.r, adapted.lora_alpha, adapted.target_modules) == (4, 32, "all-linear")


def test_half_precision_is_for_adapters_and_for_the_reference_trainer() -> None:
    with pytest.raises(ConfigurationError, match="rounds small updates away: add --lora"):
        resolve(EXPLORE, dtype="bfloat16")
    with pytest.raises(ConfigurationError, match="Muon updates matrices in float32"):
        resolve(EXPLORE, model="m/m", trainer="reference", sft_matrix_rate=0.1, dtype="bfloat16")
    assert resolve(EXPLORE, model="m/m", trainer="reference").dtype == "auto"
    assert resolve(EXPLORE, trainer="reference").dtype == "float32"
    assert resolve(EXPLORE, model="m/m").dtype == "float32"


def test_the_warm_up_trains_an_adapter_where_the_reference_trainer_does() -> None:
    both = resolve(EXPLORE, model="m/m", trainer="reference", lora=True)
    full = resolve(EXPLORE, model="m/m", trainer="reference")
    assert both.has_adapter_from_start
    assert both.sft_learning_rate == pytest.approx(10 * full.sft_learning_rate)
    for other in ({"model": None}, {"trainer": "trl"}):
        settings = resolve(
            EXPLORE, **{"model": "m/m", "trainer": "reference", "lora": True, **other}
        )
        assert not settings.has_adapter_from_start
    later = resolve(EXPLORE, model="m/m", trainer="reference", lora=True, sft_lora=False)
    assert not later.has_adapter_from_start
    assert later.sft_learning_rate == full.sft_learning_rate
    assert later.learning_rate == both.learning_rate == pytest.approx(10 * full.learning_rate)


def test_what_a_run_would_use_is_shown_with_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("max_new_tokens: 33\nbeta: 0.5\n")
    given = ["--steps", 7, "--set", "sft_learning_rate=0.001", "--config", file]
    done = run_here("train", EXPLORE, *given, "--show-settings", "--dataset", "bundled")
    assert done.returncode == 0, done.stderr
    rows = {row.split()[0]: row.split(None, 2)[1:] for row in done.stdout.splitlines()}
    assert rows.keys() - {"setting"} == set(TrainSettings.model_fields)
    assert [part.strip() for part in rows["steps"]] == ["7", "--steps"]
    assert [part.strip() for part in rows["max_new_tokens"]] == ["33", "--config"]
    assert [part.strip() for part in rows["sft_learning_rate"]] == ["0.001", "--set"]
    assert rows["prompts"][1].strip() == "default for the tiny model"
    assert rows["max_completion_length"][1].strip() == "default for the tiny model on other data"
    assert not list(tmp_path.glob("runs*"))


@pytest.mark.parametrize(
    ("pairs", "text", "words"),
    [
        (["bta=1"], None, "has no argument 'bta', and neither have the settings .* beta"),
        (["max_steps=3"], None, "set by --steps"),
        (["use_vllm=true"], None, "set by --vllm"),
        (["beta"], None, "NAME=VALUE"),
        (None, "num_generations: 4", "set by --group-size"),
        (None, "- beta", "one a line"),
        (None, "a: [", "cannot be read"),
        (None, "a: 2024-99-99", "cannot be read"),
        (None, "dataset: 2024-01-01", "cannot be read"),
        (None, "[" * 3000, "cannot be read"),
        (None, "a: &a [*a]", "cannot be read"),
        (None, "steps: 3\nsteps: 4", "holds steps twice"),
        (None, "out: runs/a", "only be given on the command line"),
        (None, "env_id: 5", "env_id must be a str, got 5"),
        (None, 'lora: "no"', "lora must be a bool, got 'no'"),
        (None, "eval_set: 5", "eval_set must be a dict, got 5"),
    ],
)
def test_what_is_nobodys_is_refused_with_a_hint(
    pairs: list[str] | None, text: str | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text or "")
    with pytest.raises(ConfigurationError, match=words):
        divide_options(EXPLORE, "trl", pairs, read_config(file) if text else {})


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_config(tmp_path / "nowhere.yaml")


def test_a_file_gives_numbers_texts_and_lists_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text('learning_rate: 3e-4\ndataset: "2024"\nreport_to: wandb\nlora: true\n')
    expected = {"learning_rate": 3e-4, "dataset": "2024", "report_to": ["wandb"], "lora": True}
    assert read_config(file) == expected


def test_the_recipe_is_a_file_of_options_and_the_command_line_goes_before_it() -> None:
    given = ["--config", RECIPE, "--steps", 3, "--set", "tokens_per_pass=9"]
    given += ["--eval-set", "render=json"]
    done = run_here("train", *given, "--show-settings", "--json")
    assert done.returncode == 0, done.stderr
    shown = {name: (each["value"], each["from"]) for name, each in json.loads(done.stdout).items()}
    assert shown["env_id"][0] == "sqlgym/TextToSQL-v0"
    assert shown["steps"] == (3, "--steps")
    assert shown["model"] == ("smollm2", "--config")
    assert shown["sft_steps"] == (165, "--config")
    assert shown["preflight"][0] is True
    environment, evaluated = shown["env_kwargs"][0], shown["eval_env_kwargs"]
    assert environment["tools"] == ["answer"]
    assert evaluated == ({"dataset": "bundled", "render": "json"}, "--eval-set")
    options = shown["trainer_options"][0]
    assert (options["tokens_per_pass"], options["loss"]) == (9, {"name": "dapo", "beta": 0.0})


def test_groups_of_one_can_be_asked_for_on_the_command_line_of_the_reference_trainer_only() -> None:
    pairs = ["advantages=batch_normalized", "max_draws=null"]
    own = divide_options(EXPLORE, "reference", pairs, {}).trainer
    asked = {"group_size": 1, "trainer_options": own}
    config = reference_options(resolve(EXPLORE, trainer="reference", **asked))

    assert (config.group_size, config.advantages, config.max_draws) == (1, "batch_normalized", None)
    with pytest.raises(ConfigurationError, match=r"--group-size: must be at least 2; .* --trainer"):
        resolve(EXPLORE, trainer="trl", **asked)


def test_every_argument_of_trls_config_can_be_reached() -> None:
    assert {"beta", "delta", "vllm_server_port", "optim", "deepspeed", "top_entropy_quantile"} < {
        *arguments_of("trl")
    }
    assert {"max_steps", "num_generations", "vllm_mode"} < {*arguments_of("trl")} & {*OWN_OPTIONS}
    assert {"max_draws", "workers", "guards", "snapshot_steps"} < {*arguments_of("trl")}


def test_both_trainers_have_the_same_defaults(tmp_path: Path) -> None:
    """As far as a setting of the one has a counterpart in the other."""
    one = grpo_config(**grpo_options(resolve(EXPLORE), tmp_path))
    other = reference_options(resolve(EXPLORE))
    assert one.loss_type == other.loss.name
    assert one.beta == other.loss.beta
    assert (one.epsilon, one.epsilon_high) == LOSSES[other.loss.name][1:]
    assert one.mask_truncated_completions is not other.learn_from_unfinished
    assert other.max_draws == ROLLOUT_OPTIONS["max_draws"]
    assert check_settings(resolve(EXPLORE)) == other.guards
    rollouts = other.prompts * other.group_size
    assert (one.num_generations, one.generation_batch_size) == (other.group_size, rollouts)
    assert (one.adam_beta1, one.adam_beta2) == other.betas
    assert (one.learning_rate, one.weight_decay, one.max_grad_norm, one.temperature) == (
        *(other.learning_rate, other.weight_decay, other.max_grad_norm, other.temperature),
    )


def test_an_adapter_learns_at_ten_times_the_rate_unless_a_rate_is_given() -> None:
    full = resolve(EXPLORE, model="Qwen/Qwen3-0.6B")
    assert resolve(EXPLORE, model="Qwen/Qwen3-0.6B", lora=True).learning_rate == pytest.approx(
        10 * full.learning_rate
    )
    assert resolve(EXPLORE, lora=True, learning_rate=1e-5).learning_rate == 1e-5


def test_what_the_trainer_refuses_is_told_before_a_run_begins() -> None:
    with pytest.raises(ConfigurationError, match="idle_stebs"):
        check_settings(resolve(EXPLORE, trainer_options={"guards": {"idle_stebs": 3}}))
    for own in ({"max_draws": 0.5}, {"max_draws": "3"}, {"workers": 0}, {"snapshot_steps": None}):
        with pytest.raises(ConfigurationError, match=r"must be at least 1; got"):
            check_settings(resolve(EXPLORE, trainer_options=own))
    check_settings(resolve(EXPLORE, trainer_options={"max_draws": None}))
    with pytest.raises(ConfigurationError, match=r"37 of its 38"):
        check_settings(resolve(EXPLORE, group_size=2, trainer_options={"scale_rewards": "group"}))
    with pytest.raises(ConfigurationError, match=r"trl\[vllm\]"):
        check_settings(resolve(EXPLORE, vllm="server"))
    check_settings(resolve(EXPLORE, lora=True))


def test_tasks_that_cannot_be_dealt_evenly_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigurationError, match="--prompts 3 cannot be dealt to 2 processes"):
        check_settings(resolve(EXPLORE, prompts=3))


def test_runs_of_before_these_options_can_be_resumed() -> None:
    saved = resolve(EXPLORE).model_dump()
    for name in ("trainer_options", "lora", "vllm"):
        del saved[name]
    assert read_settings(saved) == resolve(EXPLORE)


def test_a_training_that_ends_or_fails_leaves_logging_and_warnings_as_they_were() -> None:
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


def test_a_checkpoint_goes_on_with_the_data_set_of_its_run(tmp_path: Path) -> None:
    write_origin(tmp_path, EXPLORE, {"dataset": "tiny", "split": "dev"})
    options = ("--model", str(tmp_path), "--show-settings", "--json")
    shown = json.loads(run_here("train", EXPLORE, *options).stdout)
    assert shown["env_kwargs"]["value"] == {"dataset": "tiny"}
    assert shown["split"]["value"] == "train"
    shown = json.loads(run_here("train", "sqlgym/TextToSQL-v0", *options).stdout)
    assert shown["env_kwargs"]["value"] == {"dataset": "bundled"}
