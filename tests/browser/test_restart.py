"""Test a server that goes away and comes back: the open page says so, and then shows what it
missed.
"""

import os
import time
from urllib.parse import urlsplit

from playwright.sync_api import Browser, expect

from backlog_site.devserver.embedded import stop
from tests.browser.conftest import PATIENCE_MILLISECONDS, sign_in
from tests.browser.filling import PASSWORD
from tests.mcp.site import running_site, web_processes


def test_what_was_written_while_the_server_was_away_appears_without_a_reload(
    chromium: Browser,
) -> None:
    with running_site(
        os.environ["REDIS_URL"], DJANGO_SETTINGS_MODULE="backlog_site.settings"
    ) as site:
        site.elsewhere.person(name="carol", roles=["admin"], password=PASSWORD)
        ref = site.elsewhere.create(values={"title": "As it was"})
        context = chromium.new_context(base_url=site.url)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        page = context.new_page()
        sign_in(page, site.url, "carol")
        page.goto("/board/")
        expect(page.locator(".live")).to_have_attribute("data-on", "1")
        page.evaluate("() => { window.isTheSame = true; }")

        stop(site.web)
        expect(page.locator(".live")).to_have_text("Reconnecting…")
        site.elsewhere.write(
            uri=f"mcp://backlog/tasks/{ref}/title",
            operation={"type": "set", "value": "As it became"},
        )
        missed = site.elsewhere.create(values={"title": f"Made at {time.time()}"})

        with web_processes(site.environment, urlsplit(site.url).port or 0, site.log):
            expect(page.locator(".live")).to_have_text("Live")
            expect(page.locator(f"#{ref} a.t")).to_have_text("As it became")
            expect(page.locator(f"[data-col=open] #{missed}")).to_be_visible()
            assert page.evaluate("() => window.isTheSame") is True
            context.close()
