"""The frame in which diagrams are drawn: no origin, no network but its own script, styles only inside it."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.clickjacking import xframe_options_exempt

from backlog_site.viewer.policy import HEADER

_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src {origin}; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'; base-uri 'none'"
)


@xframe_options_exempt
@cache_control(max_age=3600)
def frame(request: HttpRequest) -> HttpResponse:
    """It holds nothing of anybody's: what is drawn is handed in by the page around it."""
    origin = f"{request.scheme}://{request.get_host()}{settings.STATIC_URL}viewer/"
    response = render(request, "viewer/diagram.html")
    response[HEADER] = _POLICY.format(origin=origin)
    return response
