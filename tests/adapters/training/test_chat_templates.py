"""Chat templates of our own: what they write, what is read back, and where a model stops."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from hypothesis import given, settings
from hypothesis import strategies as st
from trl.chat_template_utils import (
    is_chat_template_prefix_preserving,
    supports_tool_calling,
)

from adapters.reference.chat import ChatFormat, check_template
from adapters.tiny.model import TinySize, build_model
from adapters.training.models.chat_policy import ChatModelPolicy, load, load_model
from adapters.training.models.chat_templates import NAMED, ChatTemplate, with_chat_template
from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.loading import load as load_by_name
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import can_sanitize, examples_of
from adapters.training.preflight.chat_format import check_prompt, check_round_trip
from adapters.training.runs.preparation import save
from tests.adapters.base_models import CHATML, END, base_model, base_tokenizer
from toolgym import ConfigurationError, ToolEnv, calls, registration, rollout
from toolgym.calls import ToolCall, parse_calls
from toolgym.generation import Engine, Generation, stop_ids
from toolgym.messages import (
    Message,
    episode_messages,
    prompt_messages,
    system_prompt,
    tools_in_words,
)
from toolgym.policies import Situation
from toolgym.tools import specs_from

pytestmark = pytest.mark.torch
NOTES = "trl-tests/Notes-v0"
PLAIN_CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""As small chat models have it that were not taught to call tools."""
KINDS: dict[str, dict[str, Any]] = {
    "without ChatML tokens": {},
    "with ChatML tokens, ended by another": {"control": (END, *CHATML)},
    "ended by ChatML": {"control": (END, *CHATML), "eos": "<|im_end|>"},
    "begun and ended by others": {
        "control": ("<s>", "</s>"),
        "eos": "</s>",
        "bos": "<s>",
        "begins": True,
    },
}
PAIRS = [
    *((kind, "hermes") for kind in KINDS),
    ("begun and ended by others", "chatml"),
    *(pytest.param(kind, "chatml", marks=pytest.mark.nightly) for kind in [*KINDS][:3]),
]
ENDS = dict(zip(KINDS, (END, "<|im_end|>", "<|im_end|>", "</s>"), strict=True))


@functools.cache
def tokenizer_of(kind: str) -> Any:
    """A tokenizer of that kind; it is only read."""
    return base_tokenizer(**KINDS[kind])


def prompt_texts() -> tuple[str, ...]:
    """What a prompt is made of, for a tokenizer that reads it in few tokens."""
    env = registration.make(NOTES)
    return (system_prompt(env), *(json.dumps(schema) for schema in env.tool_schemas()))


@pytest.fixture
def notes() -> ToolEnv[Any]:
    env = registration.make(NOTES)
    env.reset(seed=0)
    return env


@pytest.fixture(scope="module")
def bare() -> Any:
    """A tokenizer of a base model: no template, and no token that a chat could end a turn with."""
    return tokenizer_of("without ChatML tokens")


@pytest.fixture(scope="module")
def hermes(bare: Any) -> Any:
    return with_chat_template(bare, "hermes")


def rendered(tokenizer: Any, chat: list[Message], **options: Any) -> str:
    return str(tokenizer.apply_chat_template(chat, tokenize=False, **options))


def played() -> list[list[Message]]:
    """Transcripts of an expert, and of one who also slips, talks, and makes two calls at once."""
    env: Any = registration.make(NOTES)
    transcripts = []
    for actions in (
        list[Any](),
        ["Let me see.", "<tool_call>\n{oops", [{"name": "count", "arguments": {"text": "a"}}] * 2],
    ):
        env.reset(options={"task_id": "note-1"})
        for action in actions:
            env.step(action)
        expert = env.expert()
        action = next(expert)
        while not env.episode.over:
            observation, *_ = env.step(action)
            try:
                action = expert.send(observation)
            except StopIteration:
                break
        transcripts.append(episode_messages(env, final="done"))
    return transcripts


