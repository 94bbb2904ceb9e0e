"""The pages on training name what can be chosen, and everything that can be chosen is named there.

A name in a page that no config takes is a promise that nobody can have; so each row of a table of
settings is made into a config here, and each default in a sentence or a help is the program's own.
"""

import re
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.lab.catalogue import HEADLINES, MODULES
from adapters.reference.config import reference_config
from adapters.reference.losses import LOSSES
from adapters.training.algorithms.advantages import ESTIMATORS, TURN_ESTIMATORS
from adapters.training.preflight.judge import Limits
from adapters.training.preflight.run import REPORT, Scope
from adapters.training.runs.settings import resolve
from adapters.trl import StableGRPOConfig
from tests.test_docs import IN_WORDS, ROOT, TEXT, prose, table_under
from toolgym import ConfigurationError
from toolgym.runs.metrics import METRICS
from toolgym.runs.run import CONFIG, ROLLOUTS, SUMMARY
from toolgym.runs.run import METRICS as METRICS_FILE
from tools.make_docs import help_of

pytestmark = pytest.mark.torch

ALGORITHMS = table_under(
    "algorithms.md", "| algorithm | `ReferenceConfig(...)` | `StableGRPOConfig(...)` |"
)
NAMES = [row[0] for row in ALGORITHMS]


def settings_in(cell: str) -> dict[str, Any] | None:
    """The keyword arguments in a cell, or None where it is empty."""
    return eval(f"dict({cell.strip('`')})") if cell else None


@pytest.mark.parametrize(("name", "ours", "trls"), ALGORITHMS, ids=NAMES)
def test_an_algorithm_is_what_both_configs_make_of_its_row(name, ours, trls, tmp_path):
    mine, theirs = settings_in(ours), settings_in(trls)
    reference = reference_config(mine or {})
    if theirs is None and mine is not None:
        return
    stable = StableGRPOConfig(output_dir=str(tmp_path), use_cpu=True, **(theirs or {}))

    assert stable.estimator == reference.advantages
    assert (stable.epsilon_high or stable.epsilon) == pytest.approx(
        reference.loss.epsilon_high + (reference.loss.surrogate == "cispo")
    )
    assert stable.importance_sampling_level == reference.loss.ratio
    aggregation = {"grpo": "sample", "dr_grpo": "constant"}.get(stable.loss_type, "token")
    assert aggregation == reference.loss.aggregation


def test_every_estimator_and_every_loss_has_a_row_that_chooses_it():
    made = [reference_config(settings_in(row[1]) or {}) for row in ALGORITHMS]
    named = {str((settings_in(row[1]) or {}).get("loss", "dapo")) for row in ALGORITHMS}

    assert {config.advantages for config in made} == {*ESTIMATORS, *TURN_ESTIMATORS}
    assert named == LOSSES.keys()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_trl_takes_every_estimator_of_whole_rollouts(name, tmp_path):
    config = StableGRPOConfig(output_dir=str(tmp_path), use_cpu=True, advantage_estimator=name)

    assert config.estimator == name


@pytest.mark.parametrize("name", TURN_ESTIMATORS)
def test_trl_takes_no_estimator_of_turns(name, tmp_path):
    with pytest.raises(ConfigurationError, match="no advantage estimator"):
        StableGRPOConfig(output_dir=str(tmp_path), use_cpu=True, advantage_estimator=name)


def test_every_algorithm_of_the_lab_has_a_row():
    from adapters.lab.experiments.estimators import METHODS

    rows = [settings_in(row[1]) or {} for row in ALGORITHMS]
    offered = {(row.get("advantages"), row.get("loss", "dapo")) for row in rows}
    for name, method in METHODS.items():
        assert (method["estimator"], method["loss"]) in offered, name


def test_the_metrics_to_look_at_first_are_metrics():
    rows = table_under("guards.md", "| metric | what to look for |")

    assert {name.strip("`") for name, _ in rows} <= METRICS.keys()


def test_the_run_folder_has_the_files_that_the_page_lists():
    section = TEXT["run-folder.md"].split("\n## ", 1)[0]
    listed = set(re.findall(r"^    ([a-z_]+(?:\.\w+|/))\s{2,}", section, re.M))

    files = {CONFIG, METRICS_FILE, ROLLOUTS, SUMMARY, REPORT, "report.html", "checkpoints/"}
    assert listed == files


