"""Templates of questions, one module per family.

`TEMPLATES` maps names to templates. The decorator `template` registers new templates.
"""

from sqlgym.synthesis.drafting import TEMPLATES, Template, template
from sqlgym.synthesis.templates import groups as groups
from sqlgym.synthesis.templates import lists as lists
from sqlgym.synthesis.templates import nested as nested
from sqlgym.synthesis.templates import numbers as numbers
from sqlgym.synthesis.templates import owners as owners

__all__ = ["TEMPLATES", "Template", "template"]
