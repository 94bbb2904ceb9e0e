"""The notebook is run as a whole by a real kernel, and its outputs agree with its computations.

A last cell returns, as JSON, values that the cells before it computed. `parameters` are inserted
after the cell with that tag, as papermill does.
"""

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

jupytext = pytest.importorskip("jupytext", reason="needs the extra notebooks")
nbclient = pytest.importorskip("nbclient", reason="needs the extra notebooks")
pytest.importorskip("ipykernel", reason="needs the extra notebooks")
new_code_cell = pytest.importorskip("nbformat.v4").new_code_cell

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "notebooks"
NAMES = ("train_and_report",)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a notebook in an empty folder; returns it with its outputs, and the values asked for."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    (tmp_path / "work").mkdir()

    def run(name, values, parameters=""):
        notebook = jupytext.read(FOLDER / f"{name}.py")
        if parameters:
            [place] = [n for n, cell in enumerate(notebook.cells) if is_parameters(cell)]
            notebook.cells.insert(place + 1, new_code_cell(parameters))
        asked = ", ".join(f"{key!r}: {expression}" for key, expression in values.items())
        source = f"import json, toolgym\nprint(json.dumps({{{asked}, 'from': toolgym.__file__}}))"
        notebook.cells.append(new_code_cell(source))
        where = {"metadata": {"path": str(tmp_path / "work")}}
        nbclient.NotebookClient(
            notebook, timeout=None, kernel_name="python3", resources=where
        ).execute()
        found = json.loads(notebook.cells[-1].outputs[0]["text"])
        assert Path(found.pop("from")).is_relative_to(ROOT)  # no other copy was run
        return notebook, found

    return run


def is_parameters(cell):
    return "parameters" in cell.metadata.get("tags", ())


def pictures(notebook, kind="text/html"):
    """What all cells show of one kind, as Jupyter would show it."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["data"][kind] for output in outputs if kind in output.get("data", ())]


def test_every_notebook_is_tested():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_begins_with_a_title_has_short_cells_and_no_outputs(name):
    notebook = jupytext.read(FOLDER / f"{name}.py")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]

    assert notebook.cells[0].source.startswith("# ")
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert max(len(cell.source.splitlines()) for cell in code) <= 36
    assert all(cell.outputs == [] for cell in code)
    assert len(notebook.cells) - len(code) >= len(code) // 2  # it tells what it does


def drawing(monkeypatch, **modules):
    """What the cell of the notebook that draws leaves to be shown."""
    cells = jupytext.read(FOLDER / "train_and_report.py").cells
    [cell] = [each for each in cells if "import altair" in each.source]
    for module, instead in modules.items():
        monkeypatch.setitem(sys.modules, module, instead)
    step = {"step": 1, **dict.fromkeys(("reward", "grad_norm", "entropy"), 0.5)}
    names = {"run": SimpleNamespace(metrics=lambda phase: [step])}
    names["pd"] = pytest.importorskip("pandas", reason="needs the extra train")
    exec(cell.source, names)
    return names["picture"]


@pytest.mark.torch
def test_without_the_plotting_library_there_is_a_table(monkeypatch, capsys):
    picture = drawing(monkeypatch, altair=None)

    assert 0.5 in picture.to_numpy()
    assert "pip install 'toolgym[notebooks]'" in capsys.readouterr().out


@pytest.mark.torch
def test_with_the_plotting_library_there_is_a_picture_without_a_script(monkeypatch):
    pytest.importorskip("altair", reason="needs the extra notebooks")

    shown = drawing(monkeypatch)._repr_mimebundle_(include=None, exclude=None)

    assert shown["image/svg+xml"].startswith("<svg")
    assert "<script" not in shown["image/svg+xml"]


def test_the_notebook_can_be_converted(tmp_path):
    text = (FOLDER / "train_and_report.py").read_text("utf-8")
    assert "`jupytext --to ipynb train_and_report.py`" in text
    file = shutil.copy(FOLDER / "train_and_report.py", tmp_path)

    command = [sys.executable, "-m", "jupytext", "--to", "ipynb", file]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "train_and_report.ipynb").read_text("utf-8"))
    assert made["nbformat"] == 4
    assert {cell["cell_type"] for cell in made["cells"]} == {"markdown", "code"}


@pytest.mark.torch
def test_the_tiny_model_is_trained_and_its_report_is_written(run, tmp_path):
    pytest.importorskip("trl", reason="needs the extra train")
    text = (FOLDER / "train_and_report.py").read_text("utf-8")
    quick = "\n".join(re.findall(r"^# (OPTIONS.*)$", text, re.M))

    notebook, found = run(
        "train_and_report",
        {
            "complete": "run.is_complete",
            "steps": "[line['step'] for line in steps]",
            "report": "str(report)",
            "gain": "summary['gain']",
            "played": "[len(before), len(after)]",
            "points": "sorted({each['metric'] for each in points})",
        },
        parameters=quick,
    )

    [told] = [cell.outputs for cell in notebook.cells if "run = train(" in cell.source]
    printed = "".join(output.get("text", "") for output in told)
    assert "Run folder: runs/explore-001\n" in printed
    assert "\x1b" not in printed
    assert len(printed.splitlines()) < 60
    assert found["complete"] is True
    assert found["steps"] == [1, 2]
    # A step whose groups all tie learns nothing, and has no entropy of what it learned from.
    assert {*found["points"]} - {"entropy"} == {"dead_groups", "reward", "validity"}
    assert found["played"] == [8, 8]
    assert found["gain"]
    report = tmp_path / "work" / found["report"]
    assert found["gain"] in html.unescape(report.read_text("utf-8"))
    assert len(pictures(notebook, "image/svg+xml")) == 1
    assert any("<iframe" in each for each in pictures(notebook))
