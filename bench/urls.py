"""Add to the site's routes a bare view of one SELECT by primary key, the minimum cost of a request
here.
"""

from django.http import HttpRequest, JsonResponse
from django.urls import path

from backlog_site.urls import urlpatterns as site_routes
from resources_app.models import Task


def floor(request: HttpRequest, number: int) -> JsonResponse:
    return JsonResponse(Task.objects.filter(pk=number).values().get())


urlpatterns = [*site_routes, path("floor/<int:number>/", floor)]
