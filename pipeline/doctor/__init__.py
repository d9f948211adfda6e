"""What this machine has against what Forebay wants, and the fix for each difference. Loads none of what it looks at."""

from __future__ import annotations

from pipeline.doctor.examine import Target, examine
from pipeline.doctor.finding import Finding, Level

__all__ = ["Finding", "Level", "Target", "examine"]
