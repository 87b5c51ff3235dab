"""Drive the admin as a browser does: open a form, change some of its inputs, post all of them."""

import re
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.factories import make_user


def staff(user: User) -> User:
    user.is_staff = True
    user.save()
    return user


def make_admin(name: str = "carol") -> User:
    return staff(make_user(name, "admin"))


def enter(user: User | None = None) -> Client:
    client = Client()
    client.force_login(user or make_admin())
    return client


def url(page: str, *args: Any) -> str:
    return reverse(f"admin:resources_app_{page}", args=args)


def opened(client: Client, page: str, *args: Any) -> dict[str, Any]:
    return inputs_of(client.get(url(page, *args)))


def inputs_of(answer: Any) -> dict[str, Any]:
    """Return the inputs of the form as a browser posts them back untouched: lines end with CRLF, an
    empty choice is omitted.
    """
    form = answer.context["adminform"].form
    return {
        name: _posted(form[name].value())
        for name in form.fields
        if form[name].value() not in (None, [])
    }


def _posted(value: Any) -> Any:
    return re.sub(r"\r\n|\r|\n", "\r\n", value) if isinstance(value, str) else value


def errors_of(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 200, answer.status_code
    return {name: list(errors) for name, errors in answer.context["adminform"].form.errors.items()}
