"""Test reading from disk: only inside a root, for any form of the path and while files are
swapped.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from resources_app.addresses import uris
from resources_app.errors import BacklogError, InvalidUri, NotFound, ValidationFailed
from resources_app.files import contents, disk
from resources_app.models import Resource

SECRET = "the secret outside"


@pytest.fixture
def tree(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    """Create a root with valid files, beside files that must never be read."""
    root, outside, evil = tmp_path / "root", tmp_path / "outside", tmp_path / "root-evil"
    for folder in (root / "sub", outside, evil):
        folder.mkdir(parents=True)
    (root / "a.md").write_text("---\ntitle: A\n---\nhello")
    (root / "sub" / "b.txt").write_text("deep")
    for place in (outside / "secret.txt", evil / "secret.txt"):
        place.write_text(SECRET)
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "relative-link.txt").symlink_to("../outside/secret.txt")
    (root / "linked-folder").symlink_to(outside)
    (root / "chain").symlink_to("linked-folder")
    (root / "loop").symlink_to("loop")
    (root / "proc").symlink_to("/proc/self")
    os.link(outside / "secret.txt", root / "hard.txt")
    os.mkfifo(root / "fifo")
    settings.RESOURCE_ROOTS = {"docs": root}
    yield root


def read(path: object) -> disk.FileReading:
    return disk.read_file_uri(uris.parse(f"file://{path}"))


def test_a_file_inside_a_root_is_read_with_its_facts(tree: Path) -> None:
    found = read(tree / "a.md")
    raw = b"---\ntitle: A\n---\nhello"
    assert (found.raw, found.text, found.mime_type, found.root, found.path) == (
        raw,
        raw.decode(),
        "text/markdown",
        "docs",
        "a.md",
    )
    assert (found.size, found.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert read(tree / "sub/b.txt").path == "sub/b.txt"
    assert disk.read_file_uri(uris.parse(f"file://localhost{tree}/a.md")).raw == raw


VECTORS = [
    "root/../outside/secret.txt", "root/sub/../../outside/secret.txt", "root/./../outside/secret.txt",
    "root/%2e%2e/outside/secret.txt", "root/%2E%2E/outside/secret.txt", "root/..%2foutside%2fsecret.txt",
    "root/%2e%2e%2foutside%2fsecret.txt", "root/%252e%252e/outside/secret.txt", "root/..%5coutside%5csecret.txt",
    "root/..\\outside\\secret.txt", "root/....//outside/secret.txt", "root/..;/outside/secret.txt",
    "root//../outside/secret.txt", "root/a.md/../../outside/secret.txt", "root/%c0%ae%c0%ae/outside/secret.txt",
    "root/\uff0e\uff0e/outside/secret.txt", "root/a.md%00.txt", "root/a.md\x00", "root/%00", "root-evil/secret.txt",
    "root-evil%2fsecret.txt", "outside/secret.txt", "root/link.txt", "root/relative-link.txt",
    "root/linked-folder/secret.txt", "root/chain/secret.txt", "root/loop", "root/loop/x", "root/proc/environ",
    "root/proc/cwd/manage.py", "root/hard.txt", "root/fifo", "root/sub", "root/sub/", "root", "", "root/a.md/",
    "root/a.md/x", "root/absent.txt", "root/" + "x" * 300, "root/" + "d/" * 35 + "x", "../../etc/passwd",
]  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS)
def test_nothing_outside_the_root_is_ever_read(tree: Path, vector: str) -> None:
    with pytest.raises((NotFound, InvalidUri)):
        read(f"{tree.parent}/{vector}")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/environ", "/", "/var", "//etc/passwd"],
)
def test_the_machine_s_own_files_are_absent(tree: Path, path: str) -> None:
    with pytest.raises((NotFound, InvalidUri)):
        read(path)


def test_outside_absent_and_forbidden_give_the_same_answer(tree: Path) -> None:
    answers = set()
    for path in (
        "root/absent.txt",
        "outside/secret.txt",
        "outside/absent.txt",
        "root/hard.txt",
        "root/link.txt",
    ):
        with pytest.raises(NotFound) as caught:
            read(f"{tree.parent}/{path}")
        answers.add(
            (
                caught.value.message,
                caught.value.suggestion,
                caught.value.details["path"].endswith(path),
            )
        )
    assert len(answers) == 1


def test_a_link_whose_target_lies_inside_the_root_is_read_by_its_real_path(tree: Path) -> None:
    (tree / "inside-link.md").symlink_to("a.md")
    (tree.parent / "way-in").symlink_to(tree)
    assert read(tree / "inside-link.md").path == "a.md"
    assert read(tree.parent / "way-in" / "a.md").path == "a.md"


def test_a_root_that_is_itself_reached_through_a_link_works_by_both_names(
    tree: Path, settings: Settings
) -> None:
    alias = tree.parent / "alias"
    alias.symlink_to(tree)
    settings.RESOURCE_ROOTS = {"docs": alias}
    assert read(alias / "a.md").path == read(tree / "a.md").path == "a.md"
    with pytest.raises(NotFound):
        read(alias / "link.txt")


@pytest.mark.parametrize(
    "parts",
    [[], [""], ["."], [".."], ["..", "outside", "secret.txt"], ["sub/../../outside/secret.txt"], ["/etc/passwd"],
     ["a.md\x00"], ["sub", "..", "a.md"], ["link.txt"], ["linked-folder", "secret.txt"], ["chain", "secret.txt"],
     ["inside-link.md"], ["\ud800"], ["loop"]],
)  # fmt: skip
def test_opening_takes_plain_names_only_and_follows_no_link(tree: Path, parts: list[str]) -> None:
    (tree / "inside-link.md").symlink_to("a.md")
    with pytest.raises(NotFound):
        disk.open_inside(tree, parts)


def test_no_descriptor_is_left_open(tree: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (
        "a.md",
        "sub/b.txt",
        "link.txt",
        "hard.txt",
        "fifo",
        "absent",
        "sub/absent",
        "linked-folder/secret.txt",
    ):
        try:
            read(tree / path)
        except BacklogError:
            continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


SWAPPER = """
import os, sys, time
root, outside = sys.argv[1:]
os.chdir(root)
until = time.monotonic() + 60
while time.monotonic() < until:
    for kind, target in (("file", None), ("link", outside + "/raced.txt")):
        os.symlink(target, "next") if target else open("next", "w").write("honest")
        os.replace("next", "swapped.txt")
    os.rename("folder", "aside") if os.path.isdir("folder") and not os.path.islink("folder") else None
    os.symlink(outside, "folder")
    os.unlink("folder")
    os.rename("aside", "folder")
