"""The recipe for verl: its loop on a real tokenizer, and verl's classes where it is installed."""

import ast
import asyncio
import copy
import json
import math
import re
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("yaml", reason="needs the extra dev")

import yaml
from toolgym_rollout import (
    Chat,
    Generated,
    Limits,
    RowEpisode,
    Tokens,
    message_text,
    on_grid,
    play,
    reward_of,
)

from adapters.export.rows import AGENT_LOOP
from tests.adapters.scripted_contract import NotCarried, Played, PlayedTurn, check_episode
from tests.adapters.scripted_episodes import EXPLORE, HUTS, SCRIPTS, ScriptedEpisode, call
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
from toolgym.registration import make

FOLDER = RECIPES / "verl"
PLENTY = Limits(prompt=10**6, response=10**6, message=10**6)
ENDS = "no model is asked for more when the episode is over"
EXEMPT = {
    **dict.fromkeys(("after_the_end", "budget_spent"), ENDS),
    "silent": "a rollout asks the model at least once",
}


def row_of(script: ScriptedEpisode) -> dict[str, Any]:
    kwargs = json.dumps(script.arguments)
    extra = {"env_id": script.env_id, "task_id": script.task_id, "env_kwargs": kwargs}
    return {"extra_info": extra, "raw_prompt": [{"role": "user", "content": "the bare question"}]}


HUT_ROW: dict[str, Any] = {"extra_info": {"env_id": EXPLORE, "task_id": HUTS}}


class Scripted:
    """A model that writes what it is told, and remembers what it was shown."""

    def __init__(self, tokenizer: Any, messages: Any) -> None:
        self.tokenizer, self.messages = tokenizer, list(messages)
        self.asked: list[list[int]] = []
        self.said: list[list[int]] = []

    async def __call__(self, ids: list[int], most: int) -> Generated:
        self.asked.append(list(ids))
        text = self.messages[min(len(self.said), len(self.messages) - 1)]
        new = [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]
        self.said.append(new[:most])
        number = float(len(self.said))
        return Generated(self.said[-1], [-number] * len(self.said[-1]))


