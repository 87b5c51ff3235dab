"""Persist the fake's sessions in a file, so that users stay signed in when it restarts."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from resources_app.intelligencebank.fake.service import FakeIB, SessionOf


def keep_sessions(fake: FakeIB, file: Path) -> None:
    """Load the sessions from the file, and write them back whenever they change."""
    kept = _read(file)
    fake.sessions |= {
        sid: session
        for sid, facts in kept["sessions"].items()
        if (session := _session(fake, facts))
    }
    fake.pending |= {token: _session(fake, facts) for token, facts in kept["pending"].items()}
    fake.sessions_changed = lambda: _write(fake, file)


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        kept = json.loads(file.read_text())
        return {"sessions": dict(kept["sessions"]), "pending": dict(kept["pending"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"sessions": {}, "pending": {}}


def _write(fake: FakeIB, file: Path) -> None:
    kept = {
        "sessions": {
            sid: _facts(session)
            for sid, session in fake.sessions.items()
            if session.until > fake.now()
        },
        "pending": {token: session and _facts(session) for token, session in fake.pending.items()},
    }
    draft = file.with_name(f"{file.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(kept, out)
    draft.replace(file)


def _facts(session: SessionOf) -> list[str]:
    return [session.tenant.client_id, session.person.email, session.until.isoformat()]


def _session(fake: FakeIB, facts: Any) -> SessionOf | None:
    try:
        client_id, email, until = facts
        tenant = fake.tenants[client_id]
        return SessionOf(tenant, tenant.people[email], datetime.fromisoformat(until))
    except (KeyError, TypeError, ValueError):
        return None