# Where a turn ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_every_turn_ends_with_one_token_at_which_generation_stops(kind: str, name: str) -> None:
    tokenizer = tokenizer_of(kind)
    model = base_model(tokenizer)

    fitted = with_chat_template(tokenizer, name, model)

    assert fitted.eos_token == ENDS[kind]
    stop = stop_ids(model, fitted)
    assert fitted.eos_token_id in stop
    declared = model.generation_config.eos_token_id
    assert fitted.eos_token_id in (declared if isinstance(declared, list) else [declared])
    tools = registration.make(NOTES).tool_schemas()
    for transcript in played():
        (example,) = examples_of(transcript, tools, fitted)
        last = [
            token
            for token, learnt, after in zip(
                example.ids, example.learn, (*example.learn[1:], False), strict=True
            )
            if learnt and not after
        ]
        spoken = sum(message["role"] == "assistant" for message in transcript)
        assert last == [fitted.eos_token_id] * spoken


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_both_trainers_and_the_preflight_take_it(kind: str, name: str, notes: ToolEnv[Any]) -> None:
    tokenizer = tokenizer_of(kind)
    model = base_model(tokenizer)

    fitted = with_chat_template(tokenizer, name, model)

    check_template(model, fitted, notes)
    assert supports_tool_calling(fitted)
    assert is_chat_template_prefix_preserving(fitted)
    assert can_sanitize(fitted, notes)
    assert list(check_prompt(notes, fitted)) == []
    assert list(check_round_trip(notes, played()[:1], model, fitted)) == []


def test_a_token_before_every_text_stands_before_a_chat_and_else_none_does() -> None:
    chat = [{"role": "user", "content": "hello"}]
    texts = [rendered(with_chat_template(tokenizer_of(kind), "hermes"), chat) for kind in KINDS]

    assert texts[-1] == f"<s>{texts[0]}"
    assert len({*texts[:3]}) == 1

    unasked = {**KINDS["begun and ended by others"], "begins": False}
    assert rendered(with_chat_template(base_tokenizer(**unasked), "hermes"), chat) == texts[0]


def test_a_tokenizer_that_could_end_no_turn_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"neither <\|im_end\|> nor an eos_token"):
        with_chat_template(base_tokenizer(control=(), eos=None), "hermes")


def test_what_a_tool_returns_ends_no_turn(hermes: Any, notes: ToolEnv[Any]) -> None:
    model = base_model(hermes)
    chat = ChatFormat(model, hermes, notes)
    result = {"role": "tool", "name": "read", "content": f"a{END}b"}

    (tail,) = chat.following([[result]])

    assert not {*tail} & chat.stop


# What is written ----------------------------------------------------------------------------------


def test_hermes_shows_tools_as_schemas_and_calls_and_results_in_tags(
    hermes: Any, notes: ToolEnv[Any]
) -> None:
    schemas = notes.tool_schemas()
    made = [
        {"type": "function", "function": {"name": "read", "arguments": {"note": "é"}}},
        {"type": "function", "function": {"name": "explode", "arguments": "{}"}},
    ]
    chat: list[Message] = [
        {"role": "system", "content": "  Be kind.\n"},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "I look.", "tool_calls": made},
        {"role": "tool", "name": "read", "content": "one"},
        {"role": "tool", "name": "explode", "content": "two"},
    ]

    text = rendered(hermes, chat, tools=schemas, add_generation_prompt=True)

    head, _, rest = text.partition("<|im_end|>\n")
    assert head.startswith("<|im_start|>system\nBe kind.\n\n# Tools\n")
    listed = head.partition("<tools>\n")[2].partition("\n</tools>")[0]
    assert [json.loads(line) for line in listed.splitlines()] == schemas
    assert rest == (
        "<|im_start|>user\nGo.<|im_end|>\n"
        "<|im_start|>assistant\nI look.\n"
        '<tool_call>\n{"name": "read", "arguments": {"note": "é"}}\n</tool_call>\n'
        f'<tool_call>\n{{"name": "explode", "arguments": {{}}}}\n</tool_call>{END}\n'
        "<|im_start|>user\n"
        "<tool_response>\none\n</tool_response>\n"
        "<tool_response>\ntwo\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_chatml_tells_the_tools_in_the_words_that_everybody_uses(
    bare: Any, notes: ToolEnv[Any]
) -> None:
    tokenizer = with_chat_template(bare, "chatml")
    chat: list[Message] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "I look."},
        {"role": "tool", "name": "read", "content": "one"},
        {"role": "tool", "name": "read", "content": "two"},
        {"role": "user", "content": "On."},
    ]

    for env_id in (NOTES, "sqlgym/Explore-v0"):
        schemas = registration.make(env_id).tool_schemas()
        text = rendered(tokenizer, chat, tools=schemas)
        assert text == (
            f"<|im_start|>system\nBe kind.\n\n{tools_in_words(schemas)}<|im_end|>\n"
            f"<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\nI look.{END}\n"
            "<|im_start|>user\none\n\ntwo<|im_end|>\n<|im_start|>user\nOn.<|im_end|>\n"
        )


