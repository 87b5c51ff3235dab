from collections.abc import Iterator
from typing import Any

import pytest

from tests.fuzz import cases


@pytest.fixture(autouse=True)
def told(pytestconfig: pytest.Config) -> Iterator[None]:
    """Print progress past pytest's capture."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(line, flush=True)

    cases.tally = cases.Tally(tell)
    yield
    if not cases.IS_SEEDED and cases.tally.cases > 1:
        tell(f"{cases.tally} in all")


@pytest.fixture(autouse=True)
def without_static_files(settings: Any) -> None:
    """Remove their middleware, which is async: in the synchronous client it costs each request four
    thread switches.
    """
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "servestatic" not in name]
