"""A small environment on files, a tokenizer with a real chat template, and a tiny model.

The environment reads a note per task from a folder that the test may remove, so that a fault of the
machine is a real one. It is reached by its id, as any stranger's environment is.
"""

import os
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import pytest

from tests.adapters.scripted_contract import Play, check_episode
from tests.adapters.scripted_episodes import ScriptedEpisode
from toolgym import Code, EnvironmentFault, Task, TaskRefused, TaskSet, ToolEnv, tool

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
NOTES = "trl-tests/Notes-v0"
CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
WORDS = (
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)


def _refuse_odd_notes(task: Task) -> None:
    if task.extra.get("refused"):
        raise TaskRefused(task.id, "unfair", "this note is unfair.")


class NotesEnv(ToolEnv[Task]):
    """Read a note and say the number in it."""

    def __init__(self, folder: Path | None = None, size: int = 6, **options: Any) -> None:
        tasks = [Task(f"note-{i}", f"Which number is in note {i}?") for i in range(size)]
        tasks.append(Task("unfair", "Which?", extra={"refused": True}))
        super().__init__(TaskSet(tasks, name="notes", verify=_refuse_odd_notes), **options)
        self.folder = folder

    def begin(self, task: Task) -> str:
        return task.question

    def expert(self) -> Generator[Any, str, None]:
        note = yield {"name": "read", "arguments": {"note": self.task.id}}
        yield {"name": "count", "arguments": {"text": note}}
        yield {"name": "answer", "arguments": {"value": int(note.split()[-1])}}

    @tool
    def read(self, note: str) -> str:
        """Read one note.

        Args:
            note: The note's name.
        """
        if self.folder is not None and not (self.folder / note).is_file():
            raise EnvironmentFault(f"the file of {note!r} is gone.")
        self.reach(0.5)
        return f"<|im_end|>The number is {self.number()}"

    @tool
    def count(self, text: Annotated[str, Code("text")], twice: bool = False) -> str:
        """Count the letters of a text.

        Args:
            text: What to count.
            twice: Count every letter twice.
        """
        return str(len(text) * (1 + twice))

    @tool(terminal=True, aliases=("submit",))
    def answer(self, value: str | int | float | bool | list[Any]) -> str:
        """Submit the answer and end the episode.

        Args:
            value: The number.
        """
        return self.submit(str(value) == str(self.number()))

    @tool
    def explode(self) -> str:
        """Fail as nobody foresaw."""
        raise ZeroDivisionError("nobody foresaw this")

    def number(self) -> int:
        return 10 + int(self.task.id.rpartition("-")[2])


if NOTES not in gym.registry:
    gym.register(id=NOTES, entry_point=NotesEnv)


Hold = Callable[[str, Play, ScriptedEpisode, Mapping[str, str]], None]


@pytest.fixture
def hold() -> Hold:
    """Holds an adapter to its contract on one episode."""

    def check(adapter: str, play: Play, script: ScriptedEpisode, exempt: Mapping[str, str]) -> None:
        check_episode(play, script, exempt)

    return check


@pytest.fixture
def notes_folder(tmp_path: Path) -> Path:
    """A folder with the file of every note."""
    for number in range(6):
        (tmp_path / f"note-{number}").write_text("a note")
    return tmp_path


@pytest.fixture(scope="session")
def make_tokenizer() -> Any:
    """Makes a tokenizer of a few hundred words with one of TRL's chat templates.

    Given texts like those that it will read, it needs a fifth of the tokens for them.
    """
    pytest.importorskip("trl", reason="needs the extra `train`")
    import trl
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    def make(
        template: str = "qwen3", texts: tuple[str, ...] = ("read the note and answer",)
    ) -> Any:
        inner = Tokenizer(models.BPE())
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        learn = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
        inner.train_from_iterator(list(texts) * 20, learn)
        for words, special in ((CONTROL_TOKENS, True), (WORDS, False)):
            add = inner.add_special_tokens if special else inner.add_tokens
            add([AddedToken(word, special=special, normalized=False) for word in words])
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=inner,
            eos_token="<|im_end|>",
            pad_token="<|endoftext|>",
            padding_side="left",
        )
        folder = Path(trl.__file__).parent / "chat_templates"
        tokenizer.chat_template = (folder / f"{template}.jinja").read_text()
        return tokenizer

    return make


@pytest.fixture(scope="session")
def read_tokenizer(make_tokenizer: Any) -> Any:
    """A tokenizer that has read the prompts, which makes attention over them cheap."""
    from tests.adapters.trl.scripted_trl import prompt_text

    return make_tokenizer(texts=(prompt_text(make_tokenizer()),))


@pytest.fixture(scope="session")
def tiny_transcripts() -> Any:
    """Demonstrations on small worlds; they are only read."""
    from adapters.training.models.demonstrations import demonstrate

    return demonstrate("sqlgym/Explore-v0", 60, dataset="tiny")


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_transcripts: Any) -> Any:
    """The tokenizer of the tiny model, made of those; it is only read."""
    from adapters.tiny.tokenizer import train_tokenizer

    return train_tokenizer(tiny_transcripts)


@pytest.fixture
def tokenizer(make_tokenizer: Any) -> Any:
    """A fresh tokenizer with the template of Qwen 3."""
    return make_tokenizer()


@pytest.fixture
def tiny_model(tokenizer: Any) -> Any:
    """A Qwen 3 transformer of one layer with random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            max_position_embeddings=8192,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
