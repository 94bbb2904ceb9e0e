"""What a preflight finds: figures, findings, and the verdict that follows from them.

A finding is a sentence on what is wrong and one on what to change. One that makes training
pointless is a no-go; one that costs something is a warning. There is no score to be good at: one
no-go is enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from toolgym.runs.files import plain

Level = Literal["no-go", "warn"]


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        check: What was looked at: `schemas`, `template`, `round_trip`, `tool_turn`, `room`, or a
            figure of the sample.
        level: Whether training is pointless with it, or only worse.
        reason: What was seen.
        advice: What to change.
    """

    check: str
    level: Level
    reason: str
    advice: str


@dataclass(frozen=True)
class Report:
    """All findings, and the figures that they were made of.

    Attributes:
        findings: In the order of the checks.
        figures: By name; None where there is nothing to be measured. Named as in `metrics.jsonl`
            where they are the same.
    """

    findings: tuple[Finding, ...]
    figures: Mapping[str, Any]

    @property
    def go(self) -> bool:
        """Nothing makes training pointless."""
        return all(finding.level != "no-go" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """`go` or `no-go`."""
        return "go" if self.go else "no-go"

    @property
    def reasons(self) -> list[str]:
        """Why it is a no-go, each with what to change; empty for a go."""
        stops = [finding for finding in self.findings if finding.level == "no-go"]
        return [f"{finding.check}: {finding.reason} {finding.advice}" for finding in stops]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data; a number that does not exist is None."""
        findings = [asdict(finding) for finding in self.findings]
        figures = plain(self.figures, "figures")
        return {"verdict": self.verdict, "findings": findings, "figures": figures}
