"""Route the account pages."""

from django.contrib.auth import views
from django.urls import path

from backlog_site.accounts import connecting, profile
from backlog_site.accounts.login import ChangePassword, SignIn

app_name = "accounts"
urlpatterns = [
    path("login/", SignIn.as_view(), name="login"),
    path("logout/", views.LogoutView.as_view(), name="logout"),
    path("profile/", profile.profile, name="profile"),
    path("profile/password/", ChangePassword.as_view(), name="password"),
    path("connect/", connecting.connect, name="connect"),
    path("connect/check/", connecting.check, name="check"),
    path("connect/end/", connecting.end_access, name="end"),
    path("connect/revoke/", connecting.revoke, name="revoke"),
]