# The value of an option's default, as its help says it: for the tiny model, for the tiny model
# after a novice, and for a pretrained one.
TINY, NOVICE, PRETRAINED = (
    resolve("sqlgym/Explore-v0"),
    resolve("aflowgym/Compose-v0"),
    resolve("sqlgym/Explore-v0", model="some/model"),
)
IN_HELPS = [
    ("train", "--steps", "steps", f"{PRETRAINED.steps}, for the tiny model after a novice {{}}"),
    ("train", "--prompts", "prompts", f"{TINY.prompts}, for the tiny model after a novice {{}}"),
    ("train", "--group-size", "group_size", "compared; {}."),
    ("train", "--temperature", "temperature", "rollouts; {:g}."),
    ("train", "--eval-tasks", "eval_tasks", "trained on; {}."),
    ("train", "--save-every", "save_every", "checkpoints; {}."),
    ("preflight", "--group-size", "group_size", "will compare; {}."),
]


@pytest.mark.parametrize(("command", "option", "field", "words"), IN_HELPS)
def test_a_default_in_a_help_is_that_of_the_settings(command, option, field, words):
    told = " ".join(help_of(command).split())
    (line,) = re.findall(rf"{option} <[^>]+> (.*?)(?= --[a-z]| -h,)", told)

    assert words.format(getattr(NOVICE, field)) in line


def test_the_rates_in_the_help_are_those_of_the_settings():
    told = " ".join(help_of("train").split())
    found = re.search(
        r"Of GRPO; (\S+) \(tiny\), (\S+) \(after a novice\) or (\S+) \(others\)", told
    )

    assert found is not None
    rates = [settings.learning_rate for settings in (TINY, NOVICE, PRETRAINED)]
    assert [float(each) for each in found.groups()] == rates


def test_the_warm_up_in_the_help_of_preflight_is_that_of_the_settings():
    told = " ".join(help_of("preflight").split())

    assert f"before it is looked at; {TINY.warmup_steps}." in told
    assert f"the tiny model imitates; {TINY.demonstrations}." in told


LIMITS = Limits()
SHARES = {
    "validity": ("below", LIMITS.validity, LIMITS.poor_validity),
    "tool_failures": ("above", LIMITS.failures, LIMITS.many_failures),
    "unfinished": ("above", LIMITS.unfinished, LIMITS.many_unfinished),
    "answered": ("below", None, LIMITS.answered),
    "signal": ("below", LIMITS.signal, None),
    "live_groups": ("below", None, LIMITS.live),
}


def test_the_limits_of_a_preflight_are_those_of_the_program():
    rows = {
        row[0].split("`")[1]: row[1:]
        for row in table_under("preflight.md", "| figure | a no-go | a warning |")
        if "`" in row[0]
    }

    for name, (side, *limits) in SHARES.items():
        for cell, limit in zip(rows.pop(name), limits, strict=True):
            assert cell.startswith(f"{side} {limit:.0%}".replace("%", " %") if limit else cell), (
                name
            )
            assert bool(cell) == (limit is not None), name
    assert rows.pop("repairs_per_call") == ["", f"above {LIMITS.repairs:g}"]
    assert rows.pop("entropy") == ["not finite", f"below {LIMITS.entropy:g}"]
    assert rows.pop("call_format")[0] == ""  # never a no-go, as `format_findings` has it
    assert not rows


def test_a_preflight_plays_as_much_as_the_page_says():
    scope = Scope()
    words = {16: "Sixteen"}[scope.tasks]

    told = f"{words} training tasks are tried {IN_WORDS[scope.tries]} times each"
    assert told in " ".join(prose("preflight.md").split())


def test_the_page_on_the_lab_has_every_experiment_and_every_headline():
    rows = table_under("lab.md", "| experiment | document | question |")
    quick = dict(table_under("lab.md", "| option | does |"))["`--quick`"]

    assert sorted(name.strip("`") for name, *_ in rows) == sorted(MODULES)
    assert tuple(re.findall(r"`([a-z-]+)`", quick.split("(")[1].split(")")[0])) == HEADLINES
    for name in MODULES:
        assert (ROOT / "examples" / f"lab_{name.replace('-', '_')}.py").is_file(), name
