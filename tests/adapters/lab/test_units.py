"""Units, results and the page of the lab, on experiments that are arithmetic."""

import json

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.lab.results import finding, render, write_lab_report, write_results
from adapters.lab.runner import estimate, left_of, piece_named, pieces_of, run_units
from adapters.lab.units import FIRST_SEED, record_of, units_of
from tests.adapters.lab.small_claims import EXPERIMENT, experiment
from toolgym.errors import ConfigurationError

pytestmark = [pytest.mark.torch, pytest.mark.nightly]


def test_a_unit_that_is_done_is_not_done_again(tmp_path):
    units = units_of(EXPERIMENT, "quick")
    assert len(units) == 8
    assert run_units(units[:3], tmp_path, jobs=1) == []

    assert left_of(units, tmp_path) == units[3:]
    run_units(left_of(units, tmp_path), tmp_path, jobs=1)
    assert left_of(units, tmp_path) == []
    assert record_of(units[0], tmp_path) == {"value": 1, "above": True, "path": [0, 1]}


def test_another_config_or_a_damaged_file_is_done_again(tmp_path):
    units = units_of(EXPERIMENT, "smoke")
    run_units(units, tmp_path, jobs=1)
    units[0].file(tmp_path).write_text('{"key": ')

    assert left_of(units, tmp_path) == units[:1]
    other = units_of(experiment(fails=True), "smoke")
    left = [(unit.cell, unit.seed) for unit in left_of(other, tmp_path)]
    assert left == [("a", FIRST_SEED), ("a", FIRST_SEED + 1)]


def test_a_unit_that_fails_is_told_and_ends_no_other(tmp_path):
    failing = experiment(fails=True)
    units, seen = units_of(failing, "quick"), []
    failures = run_units(units, tmp_path, jobs=1, done=seen.append)

    assert [(each.unit.cell, each.unit.seed) for each in failures] == [("a", FIRST_SEED + 1)]
    assert failures[0].error == "ValueError: this seed is unlucky"
    assert len(seen) == len(units)
    found = finding(failing, "quick", units, tmp_path, failures)
    assert (found.done, found.wanted) == (7, 8)
    assert "this seed is unlucky" in render([found])


def test_processes_do_the_same_as_one(tmp_path):
    units = units_of(EXPERIMENT, "smoke")
    assert run_units(units, tmp_path / "two", jobs=2) == []
    run_units(units, tmp_path / "one", jobs=1)

    two, one = ([record_of(u, tmp_path / n) for u in units] for n in ("two", "one"))
    assert two == one


def test_results_have_the_same_bytes_whatever_the_order(tmp_path):
    units = units_of(EXPERIMENT, "quick")
    written = []
    for name, order in (("a", units), ("b", units[::-1])):
        run_units(order, tmp_path / name, jobs=1)
        found = finding(EXPERIMENT, "quick", units, tmp_path / name)
        written.append(write_results([found], tmp_path / name).read_bytes())

    assert written[0] == written[1]
    told = json.loads(written[0])["small"]
    assert told["predictions"][0]["verdict"] == "confirmed"
    assert told["cells"]["a"]["above"]["value"] == 1.0
    assert "path" not in told["cells"]["a"]
    assert str(tmp_path) not in written[0].decode()


def test_the_page_tells_claims_and_verdicts_and_escapes_them(tmp_path):
    units = units_of(EXPERIMENT, "quick")
    run_units(units, tmp_path, jobs=1)
    page = write_lab_report([finding(EXPERIMENT, "quick", units, tmp_path)], tmp_path).read_text()

    assert "A claim &lt;with&gt; markup." in page
    assert '<td class="confirmed">confirmed</td>' in page
    assert page.count("<figure") == 2
    assert page.count("<script") == page.count("</script>") == 3  # data, library, the page's own


def test_pieces_hold_all_units_once_and_none_is_too_long():
    units = units_of(EXPERIMENT, "full", seeds=40)
    pieces = pieces_of(units, 2)

    assert [unit for piece in pieces for unit in piece] == units
    assert all(estimate(piece, 2) <= 15 * 60 for piece in pieces)
    assert piece_named(f"2/{len(pieces)}", pieces) == pieces[1]
    with pytest.raises(ConfigurationError, match=f"there are {len(pieces)} pieces"):
        piece_named("1/99", pieces)
    with pytest.raises(ConfigurationError, match="pieces go from 1"):
        piece_named(f"0/{len(pieces)}", pieces)