class PlainChat(Chat):
    """Tokens of a chat template whose turns render alike wherever they stand."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def render(self, messages: Any, prompted: bool, tools: Any = None) -> list[int]:
        ids: list[int] = self.tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=prompted, return_dict=False
        )
        return ids

    async def prompt(self, messages: Any, tools: Any) -> list[int]:
        return self.render(messages, True, tools)

    async def said(self, tokens: Tokens, message: Generated) -> Tokens:
        logprobs = [*(tokens.logprobs or []), *(message.logprobs or [])]
        mask = [*tokens.mask, *[1] * len(message.ids)]
        return Tokens([*tokens.ids, *message.ids], mask, logprobs)

    async def shown(self, tokens: Tokens, before: Any, after: Any, tools: Any) -> Tokens:
        user = [{"role": "user", "content": "x"}]
        new = self.render([*user, *after[len(before) :]], True)[len(self.render(user, False)) :]
        logprobs = [*(tokens.logprobs or []), *[0.0] * len(new)]
        return Tokens([*tokens.ids, *new], [*tokens.mask, *[0] * len(new)], logprobs)


def rolled_out(
    tokenizer: Any, row: Any, messages: Any, limits: Limits = PLENTY
) -> tuple[Tokens, Scripted, RowEpisode]:
    model, episode = Scripted(tokenizer, messages), RowEpisode(row)
    tokens = asyncio.run(play(episode, model, PlainChat(tokenizer), tokenizer, limits))
    return tokens, model, episode


def check_exact(tokens: Tokens, asked: list[list[int]], said: list[list[int]]) -> None:
    """The mask is 1 on the tokens that the model wrote and on no other, and nothing was redone."""
    assert len(tokens.mask) == len(tokens.response)
    assert tokens.prompt == asked[0]
    assert all(tokens.ids[: len(each)] == each for each in asked)
    own = [t for t, mine in zip(tokens.response, tokens.mask, strict=True) if mine]
    assert own == [token for message in said for token in message]
    assert tokens.mask[-1] == 1
    if tokens.logprobs is not None:
        expected = [-float(n) for n, message in enumerate(said, 1) for _ in message]
        pairs = list(zip(tokens.logprobs, tokens.mask, strict=True))
        assert [logprob for logprob, mine in pairs if mine] == expected
        assert {logprob for logprob, mine in pairs if not mine} <= {0.0}


def observations_in(tokenizer: Any, tokens: Tokens) -> list[str]:
    """What the model was shown after each message, read off the tokens."""
    found = []
    pairs = zip(tokens.response, tokens.mask, strict=True)
    for mine, run in groupby(pairs, key=lambda pair: pair[1]):
        if not mine:
            text = tokenizer.decode([token for token, _ in run], skip_special_tokens=False)
            shown = re.findall(r"<\|im_start\|>(?:tool|user)\n(.*?)<\|im_end\|>", text, re.DOTALL)
            found.append("\n\n".join(shown))
    return found


def played(tokenizer: Any, tokens: Tokens | None, episode: Any) -> Played:
    seen = [] if tokens is None else observations_in(tokenizer, tokens)
    env = episode.env
    turns = []
    for number, turn in enumerate(env.episode.turns):
        is_last = number == len(env.episode.turns) - 1
        # A fault ends the episode behind the last turn that was recorded.
        known = PlayedTurn.of(turn, env.episode.over and is_last and not env.episode.fault)
        if number < len(seen):
            known = PlayedTurn(seen[number], *list(vars(known).values())[1:])
        turns.append(known)
    figures = episode.figures()
    prompt = episode.messages[1]["content"]
    return Played(prompt, tuple(turns), figures["score"], env.episode.ledger.correct)


@pytest.mark.torch
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_rollout_changes_nothing_of_an_episode(
    tiny_tokenizer: Any, script: ScriptedEpisode
) -> None:
    def by_tokens(script: ScriptedEpisode) -> Played:
        if not script.messages:
            raise NotCarried("an agent that never writes")
        episode, model = RowEpisode(row_of(script)), Scripted(tiny_tokenizer, script.messages)
        limits = Limits(10**6, 10**6, 10**6, messages=len(script.messages))
        chat = PlainChat(tiny_tokenizer)
        try:
            tokens = asyncio.run(play(episode, model, chat, tiny_tokenizer, limits))
        except EnvironmentFault:
            return played(tiny_tokenizer, None, episode)
        check_exact(tokens, model.asked, model.said)
        return played(tiny_tokenizer, tokens, episode)

    check_episode(by_tokens, script, EXEMPT)


def test_exported_rows_are_played() -> None:
    for row in exported("verl", step_limit=9):
        assert row["agent_name"] == AGENT_LOOP
        episode = RowEpisode(row)

        assert episode.env.step_limit == 9
        assert episode.messages[1]["content"].startswith(row["prompt"][0]["content"])


def test_other_rows_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="toolgym export rows ENV --for verl"):
        RowEpisode({"extra_info": {"index": 3}})


@pytest.mark.torch
@pytest.mark.nightly
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_breaks_a_rollout(tiny_tokenizer: Any, name: str) -> None:
    text = HOSTILE[name].encode("utf-8", "replace").decode()  # a tokenizer has no halves
    limits = Limits(10**6, 60_000, 30_000)
    tokens, model, episode = rolled_out(tiny_tokenizer, HUT_ROW, [text], limits)

    check_exact(tokens, model.asked, model.said)
    assert len(tokens.response) <= limits.response
    assert reward_of(episode.figures()) < 0.9


@pytest.mark.nightly
@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_breaks_an_episode(name: str) -> None:
    episode = RowEpisode(HUT_ROW)
    while not episode.over:
        before, after = episode.take(HOSTILE[name])
        assert after[: len(before)] == before
        json.dumps(after, ensure_ascii=False).encode("utf-8")

    assert math.isfinite(reward_of(episode.figures()))


@pytest.mark.torch
@pytest.mark.parametrize("response", [1, 2, 7, 40, 90, 91, 92, 93, 150, 400])
def test_no_limit_on_tokens_is_passed_and_the_last_token_is_the_models(
    tiny_tokenizer: Any, response: int
) -> None:
    limits = Limits(10**6, response, 30)
    tokens, model, episode = rolled_out(tiny_tokenizer, HUT_ROW, [LOOK, "no call"] * 9, limits)

    check_exact(tokens, model.asked, model.said)
    assert len(tokens.response) <= response
    assert episode.figures()["answered"] == 0.0


@pytest.mark.torch
def test_a_message_that_was_cut_off_is_ended_by_a_token_that_is_not_trained_on(
    tiny_tokenizer: Any,
) -> None:
    limits = Limits(10**6, 10**6, 3, messages=2)
    tokens, model, _ = rolled_out(tiny_tokenizer, HUT_ROW, [LOOK], limits)

    assert model.said[0][-1] != tiny_tokenizer.eos_token_id
    assert (tokens.response[3], tokens.mask[3]) == (tiny_tokenizer.eos_token_id, 0)
    check_exact(tokens, model.asked, model.said)


@pytest.mark.torch
def test_a_prompt_that_verl_would_cut_is_refused(tiny_tokenizer: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"data.max_prompt_length is 10: set it higher"):
        rolled_out(tiny_tokenizer, HUT_ROW, [LOOK], Limits(10, 100, 100))


@pytest.mark.torch
def test_a_server_that_writes_nothing_is_a_fault(tiny_tokenizer: Any) -> None:
    async def silent(ids: list[int], most: int) -> Generated:
        return Generated([])

    chat = PlainChat(tiny_tokenizer)
    with pytest.raises(EnvironmentFault, match="generated no token"):
        asyncio.run(play(RowEpisode(HUT_ROW), silent, chat, tiny_tokenizer, PLENTY))


@pytest.mark.torch
def test_a_thought_that_the_prompt_opened_belongs_to_the_message(tiny_tokenizer: Any) -> None:
    before = tiny_tokenizer.encode("<think>\n", add_special_tokens=False)
    ids = tiny_tokenizer.encode("so</think>" + LOOK, add_special_tokens=False)

    text = message_text(tiny_tokenizer, before, [*ids, tiny_tokenizer.eos_token_id])
    assert text.endswith("so</think>" + LOOK)
    assert text.startswith("<think>")


def test_an_episode_without_a_score_has_no_reward() -> None:
    with pytest.raises(EnvironmentFault, match="no score"):
        reward_of({"score": math.nan})


@pytest.mark.parametrize("n", [3, 5, 7])
def test_groups_of_equal_scores_have_no_spread(n: int) -> None:
    numpy = pytest.importorskip("numpy")

    assert numpy.std([on_grid(0.1)] * n) == 0
    assert abs(on_grid(0.1) - 0.1) < 1e-6


def test_the_class_that_verl_is_told_of_is_there() -> None:
    (loop,) = yaml.safe_load((FOLDER / "agent_loop.yaml").read_text("utf-8"))
    module, _, name = loop["_target_"].rpartition(".")
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))

    assert loop["name"] == AGENT_LOOP
    assert name in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def test_the_settings_allow_all_calls() -> None:
    settings = yaml.safe_load((FOLDER / "toolgym_grpo.yaml").read_text("utf-8"))
    rollout = settings["actor_rollout_ref"]["rollout"]

    assert rollout["agent"]["default_agent_loop"] == AGENT_LOOP
    assert rollout["multi_turn"]["max_assistant_turns"] >= make(EXPLORE).step_limit
    assert settings["trainer"]["use_v1"] is True


@pytest.mark.parametrize(
    ("script", "given", "asked"),
    [
        (
            "one_node.sh",
            ("trainer.total_epochs=1",),
            ("toolgym_agent.py", "verl.trainer.main_ppo", "trainer.total_epochs=1"),
        ),
        ("several_nodes.sh", ("4",), ("ray", "submit", "trainer.nnodes=4")),
    ],
)
def test_a_script_starts_verl(script: str, given: Any, asked: Any, tmp_path: Any) -> None:
    words = run_script(FOLDER / script, tmp_path, *given)

    assert {*asked, "--config-name=toolgym_grpo"} <= set(words)
    assert f"data.train_files={tmp_path}/rows/data/train-00000-of-00001.parquet" in words


def test_another_version_is_refused(tmp_path: Any) -> None:
    done = imported_beside(FOLDER, "toolgym_agent", installed_as(tmp_path, "verl", "0.7.1"))

    assert done.returncode == 1
    assert "supports verl 0.9.1; installed: 0.7.1" in done.stderr


class Server:
    """An inference server as verl's client shows it."""

    def __init__(self, model: Scripted) -> None:
        self.model = model

    async def generate(
        self, request_id: str, *, prompt_ids: Any, sampling_params: Any, priority: int
    ) -> Any:
        message = await self.model(prompt_ids, sampling_params["max_tokens"])
        return SimpleNamespace(
            token_ids=message.ids,
            log_probs=message.logprobs,
            routed_experts=None,
            num_preempted=None,
            extra_fields={"min_global_steps": 1, "max_global_steps": len(self.model.said)},
        )


