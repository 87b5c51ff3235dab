"""Route /api/v1/."""

from django.urls import include, path, re_path
from rest_framework.routers import SimpleRouter

from backlog_site.api import addresses, context, files, intelligencebank, items, search
from resources_app.addresses.targets import AREAS

router = SimpleRouter()
router.register("tasks", items.TaskViewSet, basename="task")
router.register("epics", items.EpicViewSet, basename="epic")
router.register("comments", items.CommentViewSet, basename="comment")

urlpatterns = [
    *(
        route
        for area in AREAS
        for route in (
            path(f"{area}/", files.FileTreeView.as_view(area=area)),
            path(f"{area}/<path:path>", files.FileView.as_view(area=area)),
        )
    ),
    path("", include(router.urls)),
    path("resource/", addresses.resource),
    path("write/", addresses.write),
    path("write_batch/", addresses.write_batch),
    path("context/", context.context),
    path("undo/", addresses.undo),
    path("versions/", addresses.versions),
    path("changes/", addresses.changes),
    path("search/", search.search),
    path("ib/", intelligencebank.connections),
    path("ib/<str:client_id>/link/", intelligencebank.LinkView.as_view()),
    path("ib/<str:client_id>/folders/<str:ib_id>/", intelligencebank.folder),
    path("ib/<str:client_id>/folders/<str:ib_id>/resources/", intelligencebank.folder_resources),
    path("ib/<str:client_id>/resources/<str:ib_id>/", intelligencebank.resource),
    path("ib/<str:client_id>/resources/<str:ib_id>/download/", intelligencebank.download),
    re_path(
        r"^ib/(?P<client_id>\w+)/(?P<area>folders|resources)/(?P<ib_id>\w+)/thumbnail/$",
        intelligencebank.thumbnail,
    ),
]
