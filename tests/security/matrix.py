"""Define the permission table, and the backlog it is tested on."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from django.core.management.color import no_style
from django.db import connection

from resources_app.identity.roles import Actor
from resources_app.models import Change, Comment
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task, make_user, task_uri
from tests.security.callers import ADMINS, NOBODY, READERS, STRANGERS, WRITERS

TABLE = yaml.safe_load((Path(__file__).parent / "matrix.yaml").read_text())

BATCH = "00000000-0000-0000-0000-000000000001"

# The result for each group of callers: done, nothing (not visible), refused (403 or 404, and
# nothing happened), unknown (401).
AUTHOR = ("contributor_session", "contributor_token", "contributor_oauth")
POLICIES: dict[str, dict[str, tuple[str, ...]]] = {
    "read": {"unknown": STRANGERS, "nothing": NOBODY, "done": (*READERS, *WRITERS, *ADMINS)},
    "write": {"unknown": STRANGERS, "refused": (*NOBODY, *READERS), "done": (*WRITERS, *ADMINS)},
    # A contributor's own comment: an admin whose token only writes is an ordinary writer.
    "author": {
        "unknown": STRANGERS,
        "refused": (*NOBODY, *READERS, *set(WRITERS) - set(AUTHOR)),
        "done": (*AUTHOR, *ADMINS),
    },
    "administer": {"unknown": STRANGERS, "refused": (*NOBODY, *READERS, *WRITERS), "done": ADMINS},
    "entitled": {"unknown": STRANGERS, "nothing": (*NOBODY, *READERS, *WRITERS, *ADMINS)},
    "signed_in": {"unknown": STRANGERS, "done": (*NOBODY, *READERS, *WRITERS, *ADMINS)},
    "everybody": {"done": (*STRANGERS, *NOBODY, *READERS, *WRITERS, *ADMINS)},
    "nobody": {"refused": (*STRANGERS, *NOBODY, *READERS, *WRITERS, *ADMINS)},
}


@dataclass(frozen=True)
class Row:
    policy: str
    pk: str = ""
    body: Any = None
    arguments: dict[str, Any] = field(default_factory=dict)

    def expected(self, caller: str) -> str:
        return next(
            outcome for outcome, callers in POLICIES[self.policy].items() if caller in callers
        )


def rows(section: str) -> dict[str, Row]:
    given = TABLE[section].items()
    return {name: Row(row) if isinstance(row, str) else Row(**row) for name, row in given}


def fill() -> None:
    """Create TASK-0001, EPIC-0001, comment 1 and docs/a.md; TASK-0002, EPIC-0002 and docs/old.md
    are archived; TASK-0003 is restricted.
    """
    alice, insider = (
        Actor(make_user("alice", "contributor"), "web"),
        as_actor(make_user("insider", "contributor", "security")),
    )
    make_epic(title="First epic", evidence=["e"], actor=alice)
    make_epic(title="Archived epic", evidence=["e"], actor=alice)
    first = make_task(
        title="First", description="- [ ] one\n", evidence=["e"], epic_id="EPIC-0001", actor=alice
    )
    archived = make_task(title="Archived", evidence=["e"], actor=alice)
    make_task(title="First secret", evidence=["e"], groups=["security"], actor=insider)
    make_task(title="Of the archived epic", epic_id="EPIC-0002", actor=alice)
    _count_comments_from_one()
    write_path.add_comment(alice, task_uri(first), "A comment")
    for uri in ("mcp://backlog/epics/EPIC-0001", task_uri(archived)):
        write_path.add_comment(alice, uri, "A comment")
    write_path.write(alice, f"{task_uri(first)}/evidence", {"type": "array_append", "value": "f"})
    Change.objects.filter(pk=Change.objects.latest("pk").pk).update(batch=BATCH)
    write_path.archive(alice, task_uri(archived))
    write_path.archive(alice, "mcp://backlog/epics/EPIC-0002")
    for area in ("resources", "artifacts"):
        stored_files.create_resource(alice, f"{area}/docs/a.md", "# A\n")
        stored_files.create_resource(alice, f"{area}/docs/old.md", "# Old\n")
        stored_files.remove(alice, f"{area}/docs/old.md")


def _count_comments_from_one() -> None:
    """Reset the sequence, which PostgreSQL does not roll back."""
    of_comments = [{"table": Comment._meta.db_table, "column": "id"}]
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_by_name_sql(no_style(), of_comments):
            cursor.execute(statement)
