"""Invents databases, so that a model must read schemas instead of memorizing a few schemas.

`databases` draws tables, columns and rows from `vocabulary.toml`. `sqlgym.synthesis` writes
questions about the databases, as it does for any other database.
"""

from __future__ import annotations

from sqlgym.invention.databases import invent_databases

__all__ = ["invent_databases"]
