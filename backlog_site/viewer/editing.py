"""Beside a text that is being written: how it will look."""

from django.http import HttpRequest, HttpResponse

from backlog_site.viewer.markdown import render
from backlog_site.viewer.shell import page


@page("POST")
def preview(request: HttpRequest) -> HttpResponse:
    return HttpResponse(render(request.POST.get("value", "")))
