"""Render the fake's sign-in page: one button per user, no passwords."""

from html import escape

from resources_app.intelligencebank.fake.world import Tenant

MOST = 50
_STYLE = (
    "body{font:16px system-ui;max-width:26rem;margin:15vh auto;padding:0"
    " 1rem}:root{color-scheme:light dark}button{font:inherit;display:block;width:100%;margin:.5rem"
    " 0;padding:.6rem;cursor:pointer}"
)


def choice_of_people(tenants: dict[str, Tenant]) -> str:
    people = [(tenant.client_id, email) for tenant in tenants.values() for email in tenant.people]
    buttons = "".join(_button(client_id, email) for client_id, email in people[:MOST])
    return _page(
        "Sign in as", f"<p>This is a fake IntelligenceBank, for trying things out.</p>{buttons}"
    )


def signed_in(email: str) -> str:
    return _page(
        "You are signed in",
        f"<p>As {escape(email)}. Close this tab and go on where you came from.</p>",
    )


def sign_in_is_over() -> str:
    return _page("This sign-in is over", "<p>Begin again where you came from.</p>")


def _button(client_id: str, email: str) -> str:
    return (
        '<form method="post"><input type="hidden" name="client"'
        f' value="{escape(client_id)}"><button name="email" value="{escape(email)}">{escape(email)}'
        f" ({escape(client_id)})</button></form>"
    )


def _page(title: str, body: str) -> str:
    head = (
        '<meta charset="utf-8"><meta name="viewport"'
        f' content="width=device-width"><title>{title}</title>'
    )
    return (
        f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head>'
        f"<body><h1>{title}</h1>{body}</body></html>"
    )
