"""Choose how often a test of races repeats itself.

Every run has the race; `make faults` sets FAULTS_FULL and has it as often as docs/proof.md says.
"""

import os

IS_FULL = "FAULTS_FULL" in os.environ


def repeats(usual: int, *, full: int) -> int:
    return full if IS_FULL else usual
