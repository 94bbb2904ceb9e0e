"""Inventing databases, so that a model learns to read schemas and not a few of them by heart.

What may be in them stands in `vocabulary.toml`; `databases` draws from it. Questions about them are
written by `sqlgym.synthesis`, as about any other database.
"""

from __future__ import annotations

from sqlgym.invention.databases import invent_databases

__all__ = ["invent_databases"]
