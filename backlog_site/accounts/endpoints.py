"""Serve the endpoints that clients call directly.

Every response is uncacheable JSON, and malformed text is rejected first.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider import views

from backlog_site.accounts.registration import GRANT_TYPES


def has_nul(request: HttpRequest) -> bool:
    """Return whether a parameter contains NUL.

    No parameter needs it, and PostgreSQL rejects it in queries.
    """
    given = [*request.GET.lists(), *request.POST.lists()]
    return any("\x00" in text for name, values in given for text in map(str, (name, *values)))


class ForClients:
    @method_decorator(csrf_exempt)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if has_nul(request):
            description = "Parameters must not contain NUL."
            return JsonResponse(
                {"error": "invalid_request", "error_description": description}, status=400
            )
        response: HttpResponse = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # a mixin
        if response.content and response.status_code != 405:
            response["Content-Type"] = "application/json"
        response["Cache-Control"] = "no-store"
        return response


class TokenView(ForClients, views.TokenView):  # type: ignore[misc]  # the package has no types
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Reject unsupported grant types.

        The package enters its device flow, which cannot be started here, without checking.
        """
        if request.POST.get("grant_type") not in GRANT_TYPES:
            return JsonResponse({"error": "unsupported_grant_type"}, status=400)
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response


class RevocationView(ForClients, views.RevokeTokenView):  # type: ignore[misc]
    pass
