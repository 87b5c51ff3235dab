"""Serve the consent page, which states what the agent will be able to do and lets the user grant
less.
"""

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import BadRequest, ObjectDoesNotExist, PermissionDenied
from django.http import HttpRequest, HttpResponse
from oauth2_provider.exceptions import OAuthToolkitError
from oauth2_provider.forms import AllowForm
from oauth2_provider.views import AuthorizationView

from backlog_site.accounts.endpoints import has_nul
from backlog_site.accounts.oauth import wrong_target
from resources_app.identity.credentials import SCOPES, is_for_this_server, widest
from resources_app.identity.roles import Scope
from resources_app.identity.tokens import scopes_within_role

ABILITIES: dict[Scope, tuple[str, list[str]]] = {
    "read": (
        "Read",
        [
            "See every task, epic, comment, file and history that you can see",
            "Search, and watch for changes",
        ],
    ),
    "write": (
        "Read and change",
        [
            "Everything above",
            "Create, edit, comment on and archive tasks, epics and files in your name",
        ],
    ),
    "admin": (
        "Administer",
        [
            "Everything above",
            "Delete for good, and see people, roles and settings",
            "Grant this only if the agent needs it",
        ],
    ),
}


class ConsentForm(AllowForm):  # type: ignore[misc]  # the package has no types
    """Validate the posted consent.

    The request comes back in hidden fields, which can be forged; lengths match the columns.
    """

    reach = forms.ChoiceField(choices=[(scope, scope) for scope in SCOPES], required=False)
    nonce = forms.CharField(max_length=255, required=False, widget=forms.HiddenInput())
    code_challenge = forms.CharField(max_length=128, required=False, widget=forms.HiddenInput())

    def clean_resource(self) -> str:
        named = str(self.cleaned_data["resource"])
        if not all(map(is_for_this_server, named.split())):
            raise forms.ValidationError("Tokens are for this server alone.")
        return named


class ConsentView(AuthorizationView):  # type: ignore[misc]  # the package has no types
    template_name = "accounts/consent.html"
    form_class = ConsentForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if has_nul(request):
            raise BadRequest("Parameters must not contain NUL.")
        response: HttpResponse = super().dispatch(request, *args, **kwargs)
        return response

    def validate_authorization_request(
        self, request: HttpRequest
    ) -> tuple[list[str], dict[str, Any]]:
        scopes, credentials = super().validate_authorization_request(request)
        for resource in request.GET.getlist("resource"):
            if not is_for_this_server(resource):
                error = wrong_target(resource, credentials.get("state"))
                raise OAuthToolkitError(error=error, redirect_uri=credentials["redirect_uri"])
        return scopes, credentials

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        offered = self._offered(context.get("scopes") or self._posted_scopes())
        context["offers"] = [
            {"scope": scope, "title": ABILITIES[scope][0], "abilities": ABILITIES[scope][1]}
            for scope in offered
        ]
        context["reach"] = "write" if "write" in offered else next(iter(offered), "")
        return context

    def form_valid(self, form: ConsentForm) -> HttpResponse:
        """Grant the scope the user chose on our page.

        It never exceeds the requested scope or the user's role.
        """
        offered = self._offered(form.cleaned_data["scope"].split())
        chosen = form.cleaned_data["reach"] or (offered[-1] if offered else "")
        if form.cleaned_data["allow"] and chosen not in offered:
            raise PermissionDenied("Your role does not reach that far.")
        form.cleaned_data["scope"] = (
            " ".join(offered[: offered.index(chosen) + 1]) if chosen in offered else ""
        )
        try:
            response: HttpResponse = super().form_valid(form)
        except ObjectDoesNotExist:
            raise BadRequest("There is no such client.") from None
        return response

    def form_invalid(self, form: ConsentForm) -> HttpResponse:
        raise BadRequest("The form did not come back as it was shown.")

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().render_to_response(context, **kwargs)
        # form-action must name the redirect target: browsers apply it to the redirects of a form.
        target = _origin(context.get("redirect_uri") or "")
        response["Content-Security-Policy"] = (
            f"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' {target}; "
            "frame-ancestors 'none'; base-uri 'none'"
        )
        response["Cache-Control"] = "no-store"
        return response

    def _offered(self, asked: list[str]) -> list[Scope]:
        """Return every scope up to the widest one requested, limited by the user's role."""
        furthest = widest(asked)
        within = scopes_within_role(self.request.user)
        wanted = SCOPES[: SCOPES.index(furthest) + 1] if furthest else ()
        return [scope for scope in wanted if scope in within]

    def _posted_scopes(self) -> list[str]:
        return str(self.request.POST.get("scope", "")).split()


def _origin(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    if not rest:
        return ""
    # The scheme of an installed program has no origin, so the policy can only name the scheme.
    return (
        f"{scheme}://{rest.partition('/')[0]}" if scheme in settings.WEB_SCHEMES else f"{scheme}:"
    )