"""


def test_somebody_who_swaps_files_and_folders_for_links_gets_nothing_out(tree: Path) -> None:
    (tree / "folder").mkdir()
    (tree / "folder" / "raced.txt").write_text("honest")
    (tree.parent / "outside" / "raced.txt").write_text(SECRET)
    swapper = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(tree), str(tree.parent / "outside")]
    )
    seen: set[str | None] = set()
    try:
        for _ in range(2000):
            for path in ("swapped.txt", "folder/raced.txt"):
                try:
                    seen.add(read(tree / path).text)
                except NotFound:
                    seen.add(None)
    finally:
        swapper.kill()
        swapper.wait()
    assert SECRET not in seen
    assert {"honest", None} <= seen, "the attacker never got a turn, so the test showed nothing"


def test_texts_and_binaries_are_told_apart() -> None:
    assert contents.examine("a.md", "ж".encode()).text == "ж"
    assert contents.examine("a", b"plain").mime_type == "text/plain"
    assert contents.examine("a.md", b"\xff\xfe") == contents.Contents(
        b"\xff\xfe", "application/octet-stream", None
    )
    assert contents.examine("a.txt", b"a\x00b").text is None
    assert contents.examine("a.pdf", b"%PDF-1.4 ascii only").text is None
    assert contents.examine("a.svg", b"<svg/>").text == "<svg/>"
    assert contents.examine("empty.txt", b"").text == ""


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [("a.md", "text/markdown"), ("A.MD", "text/markdown"), ("a.ts", "text/typescript"), ("a.py", "text/x-python"),
     ("a.json", "application/json"), ("a.yml", "application/yaml"), ("a.png", "image/png"), ("a.jpg", "image/jpeg"),
     ("a.pdf", "application/pdf"), ("a.svg", "image/svg+xml"), ("a.zip", "application/zip"), ("a.csv", "text/csv"),
     ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"), ("a.xyz123", None),
     ("Makefile", None), (".md", None)],
)  # fmt: skip
def test_the_type_follows_the_name(name: str, mime_type: str | None) -> None:
    assert contents.mime_type_by_name(name) == mime_type


def test_files_over_the_cap_are_refused_and_say_why(tree: Path) -> None:
    (tree / "big.txt").write_bytes(b"x" * (contents.MAX_TEXT_BYTES + 1))
    with (tree / "big.bin").open("wb") as file:
        file.truncate(contents.MAX_BINARY_BYTES + 1)
    (tree / "just.txt").write_bytes(b"x" * contents.MAX_TEXT_BYTES)
    for name in ("big.txt", "big.bin"):
        with pytest.raises(ValidationFailed):
            read(tree / name)
    assert read(tree / "just.txt").size == contents.MAX_TEXT_BYTES


def test_paths_find_their_mount_and_of_nested_ones_the_inner(
    tree: Path, settings: Settings
) -> None:
    settings.RESOURCE_ROOTS = {"docs": tree, "docs/inner": tree / "sub", "artifacts/logs": tree}
    assert [mount.prefix for mount in disk.mounts()] == [
        "resources/docs",
        "resources/docs/inner",
        "artifacts/logs",
    ]
    found = disk.mount_of("resources/docs/inner/b.txt")
    assert found and (found[0].name, found[1]) == ("docs/inner", ("b.txt",))
    found = disk.mount_of("resources/docs/x/y")
    assert found and (found[0].name, found[1]) == ("docs", ("x", "y"))
    assert disk.mount_of("resources/docs-evil/x") is None and disk.mount_of("artifacts/x") is None
    located = disk.locate(str(tree / "sub" / "b.txt"))
    assert located and located[0].name == "docs/inner"


def test_two_folders_at_one_place_are_refused(tree: Path, settings: Settings) -> None:
    settings.RESOURCE_ROOTS = {"docs": tree, "resources/docs": tree / "sub"}
    with pytest.raises(ImproperlyConfigured):
        disk.mounts()


def test_a_mirrored_binary_is_read_from_its_root_while_that_is_configured(
    tree: Path, settings: Settings
) -> None:
    (tree / "x.png").write_bytes(b"\x89PNG")
    mirrored = Resource(path="resources/docs/x.png", root="docs")
    assert disk.read_mirrored(mirrored) == b"\x89PNG"
    settings.RESOURCE_ROOTS = {"other": tree}
    with pytest.raises(NotFound):
        disk.read_mirrored(mirrored)


def test_without_roots_nothing_is_found(tree: Path, settings: Settings) -> None:
    settings.RESOURCE_ROOTS = {}
    with pytest.raises(NotFound):
        read(tree / "a.md")