@pytest.mark.parametrize("name", NAMED)
def test_a_chat_without_a_system_message_or_without_tools_adds_nothing(
    name: str, bare: Any, notes: ToolEnv[Any]
) -> None:
    tokenizer = with_chat_template(bare, name)
    question: Message = {"role": "user", "content": "Go."}
    system: Message = {"role": "system", "content": "Be kind."}
    asked = "<|im_start|>user\nGo.<|im_end|>\n"
    told = "<|im_start|>system\nBe kind.<|im_end|>\n"

    assert rendered(tokenizer, [question]) == asked
    assert rendered(tokenizer, [question], tools=[]) == asked
    assert rendered(tokenizer, [system, question]) == told + asked
    assert rendered(tokenizer, [{**system, "content": " "}, question]) == asked
    with_tools = rendered(tokenizer, [question], tools=notes.tool_schemas())
    both = rendered(tokenizer, [system, question], tools=notes.tool_schemas())
    assert both == with_tools.replace("system\n", "system\nBe kind.\n\n", 1)
    opened = rendered(tokenizer, [question], add_generation_prompt=True)
    assert opened == f"{asked}<|im_start|>assistant\n"


@pytest.mark.parametrize("name", NAMED)
def test_nothing_is_written_that_nobody_said(name: str, bare: Any) -> None:
    tokenizer = with_chat_template(bare, name)
    blank: list[Message] = [
        {"role": "user", "content": None},
        {"role": "assistant", "content": None, "tool_calls": None},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": None}}]},
        {"role": "tool", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "a"}, "b", {"type": "image"}]},
    ]

    text = rendered(tokenizer, blank)

    assert not re.search("null|None", text)
    assert '{"name": "f", "arguments": {}}' in text
    assert "<|im_start|>user\nab<|im_end|>" in text


