"""Templates of questions, one module per family.

`TEMPLATES` maps names to templates, and `template` registers one of your own.
"""

from sqlgym.synthesis.drafting import TEMPLATES, Template, template
from sqlgym.synthesis.templates import groups, lists, nested, numbers, owners, sets

__all__ = [
    "TEMPLATES",
    "Template",
    "groups",
    "lists",
    "nested",
    "numbers",
    "owners",
    "sets",
    "template",
]
