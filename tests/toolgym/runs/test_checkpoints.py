"""A checkpoint knows the environment and the data that it was trained for, wherever it lies."""

import shutil

import pytest

import sqlgym  # noqa: F401 - registers the environments
from toolgym.errors import ConfigurationError
from toolgym.runs.checkpoints import (
    FILE,
    environment_of,
    origin_of,
    with_settings_of,
    write_origin,
)

ENV = "sqlgym/Explore-v0"


def checkpoint(folder, env_id=ENV, **env_kwargs):
    folder.mkdir(exist_ok=True)
    write_origin(folder, env_id, env_kwargs, max_new_tokens=96)
    return str(folder)


def test_a_moved_checkpoint_still_finds_its_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.db").touch()
    checkpoint(tmp_path / "final", dataset="shop.db", split="dev", step_limit=9)
    moved = shutil.move(tmp_path / "final", tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path.parent)
    env_id, env_kwargs = environment_of(str(moved))
    assert env_id == ENV
    assert env_kwargs == {"dataset": str(tmp_path / "shop.db"), "split": "dev", "step_limit": 9}


def test_the_name_of_a_data_set_stays_a_name_next_to_a_folder_that_is_called_so(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    place = checkpoint(tmp_path / "final", dataset="tiny")
    assert environment_of(place)[1] == {"dataset": "tiny"}


def test_what_the_caller_gives_replaces_what_the_run_had(tmp_path):
    part = {"unseen_by": {"split": "train"}, "kind": "tasks"}
    place = checkpoint(
        tmp_path / "final", dataset="tiny", split="dev", task_part=part, step_limit=9
    )
    origin = origin_of(place)
    assert origin.complete({"step_limit": 3})["step_limit"] == 3
    assert origin.complete({"split": "train"}) == {
        "dataset": "tiny",
        "split": "train",
        "step_limit": 9,
    }
    assert origin.complete({"dataset": "bundled"}) == {"dataset": "bundled", "step_limit": 9}


def test_a_strangers_checkpoint_names_no_server_and_imports_nothing(tmp_path):
    for backend in ({"name": "openai", "base_url": "http://evil.example/v1"}, "openai:dear-model"):
        place = checkpoint(tmp_path / "one", "aflowgym/Compose-v0", backend=backend)
        with pytest.raises(ConfigurationError, match=r"a server: backend=.* --set backend=VALUE"):
            environment_of(place)
    assert origin_of(place).complete({"backend": "simulated"}) == {"backend": "simulated"}
    place = checkpoint(tmp_path / "two", "mygym:mygym/Locks-v0")
    with pytest.raises(ConfigurationError, match="If you trust it"):
        environment_of(place)


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"env_id": 1, "env_kwargs": {}}'])
def test_a_damaged_file_is_an_error_that_names_it(content, tmp_path):
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ConfigurationError, match=FILE):
        origin_of(str(tmp_path))


def test_a_model_of_another_kind_has_no_origin(tmp_path):
    assert origin_of(str(tmp_path)) is None
    assert origin_of("Qwen/Qwen3-0.6B") is None
    assert origin_of("\0" * 9) is None
    assert origin_of("m" * 100_000) is None
    with pytest.raises(ConfigurationError, match="name an environment, such as"):
        environment_of(str(tmp_path))


def test_in_another_environment_none_of_the_settings_are_used_and_that_is_said(tmp_path):
    place = checkpoint(tmp_path / "final", dataset="tiny")
    used = with_settings_of(place, "sqlgym/TextToSQL-v0", {}, {})
    assert used == ({}, {}, f"{place} was trained for {ENV}: none of its settings are used.")
    kwargs, options, told = with_settings_of(place, f"sqlgym:{ENV}", {"split": "dev"}, {})
    assert (kwargs, options) == ({"dataset": "tiny", "split": "dev"}, {"max_new_tokens": 96})
    assert told == f"Settings of the run that trained {place}: dataset=tiny, max_new_tokens=96."