# What is read back --------------------------------------------------------------------------------

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {"a": {}, "b": {}}, "required": []},
        },
    }
    for name in ("look", "run_query", "answer")
]
PIECES = st.sampled_from(
    [
        *(mark for each in calls.FORMATS for mark in each.marks),
        "</tool_call>",
        "<tool_call>",
        END,
        "<think>",
        "</think>",
        "[TOOL_CALLS]",
        "<function=f>",
        "null",
        *(
            "</tool_response>",
            "\n",
            '"',
            "\\",
            "{",
            "}",
            "'",
            "é",
            "🙂",
            "<|im_end|>",
            "a < b",
            "x",
        ),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=5).map("".join)
VALUES = st.recursive(
    TEXTS | st.integers(-999, 999) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=5,
)
MADE = st.tuples(
    st.sampled_from(["look", "run_query", "answer"]),
    st.dictionaries(st.sampled_from(["a", "b"]), VALUES, max_size=2),
    st.booleans(),
)


@pytest.mark.parametrize("name", NAMED)
@settings(max_examples=25)
@given(made=st.lists(MADE, min_size=1, max_size=3), content=st.sampled_from(["", "I look."]))
def test_calls_are_read_back_from_their_tokens_as_they_were_made(
    name: str, bare: Any, made: list[Any], content: str
) -> None:
    tokenizer = with_chat_template(bare, name)
    functions = [
        {"name": called, "arguments": json.dumps(arguments) if as_text else arguments}
        for called, arguments, as_text in made
    ]
    chat: list[Message] = [
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": content,
            "tool_calls": [{"type": "function", "function": each} for each in functions],
        },
    ]

    (example,) = examples_of(chat, TOOLS, tokenizer)
    learnt = [
        token for token, is_learnt in zip(example.ids, example.learn, strict=True) if is_learnt
    ]
    read = parse_calls(tokenizer.decode(learnt[:-1]), specs_from(TOOLS))

    assert learnt[-1] == tokenizer.eos_token_id
    assert read == [ToolCall(called, arguments) for called, arguments, _ in made]


@pytest.mark.parametrize("name", NAMED)
def test_what_was_rendered_stays_while_a_chat_grows(
    name: str, bare: Any, notes: ToolEnv[Any]
) -> None:
    tokenizer = with_chat_template(bare, name)
    tools = notes.tool_schemas()
    for transcript in played():
        before: list[int] = []
        for turn, message in enumerate(transcript):
            if message["role"] != "assistant":
                continue
            for end, prompted in ((turn, True), (turn + 1, False)):
                options = {"add_generation_prompt": prompted, "return_dict": False}
                now = tokenizer.apply_chat_template(transcript[:end], tools=tools, **options)
                assert now[: len(before)] == before
                before = now
        assert len(before) > 100


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["hermes"])
def test_a_base_model_that_imitates_learns_to_call_and_where_to_stop(name: str) -> None:
    texts = (*prompt_texts(), tools_in_words(registration.make(NOTES).tools))
    tokenizer = with_chat_template(base_tokenizer(*texts), name)
    model = build_model(tokenizer, size=TinySize(hidden=64, heads=2, feed_forward=128))
    tools = registration.make(NOTES).tool_schemas()
    transcripts = demonstrate(NOTES, 12, demonstrator="expert")
    examples = [each for one in transcripts for each in examples_of(one, tools, tokenizer)]
    train_supervised(model, examples, SftSettings(150, batch=6, learning_rate=1e-2, ramp=10))

    policy = ChatModelPolicy(model, tokenizer, max_new_tokens=64)
    evaluation = rollout.evaluate(NOTES, policy, n=6)

    assert evaluation.validity == 1.0
    assert evaluation.summary()["answered"] == 1.0
    written = [turn["action"] for record in evaluation.records for turn in record.turns]
    assert all(text.endswith("</tool_call>") for text in written)


def test_a_template_that_shows_no_tools_is_refused_with_the_option_that_helps(
    make_tokenizer: Any, notes: ToolEnv[Any]
) -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template = PLAIN_CHATML

    shown, called = check_prompt(notes, tokenizer)

    assert "does not show the tools read, count, answer, explode" in shown.reason
    assert "drops calls or results (toolgym_name" in called.reason
    assert all("--chat-template hermes" in each.advice for each in (shown, called))
    assert list(check_prompt(notes, with_chat_template(tokenizer, "hermes"))) == []


# Files --------------------------------------------------------------------------------------------

PLAIN = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
    "{% if m.role == 'assistant' %}{% generation %}</turn>{% endgeneration %}{% endif %}"
    "{% endfor %}"
)


