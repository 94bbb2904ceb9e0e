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
# A transformer of half a million parameters is made from scratch. It imitates demonstrations,
# some of them clumsy, and is then improved by GRPO in the environment itself. After about five
# minutes of one core you have what any training here leaves: a folder with all numbers, transcripts
# and checkpoints, and a report as one HTML page.
#
# It needs `pip install 'toolgym[train,notebooks]'`.

# %% tags=["parameters"]
OPTIONS = {}

# %% [markdown]
# Only a look at how it goes, in a minute? Then put this into the cell above. A model that was
# trained for so short a time has learnt nothing, and its report will say so:
#
# ```python
# OPTIONS = {"sft_steps": 20, "demos": 100, "steps": 2, "eval_tasks": 8, "no_preflight": True}
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
# `train` does what `toolgym train sqlgym/Explore-v0` does in a terminal, with the same options. Its
# first lines say what is trained on what, and what it is measured on; then each phase has a line.

# %%
run = train("sqlgym/Explore-v0", trainer="reference", **OPTIONS)

# %% [markdown]
# ## What came of it
#
# All tasks of an evaluation are unseen in training; "unseen databases" are harder, since nothing of
# the database was seen either. The sampled figures tell how much was learnt. Greedily a model does
# the likeliest of its habits, and a small push can change which one that is.

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
# ## How it went
#
# Each step of GRPO leaves a line of numbers. These are the ones to look at first: the reward, the
# share of groups that teach nothing because all members had the same outcome, the entropy (how many
# ways the model still tries), and the share of turns with valid calls.

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
# Numbers do not tell what a model does; transcripts do. This is the first task whose verdict
# changed, or simply the first one, if none did.

# %%
before = {episode.task_id: episode for episode in toolgym.read_episodes(run.path, "before")}
after = {episode.task_id: episode for episode in toolgym.read_episodes(run.path, "after")}
changed = [task for task in after if after[task].correct > before[task].correct]
task_id = (changed or list(after))[0]
print(f"{len(changed)} of {len(after)} tasks are right now that were not")
for name, episode in (("before", before[task_id]), ("after", after[task_id])):
    print(f"\n{name}: {episode}")
    for turn in episode.turns:
        print(f"> {turn['action']}\n{turn['observation']}")

# %% [markdown]
# ## The report
#
# The training has written it; `write_report` writes it again, also for several runs on one page. It
# is one file that works offline.

# %%
report = write_report(run)
print(report)
IFrame(str(report), width="100%", height=600)

# %% [markdown]
# ## Next
#
# - `toolgym audit RUN` judges the verdicts again by a second rule.
# - `toolgym train sqlgym/Explore-v0 --control shuffled-rewards` is the same run without anything to
#   learn from: what still improves there was not learnt.
# - `toolgym train sqlgym/Explore-v0 --model PATH` trains a real model.