@pytest.fixture(scope="module")
def verl_rollout(tiny_tokenizer: Any) -> Any:
    """Plays a row by the agent loop, made as verl's worker makes it."""
    pytest.importorskip("verl", reason="needs verl 0.9.1, which nothing here installs")
    from hydra.utils import instantiate
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap

    (target,) = OmegaConf.load(FOLDER / "agent_loop.yaml")

    def roll_out(
        row: Any, messages: Any, limits: Limits, tokenizer: Any = tiny_tokenizer, kind: Any = None
    ) -> tuple[Any, Scripted]:
        model = Scripted(tokenizer, messages)
        lengths = {"prompt_length": limits.prompt, "response_length": limits.response}
        turns = {"multi_turn": {"max_assistant_turns": limits.messages}}
        config = OmegaConf.create(
            {"actor_rollout_ref": {"rollout": {**lengths, **turns}}, "data": {}}
        )

        async def run() -> Any:
            loop = instantiate(
                {**target, "message_tokens": limits.message},
                trainer_config=DictConfigWrap(config),
                server_manager=Server(model),
                tokenizer=tokenizer,
                processor=None,
                hf_model_type=kind,
                dataset_cls=object,
                data_config=DictConfigWrap(config.data),
                tools=ToolListWrap([]),
            )
            return loop, await loop.run({"temperature": 1.0, "logprobs": True}, **row, uid="u")

        return asyncio.run(run())[1], model

    return roll_out


