"""The routes of the viewer."""

from django.urls import path

from backlog_site.viewer import assets, boards, diagrams, editing, items, opening, overviews, spotlight

app_name = "viewer"
urlpatterns = [
    path("", overviews.my_desk, name="desk"),
    path("put-off/", overviews.put_off, name="put_off"),
    path("activity/", overviews.happened, name="activity"),
    path("insights/", overviews.flow, name="insights"),
    path("sync/", overviews.jobs, name="jobs"),
    path("board/", boards.board, name="board"),
    path("list/", boards.listing, name="list"),
    path("cards/", boards.cards, name="cards"),
    path("more/", boards.more, name="more"),
    path("bulk/", boards.bulk, name="bulk"),
    path("undo/", boards.undo, name="undo"),
    path("epics/", items.epics, name="epics"),
    path("new/", items.create, name="create"),
    path("t/<str:ref>/", items.item, name="item"),
    path("t/<str:ref>/edit/", items.edit, name="edit"),
    path("t/<str:ref>/set/", items.set_field, name="set"),
    path("t/<str:ref>/move/", boards.move, name="move"),
    path("t/<str:ref>/list/", items.edit_list, name="edit_list"),
    path("t/<str:ref>/tick/", items.tick, name="tick"),
    path("t/<str:ref>/comment/", items.comment, name="comment"),
    path("t/<str:ref>/comment/<int:number>/", items.reword, name="reword"),
    path("t/<str:ref>/history/", items.history, name="history"),
    path("t/<str:ref>/links/", items.links, name="links"),
    path("t/<str:ref>/restore/", items.restore, name="restore"),
    path("t/<str:ref>/archive/", items.archive, name="archive"),
    path("t/<str:ref>/convert/", items.convert, name="convert"),
    path("hover/<str:ref>/", items.hover, name="hover"),
    path("preview/", editing.preview, name="preview"),
    path("diagram/", diagrams.frame, name="diagram"),
    path("open/", opening.open_uri, name="open"),
    path("raw/", opening.raw, name="raw"),
    path("files/", opening.files, name="files"),
    path("files/<path:path>", opening.files, name="folder"),
    path("ib/", assets.home, name="ib"),
    path("ib/<str:client_id>/link/", assets.link, name="ib_link"),
    path("ib/<str:client_id>/<str:folder_id>/", assets.folder, name="ib_folder"),
    path("t/<str:ref>/pick/", assets.picker, name="pick"),
    path("t/<str:ref>/attach/", assets.attach, name="attach"),
    path("spotlight/", spotlight.hits, name="spotlight"),
    path("spotlight/titles.json", spotlight.titles, name="titles"),
]
