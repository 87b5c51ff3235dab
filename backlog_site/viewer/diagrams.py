"""Serve the frame that draws diagrams: no origin, no network except its own script, styles only
inside it.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.clickjacking import xframe_options_exempt

from backlog_site.viewer.policy import HEADER

_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src {origin}; style-src 'unsafe-inline';"
    " img-src data:; frame-ancestors 'self'; base-uri 'none'"
)


@xframe_options_exempt
@cache_control(max_age=3600)
def frame(request: HttpRequest) -> HttpResponse:
    """Return the frame. It contains no user data; the page around it passes in the diagram."""
    origin = f"{request.scheme}://{request.get_host()}{settings.STATIC_URL}viewer/"
    response = render(request, "viewer/diagram.html")
    response[HEADER] = _POLICY.format(origin=origin)
    return response
