"""A judge of written questions that shares nothing with what writes them.

It sees a database, a question and a query. It reads what the question asks for out of the text,
with the schema's names as its only knowledge, reads what the query does out of the SQL, and
compares the two. Read `words` and `names` first (what may be mentioned), then `values` and
`clauses` (what the text says), `statements` (what the SQL does), and `comparing`.
"""

from sqlgym.blind.fitting import Finding
from sqlgym.blind.judging import Verdict, judge

__all__ = ["Finding", "Verdict", "judge"]
