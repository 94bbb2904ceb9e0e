# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Train the tiny model and read its report
#
# A transformer of half a million parameters is made from scratch. It imitates demonstrations, some
# of them sloppy, and is then improved by GRPO in the environment. After about five minutes of one
# core there is a run folder with all numbers, transcripts and checkpoints, and a report as one HTML
# page.
#
# It needs `pip install 'toolgym[train,notebooks]'`.

# %% tags=["parameters"]
OPTIONS = {}

# %% [markdown]
# For a trial run of a minute, put this into the cell above. A model that was trained for so short a
# time has learned nothing, and its report says so:
#
# ```python
# OPTIONS = {"sft_steps": 20, "demonstrations": 100, "steps": 2, "eval_tasks": 8}
# OPTIONS["preflight"] = False
# ```

# %%
import pandas as pd
from IPython.display import IFrame

import toolgym
from adapters.commands.train import train
from toolgym.report import write_report

# %% [markdown]
# ## The training
#
# `train` does what `toolgym train sqlgym/Explore-v0` does in a terminal, and takes the same
# settings by name. Its first lines name the model, the data and the evaluations; then each phase
# has a line.

# %%
run = train("sqlgym/Explore-v0", trainer="reference", **OPTIONS)

# %% [markdown]
# ## The result
#
# All tasks of an evaluation are unseen in training; "unseen databases" are harder, since nothing of
# the database was seen either. The sampled figures show how much was learned. Greedy decoding takes
# the likeliest of the model's habits, and noise can change which one that is.

# %%
summary = run.summary
pd.DataFrame(
    {
        (each["name"], when): {
            "accuracy": each[when]["accuracy"],
            "from (95 %)": each[when]["interval"][0],
            "to (95 %)": each[when]["interval"][1],
            "valid turns": each[when]["validity"],
            "episodes": each[when]["episodes"],
        }
        for each in summary["evaluations"]
        for when in ("before", "after")
    }
).T.round(3)

# %%
print(summary["gain"])

# %% [markdown]
# ## The curves
#
# Each step of GRPO logs one line of metrics. Look first at the reward, the share of groups that
# teach nothing because all members had the same outcome, the entropy (how many ways the model still
# tries), and the share of turns with valid calls.

# %%
FIRST = ["reward", "dead_groups", "entropy", "validity"]
steps = run.metrics("grpo")
points = [
    {"step": line["step"], "metric": name, "value": line[name]}
    for line in steps
    for name in FIRST
    if line.get(name) is not None
]
try:
    import altair as alt
except ImportError:
    print("With Altair installed this is a picture: pip install 'toolgym[notebooks]'")
    picture = pd.DataFrame(points).pivot(index="step", columns="metric", values="value")
else:
    alt.renderers.enable("svg")  # a picture that needs neither a network nor a script
    lines = alt.Chart(alt.Data(values=points)).mark_line()
    picture = (
        lines.encode(x="step:Q", y=alt.Y("value:Q", title=None))
        .properties(width=280, height=140)
        .facet(alt.Facet("metric:N", title=None), columns=2)
        .resolve_scale(y="independent")
    )
picture

# %% [markdown]
# ## The same task before and after
#
# Transcripts show what the model does. This is the first task that became right, or the first
# task if none did.

# %%
before = {episode.task_id: episode for episode in toolgym.read_episodes(run.path, "before")}
after = {episode.task_id: episode for episode in toolgym.read_episodes(run.path, "after")}
changed = [task for task in after if after[task].correct > before[task].correct]
task_id = (changed or list(after))[0]
print(f"{len(changed)} of {len(after)} tasks became right")
for name, episode in (("before", before[task_id]), ("after", after[task_id])):
    print(f"\n{name}: {episode}")
    for turn in episode.turns:
        print(f"> {turn['action']}\n{turn['observation']}")

# %% [markdown]
# ## The report
#
# The training has written the report; `write_report` writes it again, also for several runs on one
# page. It is one file that works offline.

# %%
report = write_report(run)
print(report)
IFrame(str(report), width="100%", height=600)

# %% [markdown]
# ## Next
#
# - `toolgym audit RUN` judges the verdicts again by a second rule.
# - `toolgym train sqlgym/Explore-v0 --control shuffled-rewards` is the same run with shuffled
#   rewards, from which nothing can be learned.
# - `toolgym train sqlgym/Explore-v0 --model PATH` trains a real model.