def test_a_file_is_a_template_and_the_token_that_ends_its_turns_stops_generation(
    tmp_path: Path,
) -> None:
    file = tmp_path / "plain.jinja"
    file.write_text(PLAIN)
    tokenizer = base_tokenizer(control=(END, "</turn>"))
    model = base_model(tokenizer)

    fitted = with_chat_template(tokenizer, str(file), model)

    assert rendered(fitted, [{"role": "user", "content": "hi"}]) == "[user]hi"
    assert fitted.eos_token == "</turn>"
    assert stop_ids(model, fitted) == {tokenizer.eos_token_id, fitted.eos_token_id}


BAD = {
    "{% for m in messages %}": "is no Jinja template: line 1: Unexpected end of template",
    "hello": "does not show the messages of a chat",
    "{{ raise_exception('no') }}": "refuses a question and an answer: no",
    "{{ messages[7].content + 1 }}": "refuses a question and an answer",
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_is_no_template_of_chats_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.jinja"
    file.write_text(text)

    with pytest.raises(ConfigurationError, match=BAD[text]):
        ChatTemplate.named(str(file))


def test_a_name_that_is_neither_is_refused_with_the_names_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"'hermse': take hermes or chatml, .*mean hermes\?"
    ):
        ChatTemplate.named("hermse")
    with pytest.raises(ConfigurationError, match="there is no chat template"):
        ChatTemplate.named(str(tmp_path))
    (tmp_path / "latin").write_bytes(b"\xe9{{ messages }}")
    with pytest.raises(ConfigurationError, match="latin cannot be read"):
        ChatTemplate.named(str(tmp_path / "latin"))


# Models -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(bare: Any, tmp_path: Path) -> str:
    """A base model, saved."""
    save(base_model(bare), bare, tmp_path / "base")
    return str(tmp_path / "base")


def test_a_model_without_a_template_is_refused_with_the_option_that_helps(folder: str) -> None:
    with pytest.raises(ConfigurationError, match="add --chat-template hermes"):
        load_model(folder)


@pytest.mark.parametrize("name", NAMED)
def test_a_saved_checkpoint_keeps_its_template(name: str, folder: str, tmp_path: Path) -> None:
    model, tokenizer = load_model(folder, chat_template=name)
    save(model, tokenizer, tmp_path / "final")
    again, loaded = load_model(str(tmp_path / "final"))
    chat = played()[1]

    assert loaded.apply_chat_template(chat) == tokenizer.apply_chat_template(chat)
    assert stop_ids(again, loaded) == stop_ids(model, tokenizer)
    assert loaded.response_template == tokenizer.response_template


def test_a_policy_plays_by_a_template_however_it_is_asked_for(
    folder: str, bare: Any, notes: ToolEnv[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[int]] = []

    def nothing(engine: Engine, turns: list[Generation], **_: Any) -> None:
        read.extend(turn.prompt for turn in turns)

    monkeypatch.setattr(Engine, "generate", nothing)
    model, _ = load_model(folder, chat_template="chatml")
    policies = [
        load(folder, chat_template="chatml"),
        load_by_name(folder, chat_template="chatml"),
        ChatModelPolicy(model, bare, chat_template="chatml"),
    ]
    for policy in policies:
        policy.act([Situation(notes, "", 0)])

    fitted = with_chat_template(bare, "chatml")
    expected = rendered(
        fitted, prompt_messages(notes), tools=notes.tool_schemas(), add_generation_prompt=True
    )
    assert [fitted.decode(each) for each in read] == [expected] * 3
    assert [each._stop for each in policies] == [policies[0]._stop] * 3
    assert fitted.eos_token_id in policies[0]._stop
    assert bare.chat_template is None


def test_an_own_template_gives_way_to_the_one_that_was_asked_for(
    make_tokenizer: Any, notes: ToolEnv[Any]
) -> None:
    tokenizer = make_tokenizer()
    prompt = prompt_messages(notes)
    tools = notes.tool_schemas()

    fitted = with_chat_template(tokenizer, "hermes")

    assert "# Tools" in rendered(fitted, prompt, tools=tools)
    assert rendered(fitted, prompt, tools=tools) != rendered(tokenizer, prompt, tools=tools)
