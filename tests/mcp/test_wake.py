"""Test that there is one message per transaction, after the commit, and none after a rollback."""

from collections.abc import Iterator

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from backlog_site.mcp import wake
from resources_app.writing import write_path
from tests.factories import as_actor, make_task, task_uri


@pytest.fixture
def messages() -> Iterator[redis.client.PubSub]:
    with (
        redis.Redis.from_url(settings.REDIS_URL) as broker,
        broker.pubsub(ignore_subscribe_messages=True) as listener,
    ):
        listener.subscribe(wake.CHANNEL)
        listener.get_message(timeout=5)
        yield listener


def count(messages: redis.client.PubSub) -> int:
    found = 0
    while messages.get_message(timeout=0.3) is not None:
        found += 1
    return found


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_transaction_of_many_writes_wakes_once(
    alice: User, messages: redis.client.PubSub
) -> None:
    task = make_task()
    assert count(messages) == 1
    with transaction.atomic():
        for number in range(5):
            write_path.write(
                as_actor(alice), task_uri(task, "title"), {"type": "set", "value": f"t{number}"}
            )
        assert count(messages) == 0
    assert count(messages) == 1


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_rolled_back_write_wakes_nobody_and_the_next_one_does(
    alice: User, messages: redis.client.PubSub
) -> None:
    task = make_task()
    count(messages)
    with transaction.atomic():
        write_path.write(
            as_actor(alice), task_uri(task, "title"), {"type": "set", "value": "never"}
        )
        transaction.set_rollback(True)
    assert count(messages) == 0
    write_path.write(as_actor(alice), task_uri(task, "title"), {"type": "set", "value": "kept"})
    assert count(messages) == 1


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_write_does_not_fail_when_nobody_can_be_woken(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = redis.Redis(host="127.0.0.1", port=1, socket_connect_timeout=0.2)
    monkeypatch.setattr(wake, "_broker", lambda: absent)
    monkeypatch.setattr(wake, "_paused_until", 0.0)
    assert (
        write_path.write(
            as_actor(alice), task_uri(make_task(), "title"), {"type": "set", "value": "kept"}
        )["version"]
        == 2
    )
    assert wake._paused_until > 0
