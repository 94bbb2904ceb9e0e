"""The recipe for SkyRL: its own side, and SkyRL's classes where they are installed."""

import concurrent.futures
import json
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("yaml", reason="needs the extra dev")

import yaml
from toolgym_trajectory import FAULT, GRID, Trajectory, balance, mean_metrics, settle

from adapters.export.rows import ENV_CLASS
from tests.adapters.scripted_contract import Played, PlayedTurn, check_episode
from tests.adapters.scripted_episodes import EXPLORE, HUTS, OPERATE, SCRIPTS, ScriptedEpisode, call
from tests.examples.recipe_play import (
    HOSTILE,
    LOOK,
    RECIPES,
    exported,
    imported_beside,
    installed_as,
    run_script,
)
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.messages import tools_in_words
from toolgym.registration import make

FOLDER = RECIPES / "skyrl"
FAULTY = next(script for script in SCRIPTS if script.name == "fault")
RIGHT = call("answer", value=1539)
ENDS = "no model is asked for more when the episode is over"
EXEMPT = dict.fromkeys(("after_the_end", "budget_spent"), ENDS)


def extras_of(script: ScriptedEpisode) -> dict[str, Any]:
    """The columns of a row of this task."""
    kwargs = json.dumps(script.arguments)
    return {"env_id": script.env_id, "task_id": script.task_id, "env_kwargs": kwargs}


def begun(**extras: Any) -> Trajectory:
    trajectory = Trajectory({"env_id": EXPLORE, "task_id": HUTS, **extras})
    assert trajectory.begin()
    return trajectory


def play_trajectory(script: ScriptedEpisode) -> Played:
    trajectory = Trajectory(extras_of(script))
    prompt = trajectory.begin()[1]["content"]
    turns = []
    for message in script.messages:
        observation, reward, over = trajectory.take(message)
        if trajectory.has_fault:
            break
        known = PlayedTurn.of(trajectory.env.episode.turns[-1], over)
        turns.append(PlayedTurn(observation, reward, known.repairs, known.errors, over))
    figures = trajectory.metrics()
    correct = trajectory.env.episode.ledger.correct
    return Played(prompt, tuple(turns), figures.get("score", math.nan), correct)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_trajectory_changes_nothing_of_an_episode(script: ScriptedEpisode) -> None:
    check_episode(play_trajectory, script, {})


def test_exported_rows_are_played() -> None:
    for row in exported("skyrl", step_limit=9):
        assert row.pop("env_class") == ENV_CLASS
        question = row.pop("prompt")[0]["content"]
        trajectory = Trajectory({**row, "max_turns": 9})
        system, user = trajectory.begin()

        assert user["content"].startswith(question)
        assert system["content"].endswith(tools_in_words(make(EXPLORE).tools))
        assert trajectory.env.step_limit == 9


def test_other_rows_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="toolgym export rows ENV --for skyrl"):
        Trajectory({"data_source": "gsm8k"})


def test_fewer_turns_than_calls_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"generator.max_turns is 1, .*set it to 15"):
        begun(max_turns=1)


def test_an_episode_that_a_limit_on_tokens_cut_off_is_closed_and_pays_for_it() -> None:
    trajectory = begun()
    _, reward, over = trajectory.take(LOOK)

    figures = trajectory.metrics()
    assert (over, figures["answered"]) == (False, 0.0)
    assert figures["score"] < reward


@pytest.mark.nightly
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_breaks_a_trajectory(name: str) -> None:
    trajectory = begun(max_turns=15)
    rewards, over = [], False
    while not over:
        observation, reward, over = trajectory.take(HOSTILE[name])
        observation.encode("utf-8")
        rewards.append(reward)

    figures = trajectory.metrics()
    assert len(rewards) <= 15
    assert figures["scored"] == 1.0
    assert math.isclose(math.fsum(rewards), figures["score"], abs_tol=1e-9)
    assert figures["score"] < begun_right()


def begun_right() -> float:
    trajectory = begun()
    trajectory.take(RIGHT)
    return trajectory.metrics()["score"]


def test_a_fault_at_the_beginning_ends_the_trajectory_unscored() -> None:
    trajectory = Trajectory({"env_id": EXPLORE, "task_id": HUTS})
    trajectory._note(EnvironmentFault("the disk is full."))

    assert trajectory.take(RIGHT) == ("", 0.0, True)
    assert trajectory.metrics() == {"scored": 0.0}


def output_of(figures: dict[str, float], tokens: int = 4) -> Any:
    return SimpleNamespace(
        env_metrics=figures,
        response_ids=list(range(tokens)),
        loss_mask=[1] * tokens,
        reward=[0.1] * tokens,
        stop_reason="length",
    )


