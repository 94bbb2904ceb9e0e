"""Questions with gold SQL for any SQLite file, without anybody writing them.

    from sqlgym.synthesis import synthesize
    tasks = synthesize("my.db", n=200, seed=0).tasks

A database is profiled (`profiling`), questions are drafted from templates (`templates`), and each
candidate is proved before it is kept (`proof`). All is decided by the seed and the file's content.
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
