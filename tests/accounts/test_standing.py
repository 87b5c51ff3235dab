"""Test that streams re-check their credential: tokens, OAuth grants and browser sessions."""

from django.contrib.auth.models import User
from oauth2_provider.models import AccessToken

from resources_app.identity import tokens
from resources_app.identity.credentials import Credential, recognise, still_standing
from tests.accounts.flow import let_in


def test_each_kind_stands_until_it_is_ended(alice: User) -> None:
    token, secret = tokens.create(alice, "laptop", "write")
    _, granted = let_in(alice)
    session = Credential("session", alice.pk, alice, "read", "")
    held = [recognise(secret), recognise(granted["access_token"]), session]
    assert still_standing(held) == {credential.key for credential in held}
    tokens.revoke(token)
    assert still_standing(held) == {credential.key for credential in held[1:]}
    AccessToken.objects.filter(user=alice).delete()
    assert still_standing(held) == {session.key}
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert still_standing(held) == set()