def test_the_reward_of_a_trajectory_is_the_score_on_its_last_token() -> None:
    done = settle(output_of({"scored": 1.0, "score": -0.25}))

    assert (done.reward, done.loss_mask, done.stop_reason) == ([0, 0, 0, -0.25], [1] * 4, "length")


def test_a_trajectory_of_another_environment_stays_as_it_is() -> None:
    assert settle(output_of({"acc": 1.0})).reward == [0.1] * 4


def test_what_is_left_out_is_not_trained_on_and_moves_no_mean() -> None:
    figures = [{"scored": 1.0, "score": 0.9}, {"scored": 1.0, "score": -0.1}, {"scored": 0.0}]
    outputs = [settle(output_of(each)) for each in figures]
    rewards = balance([o.reward for o in outputs], [o.stop_reason for o in outputs], ["a"] * 3)

    assert outputs[2].loss_mask == [0] * 4
    assert outputs[2].stop_reason == FAULT
    assert math.isclose(sum(rewards[2]), (sum(rewards[0]) + sum(rewards[1])) / 2)
    assert balance([[0.0]], [FAULT], ["b"]) == [[0.0]]


@pytest.mark.parametrize("n", [3, 5, 7])
def test_groups_of_equal_scores_have_no_spread(n: int) -> None:
    numpy = pytest.importorskip("numpy")
    outputs = [settle(output_of({"scored": 1.0, "score": 0.1})) for _ in range(n)]

    assert numpy.std([sum(each.reward) for each in outputs]) == 0
    assert numpy.std([0.1] * 3) > 0, "or there is no need for a grid any more"
    assert abs(sum(outputs[0].reward) - 0.1) < 1 / GRID


def test_means_are_of_what_was_scored() -> None:
    figures = [{"scored": 1.0, "correct": 1.0}, {"scored": 1.0, "correct": 0.0}, {"scored": 0.0}]

    assert mean_metrics(figures) == {"correct": 0.5, "scored": 2 / 3}


def test_the_settings_allow_all_calls_and_divide_by_no_spread() -> None:
    settings = yaml.safe_load((FOLDER / "toolgym_grpo.yaml").read_text("utf-8"))

    assert settings["environment"]["env_class"] == ENV_CLASS
    assert settings["generator"]["max_turns"] >= make(EXPLORE).step_limit
    assert settings["trainer"]["algorithm"]["grpo_norm_by_std"] is False


@pytest.mark.parametrize(
    ("script", "given", "asked"),
    [
        ("one_node.sh", ("trainer.seed=1",), ("python", "main_toolgym.py", "trainer.seed=1")),
        (
            "several_nodes.sh",
            ("4",),
            (
                *("ray", "job", "submit", "trainer.placement.policy_num_nodes=4"),
                "generator.inference_engine.num_engines=32",
            ),
        ),
    ],
)
def test_a_script_starts_the_entry_point(
    script: str, given: Any, asked: Any, tmp_path: Any
) -> None:
    words = run_script(FOLDER / script, tmp_path, *given)

    assert set(asked) <= set(words)
    assert f"data.train_data=['{tmp_path}/rows/data/train-00000-of-00001.parquet']" in words


@pytest.mark.parametrize(
    ("module", "package"), [("toolgym_text_env", "skyrl-gym"), ("toolgym_generator", "skyrl")]
)
def test_another_version_is_refused(module: str, package: str, tmp_path: Any) -> None:
    done = imported_beside(FOLDER, module, installed_as(tmp_path, package, "0.1.7"))

    assert done.returncode == 1
    assert f"supports {package} 0.4.0; installed: 0.1.7" in done.stderr


@pytest.fixture(scope="module")
def text_env() -> Any:
    pytest.importorskip("skyrl_gym", reason="needs the extra bench")
    import toolgym_text_env

    toolgym_text_env.register()
    toolgym_text_env.register()
    return toolgym_text_env


@pytest.fixture(scope="module")
def play_by_skyrl(text_env: Any) -> Any:
    """Plays as SkyRL's generator does: made by name, each call in a thread of a pool."""
    import skyrl_gym

    with concurrent.futures.ThreadPoolExecutor(8) as pool:

        def play(script: ScriptedEpisode) -> Played:
            def do(function: Callable[..., Any], *given: Any) -> Any:
                return pool.submit(function, *given).result()

            env = skyrl_gym.make(ENV_CLASS, env_config={}, extras=extras_of(script))
            chat, _ = do(env.init, [{"role": "user", "content": "the bare question"}])
            turns, done = [], False
            for message in script.messages:
                if done:
                    break
                out = do(env.step, message)
                done = out["done"]
                if env.trajectory.has_fault:
                    break
                (observation,) = out["observations"] or [{"content": None}]
                known = PlayedTurn.of(env.trajectory.env.episode.turns[-1], done)
                shown = observation["content"]
                if shown is None:  # the last one; SkyRL would cut it off
                    shown = known.observation
                turns.append(PlayedTurn(shown, out["reward"], known.repairs, known.errors, done))
            correct = env.trajectory.env.episode.ledger.correct
            score = env.get_metrics().get("score", math.nan)
            do(env.close)
            return Played(chat[1]["content"], tuple(turns), score, correct)

        yield play


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_skyrl_gym_plays_the_same_episode(play_by_skyrl: Any, script: ScriptedEpisode) -> None:
    check_episode(play_by_skyrl, script, EXEMPT)


