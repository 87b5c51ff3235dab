"""Route ASGI requests, count them and own the lifespan, which Django's own handler refuses.

/mcp and the event stream are ASGI. The rest is Django: pages and REST in threads, static files in
Django's own way.
"""

import os
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backlog_site.settings")
# A request should fail with Retry-After rather than wait: see
# docs/decisions/0002-sqlite-settings.md.
os.environ.setdefault("BACKLOG_LOCK_SECONDS", "5")

_django: Any = get_asgi_application()

# These need the apps, which the line above has loaded.
from backlog_site.api.limits import bounded  # noqa: E402
from backlog_site.bodies import Admission  # noqa: E402
from backlog_site.mcp.bus import bus  # noqa: E402
from backlog_site.mcp.transport import McpEndpoint  # noqa: E402
from backlog_site.operations.logs import logged  # noqa: E402
from backlog_site.serving.allocator import collecting, exempt_what_is_loaded  # noqa: E402
from backlog_site.serving.connections import allow_open_files  # noqa: E402
from backlog_site.serving.django_threads import ThreadedSite  # noqa: E402
from backlog_site.serving.draining import drain  # noqa: E402
from backlog_site.serving.gate import UNCOUNTED, guarded  # noqa: E402
from backlog_site.serving.metrics import measured  # noqa: E402
from backlog_site.serving.outage import outage  # noqa: E402
from backlog_site.serving.presence import announce  # noqa: E402
from backlog_site.viewer.events import PATH as EVENTS_PATH  # noqa: E402
from backlog_site.viewer.events import EventsEndpoint  # noqa: E402
from backlog_site.viewer.failures import refuse_while_away  # noqa: E402
from resources_app.files.contents import MAX_BINARY_BYTES  # noqa: E402

# The largest possible body is a file; JSON has a separate limit in its parser.
_files = bounded(_django, MAX_BINARY_BYTES)
_site: Any = ThreadedSite()
_pages = bounded(_site, MAX_BINARY_BYTES)
_mcp = McpEndpoint()
_events = EventsEndpoint(bus)


async def _route(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif outage.is_on and scope["type"] == "http" and not scope["path"].startswith(UNCOUNTED):
        await refuse_while_away(scope, send)
    elif scope["type"] == "http" and scope["path"] in {"/mcp", "/mcp/"}:
        await _mcp(scope, receive, send)
    elif scope["type"] == "http" and scope["path"] == EVENTS_PATH:
        await _events(scope, receive, send)
    elif scope["type"] == "http" and scope["path"].startswith(settings.STATIC_URL):
        await _files(scope, receive, send)
    else:
        await _pages(scope, receive, send)


application = collecting(drain.tracked(logged(measured(guarded(Admission(_route))))))


async def _lifespan(receive: Any, send: Any) -> None:
    await receive()
    allow_open_files()
    exempt_what_is_loaded()
    async with _mcp.running():
        with drain.on_signals(close_streams=bus.close):
            announce("web")
            await send({"type": "lifespan.startup.complete"})
            await receive()
    await send({"type": "lifespan.shutdown.complete"})
