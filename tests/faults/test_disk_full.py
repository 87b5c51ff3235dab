"""Test a full disk: writes are rejected as a whole, reads continue, and with free space everything
works again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg

from tests.faults.surroundings import (
    append,
    append_batch,
    lines,
    query,
    readiness,
    says_come_back,
    served,
)
from tests.mcp.clients import modern
from tests.mcp.site import Site

PAGE = "x" * 20_000
# PostgreSQL checks for space wherever it writes; the revision is the last row of a write, after all
# others.
FILL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON resources_app_revision EXECUTE FUNCTION refuse()
"""
EMPTY = "DROP FUNCTION refuse CASCADE"


@contextmanager
def full_disk(site: Site) -> Iterator[None]:
    url, pages = site.environment["DATABASE_URL"], site.log.parent / "pages"
    if url.startswith("postgres"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(FILL)
            yield
            connection.execute(EMPTY)
        return
    [(count,)] = query(site, "PRAGMA page_count")
    # Atomically: the site must never read half a number.
    (pages.parent / "counted").write_text(str(count))
    (pages.parent / "counted").rename(pages)
    yield
    pages.unlink()


def upload(http: httpx.Client, site: Site) -> httpx.Response:
    return http.post(
        f"{site.url}/api/v1/resources/", json={"path": "resources/new.md", "content": PAGE * 20}
    )


def write_over_mcp(http: httpx.Client, site: Site, uri: str) -> dict[str, Any]:
    arguments = {"uri": uri, "operation": {"type": "append", "content": PAGE}}
    answer = modern(site, http, "tools/call", {"name": "write_resource", "arguments": arguments})
    result: dict[str, Any] = answer.json()["result"]
    return result


def test_a_full_disk_refuses_writes_whole_and_all_is_well_afterwards(redis_url: str) -> None:
    with served(redis_url) as (site, http, uri):
        other = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Beside'}, by='alice')}/description"
        assert append(http, site, uri, "before").status_code == 200
        with full_disk(site):
            kept = ["before"]
            while (answer := append(http, site, uri, PAGE)).status_code == 200:
                kept.append(PAGE)
                assert len(kept) < 1000, "it never became full"
            assert says_come_back(answer), answer.text
            assert "disk" in answer.json()["error"]["message"]
            assert says_come_back(append_batch(http, site, [other, uri] * 20, PAGE, "the batch"))
            assert says_come_back(upload(http, site))
            assert (
                write_over_mcp(http, site, uri)["structuredContent"]["error"]["code"]
                == "unavailable"
            )
            assert lines(http, site, uri) == kept and lines(http, site, other) == []
            assert readiness(http, site) in ("ok", "degraded")
        assert append_batch(http, site, [other, uri] * 20, PAGE, "the batch").status_code == 200
        assert upload(http, site).status_code == 201
        assert (
            lines(http, site, uri) == kept + [PAGE] * 20 and lines(http, site, other) == [PAGE] * 20
        )
        check_file(site)


def check_file(site: Site) -> None:
    if site.environment["DATABASE_URL"].startswith("sqlite"):
        assert query(site, "PRAGMA integrity_check") == [("ok",)]
