"""Check that each mutant still has its place and its test.

Planting the bugs is slow and runs rarely (`make mutants`).
"""

import pytest

from tests.security.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_bug_has_one_place_and_a_test(mutant: Mutant) -> None:
    for file, code, bug in mutant.edits:
        assert (ROOT / file).read_text().count(code) == 1 and code != bug, file
    file, _, name = mutant.suite.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text()


def test_each_bug_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
