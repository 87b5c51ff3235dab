"""The four people of the tests: alice writes, bob reads, carol administers, mallory sees nothing."""

import pytest
from django.contrib.auth.models import User

from tests.factories import make_user


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice", "contributor")


@pytest.fixture
def bob(db: None) -> User:
    return make_user("bob", "viewer")


@pytest.fixture
def carol(db: None) -> User:
    return make_user("carol", "admin")


@pytest.fixture
def mallory(db: None) -> User:
    return make_user("mallory")
