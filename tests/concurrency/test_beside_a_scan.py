"""People who write while the files of a root are mirrored for the first time are not refused."""

from functools import partial
from pathlib import Path

from django.db import connection

from resources_app.errors import Unavailable
from resources_app.interchange import scan
from resources_app.writing import write_path
from tests.concurrency.crew import line_up, send, together
from tests.factories import make_task, system, task_uri

FILES, WORDS = 200, 2000
# How long the writer waits for the lock: many slices, and less than all files took in one
# transaction.
PATIENCE_SECONDS = 2


def fill(root: Path) -> None:
    root.mkdir()
    for number in range(FILES):
        words = " ".join(f"word{number * 7 + word}" for word in range(WORDS))
        (root / f"{number}.md").write_text(f"# File {number}\n\n{words}\n")


def write_beside(done_file: str) -> dict[str, int]:
    """One process scans; the other writes until the scan has ended."""
    address = task_uri(make_task(title="Busy"), "description")
    scanned, wrote = together(partial(take_part, address, Path(done_file)), ["scan", "write"])
    return dict(scanned | wrote)


def take_part(address: str, done: Path, role: str) -> dict[str, int]:
    line_up()
    return scan_and_tell(done) if role == "scan" else write_until(done, address)


def scan_and_tell(done: Path) -> dict[str, int]:
    try:
        return {"added": scan.scan().added}
    finally:
        done.touch()


def write_until(done: Path, address: str) -> dict[str, int]:
    if connection.vendor == "sqlite":
        connection.settings_dict["OPTIONS"]["timeout"] = PATIENCE_SECONDS
    written = refused = 0
    while not done.exists():
        try:
            write_path.write(system(), address, {"type": "append", "content": "x"})
            written += 1
        except Unavailable:
            refused += 1
    return {"written": written, "refused": refused}


def test_a_writer_beside_the_first_scan_of_a_root_is_never_refused(
    variables: dict[str, str], tmp_path: Path
) -> None:
    fill(tmp_path / "docs")
    variables |= {"BACKLOG_RESOURCE_ROOTS": f"docs={tmp_path / 'docs'}"}
    answer = send(variables, write_beside, str(tmp_path / "done"))
    assert answer["added"] == FILES and answer["refused"] == 0
    assert answer["written"] > 0
