"""The endpoints clients call by themselves. Every answer is JSON, is kept by nobody, and broken text is refused first."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider import views


class ForClients:
    @method_decorator(csrf_exempt)
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        values = [text for pair in [*request.GET.items(), *request.POST.items()] for text in map(str, pair)]
        if any("\x00" in text for text in values):
            description = "Parameters must not contain NUL."
            return JsonResponse({"error": "invalid_request", "error_description": description}, status=400)
        response: HttpResponse = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # a mixin
        if response.content and response.status_code != 405:
            response["Content-Type"] = "application/json"
        response["Cache-Control"] = "no-store"
        return response


class TokenView(ForClients, views.TokenView):  # type: ignore[misc]  # the package has no types
    pass


class RevocationView(ForClients, views.RevokeTokenView):  # type: ignore[misc]
    pass
