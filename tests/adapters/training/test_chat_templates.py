"""Chat templates of our own: what they write, what is read back, and where a model stops."""

import functools
import json
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

from adapters.reference.chat import ChatFormat
from adapters.reference.preflight import expert_findings, template_findings
from adapters.training.models.chat_policy import load_model
from adapters.training.models.chat_templates import ChatTemplate, with_chat_template
from adapters.training.models.loading import load
from adapters.training.models.tokenized_examples import can_sanitize, examples_of
from adapters.training.runs.preparation import save
from adapters.training.settings import resolve
from tests.adapters.base_models import CHATML, END, base_model, base_tokenizer
from toolgym import ConfigurationError, ToolEnv, calls, registration
from toolgym.calls import ToolCall, parse_calls
from toolgym.generation import Engine, Generation, stop_ids
from toolgym.messages import (
    Message,
    episode_messages,
    prompt_messages,
)
from toolgym.policies import Situation
from toolgym.tools import specs_from

pytestmark = pytest.mark.torch
NOTES = "trl-tests/Notes-v0"
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
PAIRS = [(kind, "hermes") for kind in KINDS]
ENDS = dict(zip(KINDS, (END, "<|im_end|>", "<|im_end|>", "</s>"), strict=True))


@functools.cache
def tokenizer_of(kind: str) -> Any:
    """A tokenizer of that kind; it is only read."""
    return base_tokenizer(**KINDS[kind])


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
            for token, learned, after in zip(
                example.ids, example.learn, (*example.learn[1:], False), strict=True
            )
            if learned and not after
        ]
        spoken = sum(message["role"] == "assistant" for message in transcript)
        assert last == [fitted.eos_token_id] * spoken


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_both_trainers_and_the_preflight_take_it(kind: str, name: str, notes: ToolEnv[Any]) -> None:
    tokenizer = tokenizer_of(kind)
    model = base_model(tokenizer)

    fitted = with_chat_template(tokenizer, name, model)

    ChatFormat(model, fitted, notes).check(notes)
    assert supports_tool_calling(fitted)
    assert is_chat_template_prefix_preserving(fitted)
    assert can_sanitize(fitted, notes)
    assert list(template_findings(notes, fitted)) == []
    long = resolve(NOTES, max_completion_length=10_000).model_copy(update={"split": None})
    assert list(expert_findings(long, notes, model, fitted, 10_000)) == []


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


@pytest.mark.parametrize("name", ["hermes"])
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


@pytest.mark.parametrize("name", ["hermes"])
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
    learned = [
        token for token, is_learned in zip(example.ids, example.learn, strict=True) if is_learned
    ]
    read = parse_calls(tokenizer.decode(learned[:-1]), specs_from(TOOLS))

    assert learned[-1] == tokenizer.eos_token_id
    assert read == [ToolCall(called, arguments) for called, arguments, _ in made]


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
    "{% for m in messages %}": "is not a Jinja template: line 1: Unexpected end of template",
    "hello": "does not show the messages of a chat",
    "{{ raise_exception('no') }}": "cannot render a question and an answer: no",
    "{{ messages[7].content + 1 }}": "cannot render a question and an answer",
    "{{ 'a'.index('b') }}": "cannot render a question and an answer",
    "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}": "maximum recursion depth",
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_is_no_template_of_chats_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.jinja"
    file.write_text(text)

    with pytest.raises(ConfigurationError, match=BAD[text]):
        ChatTemplate.named(str(file))


def test_a_name_that_is_neither_is_refused_with_the_names_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'hermse' .* Use hermes or the path"):
        ChatTemplate.named("hermse")
    with pytest.raises(ConfigurationError, match="there is no chat template"):
        ChatTemplate.named(str(tmp_path))
    (tmp_path / "latin").write_bytes(b"\xe9{{ messages }}")
    with pytest.raises(ConfigurationError, match="latin"):
        ChatTemplate.named(str(tmp_path / "latin"))


# Models -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(bare: Any, tmp_path: Path) -> str:
    """A base model, saved."""
    save(base_model(bare), bare, tmp_path / "base")
    return str(tmp_path / "base")


def test_a_model_without_a_template_is_refused_with_the_option_that_helps(folder: str) -> None:
    with pytest.raises(ConfigurationError, match="Add --chat-template hermes"):
        load_model(folder)


@pytest.mark.parametrize("name", ["hermes"])
def test_a_saved_checkpoint_keeps_its_template(name: str, folder: str, tmp_path: Path) -> None:
    model, tokenizer = load_model(folder, chat_template=name)
    save(model, tokenizer, tmp_path / "final")
    again, loaded = load_model(str(tmp_path / "final"))
    chat = played()[1]

    assert loaded.apply_chat_template(chat) == tokenizer.apply_chat_template(chat)
    assert stop_ids(again, loaded) == stop_ids(model, tokenizer)
    assert loaded.response_template == tokenizer.response_template


def test_a_policy_plays_by_the_template_of_its_option(
    folder: str, bare: Any, notes: ToolEnv[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[int]] = []

    def nothing(engine: Engine, turns: list[Generation], **_: Any) -> None:
        read.extend(turn.prompt for turn in turns)

    monkeypatch.setattr(Engine, "generate", nothing)
    load(folder, chat_template="hermes").act([Situation(notes, "", 0)])

    schemas = notes.tool_schemas()
    fitted = with_chat_template(bare, "hermes")
    expected = rendered(fitted, prompt_messages(notes), tools=schemas, add_generation_prompt=True)
    assert all(json.dumps(schema) in expected for schema in schemas)
    assert [fitted.decode(each) for each in read] == [expected]
    assert bare.chat_template is None