def test_skyrl_gym_aggregates_by_the_class(text_env: Any) -> None:
    from skyrl_gym.metrics import aggregate_for_environment

    told = aggregate_for_environment(ENV_CLASS, [{"scored": 1.0, "turns": 3.0}, {"scored": 0.0}])
    assert told == {"scored": 0.5, "turns": 3.0}


class ScriptedEngine:
    """Answers as an inference engine of SkyRL, each session by its own script."""

    def __init__(self, tokenizer: Any, says: Callable[[str, int], str]) -> None:
        self.tokenizer, self.says = tokenizer, says
        self.asked: dict[str, list[list[int]]] = {}

    async def generate(self, asked: Any, model: Any = None) -> dict[str, Any]:
        (session,), (ids,) = asked["session_ids"], asked["prompt_token_ids"]
        before = self.asked.setdefault(session, [])
        text = self.says(session, len(before))
        before.append(list(ids))
        new = [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]
        return {
            "responses": [text],
            "response_ids": [new],
            "stop_reasons": ["stop"],
            "response_logprobs": [[-0.5] * len(new)],
        }

    async def finish_session(self, session: str) -> None:
        pass


@pytest.mark.torch
def test_skyrls_generator_masks_exactly_and_leaves_faults_out(
    text_env: Any, tiny_tokenizer: Any
) -> None:
    pytest.importorskip(
        "skyrl", reason="needs skyrl 0.4.0, which needs Python 3.12 and a GPU build"
    )
    import asyncio

    from skyrl.train.config import GeneratorConfig, SkyRLGymConfig
    from skyrl.train.generators.base import TrajectoryID
    from toolgym_generator import ToolgymGenerator

    good = [LOOK, call("query", sql="SELECT max(altitude) FROM huts"), RIGHT]
    scripts = {"a_0": good, "a_1": [LOOK, call("answer", value=7)], "b_0": FAULTY.messages}
    scripts |= {"b_1": [call("review"), call("answer")], "a_2": [LOOK] * 15}
    engine = ScriptedEngine(tiny_tokenizer, lambda session, turn: scripts[session][turn])
    config = GeneratorConfig(max_turns=15, max_input_length=1300)
    generator = ToolgymGenerator(config, SkyRLGymConfig(), engine, tiny_tokenizer)
    operate = {"env_id": OPERATE, "task_id": FAULTY.task_id}
    extras = {name: {"env_id": EXPLORE, "task_id": HUTS} for name in ("a_0", "a_1", "a_2")}
    extras |= {"b_0": extras_of(FAULTY), "b_1": {**operate, "env_kwargs": "{}"}}
    batch = {
        "prompts": [[{"role": "user", "content": "the bare question"}] for _ in extras],
        "env_classes": [ENV_CLASS] * len(extras),
        "env_extras": list(extras.values()),
        "sampling_params": None,
        "trajectory_ids": [TrajectoryID(n[0], int(n[2])) for n in extras],
        "batch_metadata": None,
    }

    output = asyncio.run(generator.generate(batch, disable_tqdm=True))

    rewards = dict(zip(extras, map(sum, output["rewards"]), strict=True))
    for place, name in enumerate(extras):
        ids, mask = output["response_ids"][place], output["loss_masks"][place]
        whole = output["prompt_token_ids"][place] + ids
        assert all(whole[: len(asked)] == asked for asked in engine.asked[name][:-1])
        if name == "b_0":
            assert (sum(mask), output["stop_reasons"][place]) == (0, FAULT)
            continue
        said = [i for t in scripts[name][: len(engine.asked[name])]
                for i in (*tiny_tokenizer.encode(t, add_special_tokens=False),
                          tiny_tokenizer.eos_token_id)]  # fmt: skip
        assert [i for i, own in zip(ids, mask, strict=True) if own] == said
    assert rewards["a_0"] > 0.9 > rewards["a_1"]
    turns = len(engine.asked["a_2"])
    assert 1 < turns < 15, "the limit on tokens is to cut it off"
    unanswered = begun()
    for _ in range(turns):
        unanswered.take(LOOK)
    assert rewards["a_2"] == round(unanswered.metrics()["score"] * GRID) / GRID
    assert rewards["b_0"] == rewards["b_1"]
    assert 0 < output["rollout_metrics"]["environment/scored"] < 1
