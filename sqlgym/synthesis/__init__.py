"""Writes questions with gold SQL for any SQLite file.

    from sqlgym.synthesis import synthesize
    tasks = synthesize("my.db", n=200, seed=0).tasks

`profiling` profiles a database, `templates` draft questions, and `proof` checks each candidate
before it becomes a task. The results depend only on the seed and the content of the file.
"""

from sqlgym.synthesis.canonical import canonical_sql
from sqlgym.synthesis.engine import stream, synthesize
from sqlgym.synthesis.report import (
    LEVELS,
    REJECTIONS,
    Synthesis,
    SynthesisReport,
    SynthTask,
)
from sqlgym.synthesis.templates import TEMPLATES, Template, template

__all__ = [
    "LEVELS",
    "REJECTIONS",
    "TEMPLATES",
    "SynthTask",
    "Synthesis",
    "SynthesisReport",
    "Template",
    "canonical_sql",
    "stream",
    "synthesize",
    "template",
]
