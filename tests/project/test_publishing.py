"""What a stranger meets before the code: version, changelog, citation, templates and workflows.

Files that GitHub reads are held against the schemas that check-jsonschema carries, and what they
say against the project: targets of the Makefile, interpreters, addresses.
"""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.interpreters import supported
from tools.make_site import WORK
from tools.release import ROOT, UNRELEASED, disagreements, sections, version_of

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Migration")
PACKAGES = ("toolgym", "sqlgym", "aflowgym", "adapters")
NAMES = [path.stem for path in WORKFLOWS]


def loaded(path: Path) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="needs the extra dev")
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


# The version.


def test_a_release_of_this_version_could_be_made():
    """But for what waits under [Unreleased] for the next one."""
    told = disagreements(f"v{version_of()}")
    assert [each for each in told if "move them to" not in each] == []


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The files that tell the version, in a folder of their own."""
    for name in ("pyproject.toml", "CHANGELOG.md", "CITATION.cff"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.png"))
    return tmp_path


@pytest.mark.parametrize(
    ("file", "what", "instead", "told"),
    [
        ("pyproject.toml", 'version = "{}"', 'version = "9.9.9"', "is no v9.9.9"),
        ("CITATION.cff", "version: {}", "version: 9.9.9", "needs the line version: "),
        ("CITATION.cff", "date-released: ", "released: ", "needs the line date-released: "),
        ("CHANGELOG.md", "## [{}] - ", "## [9.9.9] - ", "has no dated text"),
        ("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n- A line.\n", "move them to"),
        ("CHANGELOG.md", "## [Unreleased]\n", "## [9.9.9] - 2030-01-01\n\n- A line.\n", "on top"),
        ("docs/openenv.md", "toolgym-{}-py3", "toolgym-9.9.9-py3", "names a wheel of 9.9.9"),
    ],
)
def test_a_version_that_is_told_in_another_way_is_no_release(copied, file, what, instead, told):
    path, what = copied / file, what.format(version_of())
    text = path.read_text(encoding="utf-8")
    assert what in text
    path.write_text(text.replace(what, instead), encoding="utf-8")

    assert told in "\n".join(disagreements(f"v{version_of()}", copied))


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path):
    notes = tmp_path / "notes.md"
    command = [sys.executable, str(ROOT / "tools" / "release.py"), f"v{version_of()}"]
    done = subprocess.run([*command, "--notes", str(notes)], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    text = notes.read_text(encoding="utf-8")
    assert text.startswith("### ")
    assert f"\n{text}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    wrong = subprocess.run([*command[:2], "v0.0.0"], capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "the tag v0.0.0 is no v" in wrong.stderr


# The changelog.


def test_the_changelog_has_the_usual_form():
    told = sections()
    names = [name for name in told if name != UNRELEASED]

    assert next(iter(told)) == UNRELEASED
    numbers = [tuple(map(int, name.split("."))) for name in names]
    assert numbers == sorted(numbers, reverse=True)
    dates = [date for name, (date, _) in told.items() if name != UNRELEASED]
    assert dates == sorted(dates, reverse=True)
    for name, (_, text) in told.items():
        kinds = re.findall(r"^### (.+)$", text, re.M)
        assert kinds == [kind for kind in KINDS if kind in kinds], name
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    linked = dict(re.findall(r"^\[([^]]+)\]: (\S+)$", text, re.M))
    assert list(linked) == list(told)
    assert all(link.startswith(f"{URLS['Source']}/") for link in linked.values())


def test_an_entry_of_the_changelog_is_short():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.findall(r"^- (.+(?:\n  .+)*)", text, re.M)

    assert len(entries) > 40
    assert [entry for entry in entries if len(entry) > 400] == []


def test_the_import_paths_that_moved_are_those_that_the_program_redirects():
    redirected = {
        moved
        for package in PACKAGES
        for file in (ROOT / package).rglob("__init__.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "redirect"
        for moved in ast.literal_eval(node.args[0]).items()
    }
    _, text = sections()["0.2.0"]

    assert {*re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", text, re.M)} == redirected


# What GitHub reads.


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_a_file_has_the_form_that_its_reader_asks_for(schema, files):
    pytest.importorskip("check_jsonschema", reason="needs the extra dev")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True)

    assert files
    assert done.returncode == 0, done.stdout + done.stderr


def steps_of(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)
def test_every_command_of_a_workflow_is_one_of_the_project(path):
    targets = {*re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M)}
    for command in (step["run"] for step in steps_of(loaded(path)) if "run" in step):
        words = command.split()
        if words[0] == "make":
            assert words[1] in targets, command
            assert all(re.fullmatch(r"(PYTHON|JOBS|NAME)=\S+", word) for word in words[2:])
        elif words[0] == "python":
            assert (ROOT / words[1]).is_file(), command
        else:
            assert words[:3] == ["gh", "release", "create"], command


@pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)
def test_a_workflow_has_few_rights_and_no_text_of_others_in_its_commands(path):
    workflow = loaded(path)

    assert workflow["permissions"] == {"contents": "read"}
    assert set(workflow["concurrency"]) == {"group", "cancel-in-progress"}
    for step in steps_of(workflow):
        assert "${{" not in step.get("run", ""), "hand it over in env: a tag may hold shell"
        action = step.get("uses", "make@v0")
        assert re.fullmatch(r"[\w-]+(?:/[\w-]+)*@(?:v\d+|release/v\d+)", action), action
        if action.startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_rights_to_write_are_given_to_the_job_that_needs_them_only():
    given = {
        f"{path.stem}/{name}": job["permissions"]
        for path in WORKFLOWS
        for name, job in loaded(path)["jobs"].items()
        if "permissions" in job
    }

    assert given == {
        "docs/deploy": {"pages": "write", "id-token": "write"},
        "release/publish": {"id-token": "write"},
        "release/announce": {"contents": "write"},
    }


def test_checks_and_tests_run_on_every_supported_interpreter():
    jobs = loaded(GITHUB / "workflows" / "ci.yml")["jobs"]
    run = {
        step["run"].split()[1] for job in jobs.values() for step in job["steps"] if "run" in step
    }

    assert jobs["test"]["strategy"]["matrix"]["python"] == supported()
    assert {"check", "test", "test-slow", "test-adapters", "docs"} <= run
    (setup,) = (step for step in jobs["slow"]["steps"] if "setup-python" in step.get("uses", ""))
    assert sorted(setup["with"]["python-version"].split()) == supported()


def test_the_site_that_is_built_is_the_one_that_is_put_online():
    (job,) = (
        job
        for job in loaded(GITHUB / "workflows" / "docs.yml")["jobs"].values()
        if any("upload-pages-artifact" in step.get("uses", "") for step in job["steps"])
    )
    *_, make, upload = job["steps"]
    folder = (
        WORK / tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["site_dir"]
    )

    assert make["run"] == "make docs"
    assert ROOT / upload["with"]["path"] == folder


def test_a_release_is_checked_built_and_uploaded_in_this_order():
    jobs = loaded(GITHUB / "workflows" / "release.yml")["jobs"]
    commands = [step["run"].split()[:2] for step in jobs["build"]["steps"] if "run" in step]

    assert commands == [["python", "tools/release.py"], ["make", "dist"]]
    assert (jobs["publish"]["needs"], jobs["announce"]["needs"]) == ("build", "publish")
    (upload,) = (step for step in jobs["publish"]["steps"] if "pypi-publish" in step["uses"])
    assert upload["with"] == {"attestations": True}, "trusted publishing: no user and no token"


def test_the_addresses_are_those_of_the_metadata():
    citation = loaded(ROOT / "CITATION.cff")
    contacts = loaded(GITHUB / "ISSUE_TEMPLATE" / "config.yml")["contact_links"]
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    report = f"{URLS['Source']}/security/advisories/new"

    assert (citation["repository-code"], citation["url"]) == (URLS["Source"], URLS["Documentation"])
    assert [link["url"] for link in contacts] == [URLS["Documentation"], report]
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert (site["repo_url"], site["site_url"]) == (URLS["Source"], URLS["Documentation"])
    assert report in security
    for page in re.findall(rf"{URLS['Source']}/blob/main/([\w./-]+)", security):
        assert (ROOT / page).is_file(), page


def test_every_name_in_the_security_policy_is_in_the_program():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = {
        word
        for span in re.findall(r"`([A-Za-z_][\w.]+)`", text)
        for word in span.split(".")
        if not span.isupper()
    }
    sources = [
        path
        for package in ("toolgym", "sqlgym", "aflowgym")
        for path in (ROOT / package).rglob("*.py")
    ]
    known = {word for path in sources for word in re.findall(r"\w+", path.read_text("utf-8"))}

    assert {"SandboxRefused", "heap_bytes", "Limits", "bubblewrap"} <= named
    assert named - {path.stem for path in sources} <= known | {"toolgym"}
