"""Create a believable product team for the first run.

Its work is replayed in order through the write path.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.utils import timezone

from resources_app.addresses import uris
from resources_app.identity.roles import Actor
from resources_app.models import Epic, Resource, Sequence, Task
from resources_app.writing import stored_files, write_path

TEXTS = Path(__file__).parent / "texts"
# Groups of each user, and the tools they use outside the browser: channel and agent.
PEOPLE: dict[str, tuple[str, ...]] = {
    "admin": ("admin", "security"),
    "alice": ("contributor", "security"),
    "bob": ("viewer",),
    "chen": ("contributor",),
    "divya": ("contributor",),
    "marta": ("contributor", "security"),
}
TOOLS = {
    "alice": ("mcp", "claude-code"),
    "chen": ("rest", ""),
    "divya": ("mcp", "claude-code"),
    "marta": ("web", ""),
}
LEAD = "marta"

_REF = re.compile(r"\b(TASK|EPIC)-(\d{4})\b")
_TICKED = re.compile(r"^ *- \[x\] .*$", re.MULTILINE)
_PLANNED = ("title", "description", "labels", "priority", "references", "groups")

Story = dict[str, Any]


def seed(password: str) -> None:
    """Seed the demo.

    New accounts get the password; existing ones keep theirs and join the groups. Nothing else
    changes.
    """
    with write_path.write_transaction():
        _create_people(password)
        for event in sorted(_Play().events(), key=lambda event: event.at):
            event.play()


def count_tasks() -> int:
    return Task.objects.count()


def _create_people(password: str) -> None:
    hashed = make_password(password)  # once, because hashing is deliberately slow
    for name, groups in PEOPLE.items():
        rank = {"is_staff": name == "admin", "is_superuser": name == "admin"}
        new = {
            "email": f"{name}@example.com",
            "first_name": name.capitalize(),
            "password": hashed,
            **rank,
        }
        person, _ = User.objects.get_or_create(username=name, defaults=new)
        person.groups.add(*(Group.objects.get_or_create(name=group)[0] for group in groups))


@dataclass(frozen=True)
class _Event:
    """Describe one write: actor, time and target."""

    at: datetime
    actor: Actor
    uri: str
    operation: dict[str, Any]

    def play(self) -> None:
        """Apply the event with the API's operations, or with the functions for create, comment,
        store and archive.
        """
        match self.operation:
            case {"type": "create", "kind": kind, "number": number, "values": values}:
                write_path.create_item(self.actor, kind, values, number=number)
            case {"type": "comment", "body": body}:
                write_path.add_comment(self.actor, self.uri, body)
            case {"type": "store", "path": path, "content": content}:
                stored_files.create_resource(self.actor, path, content)
            case {"type": "archive"}:
                write_path.archive(self.actor, self.uri)
            case _:
                write_path.write(self.actor, self.uri, self.operation)


class _Play:
    """Turn the stories of `texts` into events.

    Numbers continue after those already issued, in the texts too.
    """

    def __init__(self) -> None:
        self.now = timezone.now()
        self.people = {user.username: user for user in User.objects.filter(username__in=PEOPLE)}
        self.given_out = dict(Sequence.objects.select_for_update().values_list("prefix", "last"))
        self.epics: list[Story] = [
            yaml.safe_load(self._text(path)) for path in sorted(TEXTS.glob("*.yaml"))
        ]
        self.tasks: list[Story] = [
            task | {"epic_id": self._ref("EPIC", index)}
            for index, epic in enumerate(self.epics, 1)
            for task in epic["tasks"]
        ]

    def events(self) -> Iterator[_Event]:
        yield from self._files()
        for number, epic in enumerate(self.epics, 1):
            yield from self._life("epic", self._ref("EPIC", number), epic)
        for number, task in enumerate(self.tasks, 1):
            yield from self._life("task", self._ref("TASK", number), task)

    def _files(self) -> Iterator[_Event]:
        known = set(Resource.objects.values_list("path", flat=True))
        for index, file in enumerate(sorted(path for path in TEXTS.rglob("*/*") if path.is_file())):
            path = file.relative_to(TEXTS).as_posix()
            if path in known:
                continue
            uri, text, days = uris.build_path(path), self._text(file), 50 - 2 * index
            draft = text.replace("\nstatus: accepted\n", "\nstatus: proposed\n")
            yield self._event(
                days, self._tool("alice"), uri, type="store", path=path, content=draft
            )
            if draft != text:
                accepted = {"old_str": "status: proposed", "new_str": "status: accepted"}
                yield self._event(
                    days - 1, self._browser(LEAD), uri, type="str_replace", **accepted
                )

    def _life(self, kind: str, ref: str, story: Story) -> Iterator[_Event]:
        uri = uris.build(f"{kind}s", ref)
        days = story["days"] + (int(ref[5:]) * 37 % 100) / 250
        planned = {name: story[name] for name in (*_PLANNED, "epic_id") if name in story}
        planned["description"] = _unticked(story["description"])
        created = {"kind": kind, "number": int(ref[5:]), "values": planned}
        yield self._event(days, self._browser(story["by"]), "", type="create", **created)
        if story.get("depends_on"):
            known = min(days, *(self._story(needed)["days"] for needed in story["depends_on"]))
            yield self._event(
                known - 0.1,
                self._browser(LEAD),
                uri,
                type="merge",
                value=_part(story, "depends_on"),
            )
        for index, (actor, target, operation) in enumerate(
            steps := list(self._work(uri, story)), 1
        ):
            yield self._event(days * (1 - index / (len(steps) + 1)), actor, target, **operation)
        for comment in story.get("comments", ()):
            actor = (
                self._tool(comment["by"]) if "agent" in comment else self._browser(comment["by"])
            )
            yield self._event(comment["days"], actor, uri, type="comment", body=comment["body"])
        if story.get("archived"):
            yield self._event(0.5, self._browser("admin"), uri, type="archive")

    def _work(self, uri: str, story: Story) -> Iterator[tuple[Actor, str, dict[str, Any]]]:
        """Yield the steps that led to the story's state: assigned, started, ticked off, proven,
        closed.
        """
        who: str = story.get("assignee") or story["by"]
        taken = _part(story, "assignee") | self._due(story)
        if taken:
            yield self._browser(LEAD), uri, {"type": "merge", "value": taken}
        if story["status"] in ("in_progress", "blocked", "done"):
            yield self._tool(who), f"{uri}/status", {"type": "set", "value": "in_progress"}
        for line in _TICKED.findall(story["description"]):
            ticked = {"type": "str_replace", "old_str": line.replace("[x]", "[ ]"), "new_str": line}
            yield self._tool(who), f"{uri}/description", ticked
        for proof in story.get("evidence", ()):
            yield self._tool(who), f"{uri}/evidence", {"type": "array_append", "value": proof}
        if story["status"] in ("blocked", "done", "cancelled"):
            yield (
                self._browser(who),
                uri,
                {"type": "merge", "value": _part(story, "status", "blocked_reason")},
            )

    def _event(self, days_ago: float, actor: Actor, uri: str, **operation: Any) -> _Event:
        at = self.now - timedelta(days=days_ago)
        return _Event(at, replace(actor, at=at), uri, operation)

    def _browser(self, name: str) -> Actor:
        return Actor(self.people[name], "web")

    def _tool(self, name: str) -> Actor:
        via, agent = TOOLS[name]
        return Actor(self.people[name], via, agent)

    def _due(self, story: Story) -> dict[str, str]:
        day = self.now.date() + timedelta(days=story.get("due", 0))
        return {"due_date": day.isoformat()} if "due" in story else {}

    def _story(self, task_ref: str) -> Story:
        return self.tasks[int(task_ref[5:]) - self.given_out[Task.PREFIX] - 1]

    def _text(self, path: Path) -> str:
        return _REF.sub(
            lambda match: self._ref(match[1], int(match[2])), path.read_text(encoding="utf-8")
        )

    def _ref(self, prefix: str, number: int) -> str:
        model = Task if prefix == Task.PREFIX else Epic
        return model.make_ref(self.given_out[prefix] + number)


def _unticked(description: str) -> str:
    return description.strip().replace("- [x]", "- [ ]")


def _part(story: Story, *names: str) -> dict[str, Any]:
    return {name: story[name] for name in names if name in story}
