"""The length check: what it counts, and that its list of exceptions cannot outlive its reasons."""

from pathlib import Path

import pytest

from tools.check_lengths import main

LONG = "\n".join(["def long():", '    """Told', '    on two lines."""', *["    x = 1"] * 4, ""])
DOCSTRING = '"""An idea.\n\nTold at length.\n"""\n'


def checkout(
    folder: Path, exceptions: str = "", module: str = DOCSTRING + LONG, slices: str = ""
) -> Path:
    """A checkout with one module, where a function may have 4 lines and a file 20."""
    (folder / "toolgym").mkdir()
    (folder / "toolgym" / "x.py").write_text(module)
    limits = "file = [10, 20]\nfunction = [2, 4]\nmodule-docstring = [3, 5]\nslice = 8"
    (folder / "pyproject.toml").write_text(
        f"[tool.toolgym.lengths]\n{limits}\n[tool.toolgym.lengths.slices]\n{slices}\n"
        f"[tool.toolgym.lengths.exceptions]\n{exceptions}\n"
    )
    return folder


def allowed(name: str, lines: int) -> str:
    return f'"{name}" = {{ lines = {lines}, reason = "a test" }}'


def test_a_function_pays_for_its_code_and_not_for_its_docstring(tmp_path, capsys):
    assert main(checkout(tmp_path)) == 1
    assert "toolgym/x.py::long: this function has 5 lines, 4 are allowed" in capsys.readouterr().out


def test_an_exception_lets_a_long_function_pass(tmp_path):
    assert main(checkout(tmp_path, allowed("toolgym/x.py::long", 5))) == 0


@pytest.mark.parametrize(
    ("exception", "complaint"),
    [
        (allowed("toolgym/x.py", 30), "need no exception"),
        (allowed("toolgym/gone.py", 30), "not there"),
        (allowed("toolgym/x.py::gone", 30), "not there"),
    ],
)
def test_an_exception_that_is_not_needed_fails_the_check(tmp_path, capsys, exception, complaint):
    exceptions = allowed("toolgym/x.py::long", 5) + "\n" + exception

    assert main(checkout(tmp_path, exceptions)) == 1
    assert complaint in capsys.readouterr().out


@pytest.mark.parametrize("module", ["", '"""One line."""\n', '"""\n' + "x\n" * 5 + '"""\n'])
def test_a_module_opens_with_a_docstring_of_the_right_length(tmp_path, capsys, module):
    assert main(checkout(tmp_path, module=module)) == 1
    assert "lines, not 3 to 5" in capsys.readouterr().out


def test_methods_and_inner_functions_are_counted_by_their_full_names(tmp_path, capsys):
    body = "\n".join(["class A:", "    def f(self):", "        def g():", *["            1"] * 4])

    main(checkout(tmp_path, module=DOCSTRING + body))

    told = capsys.readouterr().out
    assert "toolgym/x.py::A.f: " in told
    assert "toolgym/x.py::A.f.g: " in told


def test_a_long_file_fails_the_check(tmp_path, capsys):
    assert main(checkout(tmp_path, module=DOCSTRING + "x = 1\n" * 20)) == 1
    assert "toolgym/x.py: this file has 24 lines, 20 are allowed" in capsys.readouterr().out


def test_what_is_long_but_not_too_long_is_named_and_passes(tmp_path, capsys):
    body = "\n".join(["def f():", "    x = 1", "    return x", *["y = 1"] * 6])

    assert main(checkout(tmp_path, module=DOCSTRING + body + "\n")) == 0

    told = capsys.readouterr().out
    assert "warning: toolgym/x.py: this file has 13 lines; near 10 is usual" in told
    assert "warning: toolgym/x.py::f: this function has 3 lines; near 2 is usual" in told


@pytest.mark.parametrize(
    "line",
    [
        "from toolgym.x import f",
        "from toolgym import x",
        "import toolgym.x",
        "def g():\n    from toolgym.x import f",
    ],
)
def test_a_short_module_with_one_importer_is_a_slice(tmp_path, capsys, line):
    folder = checkout(tmp_path, module=DOCSTRING + "def f(): 1\n")
    longer = DOCSTRING + line + "\nx = 1" * 5 + "\n"
    (folder / "toolgym" / "user.py").write_text(longer)

    assert main(folder) == 1
    assert "toolgym/x.py: fewer than 8 lines, and only toolgym/user.py" in capsys.readouterr().out

    (folder / "toolgym" / "other.py").write_text(longer)
    assert main(folder) == 0


def test_a_module_that_another_package_imports_is_no_slice(tmp_path):
    folder = checkout(tmp_path, module=DOCSTRING + "def f(): 1\n")
    (folder / "sqlgym").mkdir()
    (folder / "sqlgym" / "user.py").write_text(DOCSTRING + "from toolgym import x\n")

    assert main(folder) == 0


@pytest.mark.parametrize("name", ["toolgym/x.py", "toolgym/gone.py"])
def test_a_listed_slice_that_is_none_fails_the_check(tmp_path, capsys, name):
    slices = f'"{name}" = "a reason"'

    assert main(checkout(tmp_path, module=DOCSTRING, slices=slices)) == 1
    assert "take it off the list" in capsys.readouterr().out


def test_a_slice_that_is_listed_passes(tmp_path):
    slices = '"toolgym/x.py" = "a reason"'
    folder = checkout(tmp_path, module=DOCSTRING, slices=slices)
    (folder / "toolgym" / "user.py").write_text(
        DOCSTRING + "from toolgym import x\n" + "y = 1\n" * 4
    )

    assert main(folder) == 0
