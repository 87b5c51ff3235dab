"""The endpoints clients call by themselves. Every answer is JSON, is kept by nobody, and broken text is refused first."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider import views

from backlog_site.accounts.registration import GRANT_TYPES


def has_nul(request: HttpRequest) -> bool:
    """What no parameter has a use for, and PostgreSQL cannot even be asked about."""
    given = [*request.GET.lists(), *request.POST.lists()]
    return any("\x00" in text for name, values in given for text in map(str, (name, *values)))


class ForClients:
    @method_decorator(csrf_exempt)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if has_nul(request):
            description = "Parameters must not contain NUL."
            return JsonResponse({"error": "invalid_request", "error_description": description}, status=400)
        response: HttpResponse = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # a mixin
        if response.content and response.status_code != 405:
            response["Content-Type"] = "application/json"
        response["Cache-Control"] = "no-store"
        return response


class TokenView(ForClients, views.TokenView):  # type: ignore[misc]  # the package has no types
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The package goes into its flow for devices, which nobody can begin here, without looking whether it is offered."""
        if request.POST.get("grant_type") not in GRANT_TYPES:
            return JsonResponse({"error": "unsupported_grant_type"}, status=400)
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response


class RevocationView(ForClients, views.RevokeTokenView):  # type: ignore[misc]
    pass
