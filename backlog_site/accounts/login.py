"""Sign users in and change passwords.

The session records the device so that users can recognise it.
"""

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.http import HttpResponse
from django.urls import reverse_lazy
from django.utils import timezone

MAX_DEVICE = 200


class SignIn(LoginView):
    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        self.request.session["device"] = self.request.headers.get("User-Agent", "")[:MAX_DEVICE]
        self.request.session["since"] = timezone.now().isoformat()
        return response


class ChangePassword(PasswordChangeView):
    """Change the password and sign out other browsers."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("accounts:profile")