@pytest.mark.torch
@pytest.mark.parametrize(
    "script", [each for each in SCRIPTS if each.name != "fault"], ids=lambda script: script.name
)
def test_verl_gets_exactly_what_was_written(
    verl_rollout: Any, tiny_tokenizer: Any, script: ScriptedEpisode
) -> None:
    if not script.messages:
        pytest.skip("a rollout asks the model at least once")
    limits = Limits(10**6, 10**6, 10**6, messages=len(script.messages))
    output, model = verl_rollout(row_of(script), script.messages, limits)
    _, plain, episode = rolled_out(tiny_tokenizer, row_of(script), script.messages, limits)

    tokens = Tokens(
        output.prompt_ids + output.response_ids, output.response_mask, output.response_logprobs
    )
    check_exact(tokens, model.asked, model.said)
    assert model.asked == plain.asked
    figures = episode.figures()
    assert output.reward_score == on_grid(figures["score"])
    told = output.extra_fields["reward_extra_info"]
    assert told == {**figures, "score": output.reward_score, "acc": figures["correct"]}
    assert math.isclose(
        sum(output.extra_fields["turn_scores"]), figures["score"], abs_tol=1e-5
    ) or (figures["answered"] == 0.0)
    assert output.extra_fields["min_global_steps"] == 1
    assert output.extra_fields["max_global_steps"] == len(model.said)
    kept = output.as_dict()
    assert float(kept["rm_scores"].sum()) == output.reward_score


@pytest.mark.torch
def test_a_fault_passes_through_verls_loop(verl_rollout: Any) -> None:
    script = next(each for each in SCRIPTS if each.name == "fault")

    with pytest.raises(EnvironmentFault, match="was not recorded"):
        verl_rollout(row_of(script), script.messages, PLENTY)


@pytest.mark.torch
def test_a_cut_off_rollout_is_exact_in_verl_too(verl_rollout: Any) -> None:
    limits = Limits(10**6, 60, 9, messages=99)
    output, model = verl_rollout(HUT_ROW, [LOOK, call("query", sql="x"), "no call"], limits)

    ids = output.prompt_ids + output.response_ids
    check_exact(Tokens(ids, output.response_mask), model.asked, model.said)
    assert len(output.response_ids) <= 60


@pytest.mark.torch
@pytest.mark.parametrize("message_tokens", [10**6, 40])
def test_verls_builder_for_qwen_adds_nothing_to_the_mask(
    verl_rollout: Any, tiny_tokenizer: Any, message_tokens: int
) -> None:
    trl = pytest.importorskip("trl", reason="needs the extra train, for Qwen's template")
    tokenizer = copy.deepcopy(tiny_tokenizer)
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    tokenizer.chat_template = template.read_text("utf-8")
    texts = [LOOK, LOOK + LOOK, "no call", call("query", sql="SELECT x"), call("answer", value=1)]
    limits = Limits(10**6, 10**5, message_tokens, messages=len(texts))

    output, model = verl_rollout(HUT_ROW, texts, limits, tokenizer, "qwen3")

    ids = output.prompt_ids + output.response_ids
    tokens = Tokens(ids, output.response_mask, output.response_logprobs)
    check_exact(tokens, model.asked, model.said)
    runs = ["".join(tokenizer.decode([token for token, _ in run]))
            for mine, run in groupby(zip(output.response_ids, output.response_mask, strict=True),
                                     key=lambda pair: pair[1]) if not mine]  # fmt: skip
    ends = "\n" if message_tokens > 40 else "<|im_end|>\n"
    assert all(
        run.startswith((f"{ends}<|im_start|>user\n", "\n<|im_start|>user\n")) for run in runs
    )
    assert all(run.endswith("<|im_start|>assistant\n") for run in runs)
