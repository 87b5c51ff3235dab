"""Test who may enter the admin, and what they may do there."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from resources_app.identity import tokens
from resources_app.models import ApiToken, Change
from tests.factories import make_task, make_user
from tests.resources_app.admin_client import enter, staff, url

MODELS = [
    "resources_app_task",
    "resources_app_epic",
    "resources_app_comment",
    "resources_app_resource",
    "resources_app_folder",
    "resources_app_change",
    "resources_app_revision",
    "resources_app_apitoken",
    "resources_app_job",
    "resources_app_ibconnection",
    "resources_app_ibsyncrun",
    "resources_app_ibfolder",
    "resources_app_ibresource",
    "resources_app_iblink",
    "resources_app_ibentitlement",
    "resources_app_ibquarantine",
    "auth_user",
    "auth_group",
]


@pytest.mark.parametrize("name", ["alice", "bob", "mallory"])
def test_people_without_the_admin_role_are_refused_with_the_reason(
    name: str, request: pytest.FixtureRequest
) -> None:
    client = enter(request.getfixturevalue(name))
    for page in (
        "index",
        "login",
        "resources_app_task_changelist",
        "resources_app_task_add",
        "auth_user_changelist",
    ):
        answer = client.get(reverse(f"admin:{page}"))
        shown = answer.content.decode()
        assert answer.status_code == 403, page
        assert "needs the admin role" in shown and 'href="/board/"' in shown
        assert 'type="password"' not in shown


def test_staff_without_the_admin_role_are_refused_too(alice: User) -> None:
    answer = enter(staff(alice)).get(reverse("admin:resources_app_task_changelist"))
    assert answer.status_code == 403


def test_an_admin_who_is_not_staff_reads_what_is_missing(carol: User) -> None:
    answer = enter(carol).get(reverse("admin:index"))
    assert (answer.status_code, "staff status is off" in answer.content.decode()) == (403, True)


def test_a_visitor_who_is_not_signed_in_is_sent_to_the_login(db: None) -> None:
    answer = Client().get(reverse("admin:index"))
    assert (answer.status_code, answer["Location"].startswith(reverse("admin:login"))) == (
        302,
        True,
    )
    assert 'type="password"' in Client().get(answer["Location"]).content.decode()


def test_a_person_without_the_role_cannot_change_anything_by_posting(alice: User) -> None:
    task = make_task(title="Untouched")
    client = enter(staff(alice))
    for page in ("archive", "delete_permanently"):
        client.post(reverse(f"admin:resources_app_task_{page}", args=[task.pk]))
    client.post(reverse("admin:resources_app_task_restore", args=[task.pk, 1]))
    task.refresh_from_db()
    assert (task.version, task.archived_at) == (1, None)


def test_anonymous_sees_the_login_page_alone(db: None) -> None:
    client = Client()
    assert client.get(reverse("admin:login")).status_code == 200
    assert client.get(reverse("admin:index")).status_code == 302


@pytest.mark.parametrize("model", MODELS)
def test_staff_in_the_admin_group_see_every_list_without_being_superuser(
    model: str, carol: User
) -> None:
    assert not carol.is_superuser
    assert enter(staff(carol)).get(reverse(f"admin:{model}_changelist")).status_code == 200


@pytest.mark.parametrize("model", ["task", "epic", "comment", "resource", "apitoken"])
def test_staff_in_the_admin_group_may_add(model: str, carol: User) -> None:
    assert enter(staff(carol)).get(reverse(f"admin:resources_app_{model}_add")).status_code == 200


@pytest.mark.parametrize("model", ["folder", "change", "revision", "job"])
def test_what_is_a_record_cannot_be_added_by_hand(model: str, carol: User) -> None:
    assert enter(staff(carol)).get(reverse(f"admin:resources_app_{model}_add")).status_code == 403


def test_djangos_own_delete_is_off(carol: User) -> None:
    task = make_task()
    answer = enter(staff(carol)).post(
        reverse("admin:resources_app_task_delete", args=[task.pk]), {"post": "yes"}
    )
    assert answer.status_code == 403


def test_changes_and_revisions_cannot_be_edited(carol: User) -> None:
    make_task()
    change = Change.objects.get()
    client = enter(staff(carol))
    for page in ("change", "revision"):
        address = reverse(f"admin:resources_app_{page}_change", args=[change.pk])
        assert client.get(address).status_code == 200
        assert client.post(address, {"action": "forged"}).status_code == 403


def test_a_new_token_is_shown_once_and_its_hash_never(carol: User, alice: User) -> None:
    client = enter(staff(carol))
    posted = {"user": alice.pk, "name": "laptop", "scope": "write", "expires_in_days": "30"}
    shown = client.post(
        reverse("admin:resources_app_apitoken_add"), posted, follow=True
    ).content.decode()
    token = ApiToken.objects.get()
    secret = next(word for word in shown.replace("<", " ").split() if word.startswith("bl_"))
    found = tokens.authenticate(secret)
    assert found == token
    assert token.expires_at is not None
    for address in (url("apitoken_changelist"), url("apitoken_change", token.pk)):
        again = client.get(address).content.decode()
        assert "laptop" in again
        assert secret not in again
        assert token.digest not in again


def test_a_token_beyond_the_role_of_its_user_is_refused_on_the_form(carol: User, bob: User) -> None:
    posted = {"user": bob.pk, "name": "laptop", "scope": "write"}
    answer = enter(staff(carol)).post(reverse("admin:resources_app_apitoken_add"), posted)
    assert answer.status_code == 200
    assert "does not reach to the scope" in answer.content.decode()
    assert 'value="laptop"' in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_revoking_a_token_ends_its_use(carol: User, alice: User) -> None:
    token, secret = tokens.create(alice, "laptop", "write")
    posted = {"action": "revoke", "_selected_action": [token.pk]}
    enter(staff(carol)).post(reverse("admin:resources_app_apitoken_changelist"), posted)
    assert tokens.authenticate(secret) is None


def test_an_admin_cannot_make_themselves_a_superuser(carol: User) -> None:
    client = enter(staff(carol))
    address = reverse("admin:auth_user_change", args=[carol.pk])
    answer = client.post(
        address, {"username": "carol", "is_active": "on", "is_staff": "on", "is_superuser": "on"}
    )
    assert answer.status_code == 302
    carol.refresh_from_db()
    assert not carol.is_superuser


def test_an_admin_cannot_take_over_a_superuser(carol: User) -> None:
    root = make_user("root")
    root.is_superuser = True
    root.save()
    client = enter(staff(carol))
    assert (
        client.post(
            reverse("admin:auth_user_change", args=[root.pk]), {"username": "x"}
        ).status_code
        == 403
    )
    assert client.get(reverse("admin:auth_user_password_change", args=[root.pk])).status_code == 403


def test_people_are_never_deleted_because_histories_name_them(carol: User, alice: User) -> None:
    assert (
        enter(staff(carol)).get(reverse("admin:auth_user_delete", args=[alice.pk])).status_code
        == 403
    )


def test_the_three_roles_can_be_neither_renamed_nor_deleted(carol: User) -> None:
    role = carol.groups.get(name="admin")
    client = enter(staff(carol))
    assert (
        client.post(reverse("admin:auth_group_change", args=[role.pk]), {"name": "x"}).status_code
        == 403
    )
    assert client.get(reverse("admin:auth_group_delete", args=[role.pk])).status_code == 403
