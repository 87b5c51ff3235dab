"""Decide which rows a user can see. No other module decides this.

Every read starts with `visible_to(user)`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from django.apps import apps
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from resources_app.identity.roles import Person, groups_of, is_admin, may_read
from resources_app.vocabulary import IB_KINDS, UNFINISHED, Kind, Status

if TYPE_CHECKING:
    from resources_app.models import (  # noqa: F401  named in the type parameters
        Change,
        Comment,
        Folder,
        IBConnection,
        IBFolder,
        IBResource,
        Resource,
        Task,
    )

M = TypeVar("M", bound=Model)


# Finds the rows that contain every word. The search index lives in a higher layer and registers
# itself here.
TextSearch = Callable[[type[Model], str], QuerySet[Any]]
_text_search: list[TextSearch] = []


def use_text_search(search: TextSearch) -> None:
    _text_search[:] = [search]


def _model(name: str) -> Any:
    return apps.get_model("resources_app", name)


class _RestrictableQuerySet(QuerySet[M]):
    def visible_to(self, user: Person) -> Self:
        if not may_read(user):
            return self.none()
        if is_admin(user):
            return self.all()
        mine = self._readers_among(groups_of(user)).filter(**{self._own_column: OuterRef("pk")})
        return self.filter(Q(restricted=False) | Exists(mine))

    def limited_to_groups_of(self, user: Person) -> Self:
        """Return the restricted rows that `visible_to` adds for this user.

        The query starts from the groups' rows, so a user with few groups scans few rows.
        """
        limited = (
            self.visible_to(user)
            if not may_read(user) or is_admin(user)
            else self._opened_to(groups_of(user))
        )
        return limited.filter(restricted=True)

    def _opened_to(self, groups: Mapping[str, int]) -> Self:
        return self.filter(pk__in=self._readers_among(groups).values(self._own_column))

    def _readers_among(self, groups: Mapping[str, int]) -> QuerySet[Any]:
        through: Any = self.model.readers.through  # type: ignore[attr-defined]  # every model here is Restrictable
        rows: QuerySet[Any] = through.objects.filter(group_id__in=groups.values())
        return rows

    @property
    def _own_column(self) -> str:
        return str(self.model._meta.model_name)

    def live(self) -> Self:
        return self.filter(archived_at__isnull=True)

    def archived(self) -> Self:
        return self.filter(archived_at__isnull=False)


class ItemQuerySet(_RestrictableQuerySet[M]):
    """Query tasks and epics."""

    def mentioning(self, words: str) -> Self:
        """Return the items that contain every word, according to the search index."""
        return self.filter(pk__in=_text_search[0](self.model, words))


class TaskQuerySet(ItemQuerySet["Task"]):
    def in_epic(self, number: int) -> Self:
        return self.filter(epic_id=number)

    def ready(self, wanted: bool = True) -> Self:
        """Return open tasks whose dependencies are all finished, or with `wanted=False` all other
        tasks.
        """
        unfinished = _model("TaskDependency").objects.filter(
            task=OuterRef("pk"), needs__status__in=UNFINISHED, needs__archived_at__isnull=True
        )
        if not wanted:
            return self.filter(Exists(unfinished) | ~Q(status=Status.OPEN))
        return self.filter(~Exists(unfinished), status=Status.OPEN)


class CommentQuerySet(QuerySet["Comment"]):
    def visible_to(self, user: Person) -> Self:
        """Return the comments on items that the user can see."""
        on_task = Exists(_model("Task").objects.visible_to(user).filter(pk=OuterRef("task_id")))
        on_epic = Exists(_model("Epic").objects.visible_to(user).filter(pk=OuterRef("epic_id")))
        return self.filter(on_task | on_epic)

    def live(self) -> Self:
        return self.filter(archived_at__isnull=True)


class ResourceQuerySet(_RestrictableQuerySet["Resource"]):
    def below(self, folder_path: str) -> Self:
        return self.filter(ancestors__path=folder_path)


class FolderQuerySet(QuerySet["Folder"]):
    def visible_to(self, user: Person) -> Self:
        """Return the folders that contain a visible resource at any depth."""
        return self.filter(
            Exists(
                _model("Resource").objects.visible_to(user).live().filter(ancestors=OuterRef("pk"))
            )
        )


def _entitlements(user: Person, action: str = "list") -> QuerySet[Any]:
    """Return the unexpired rights of the user's linked account.

    Without a link there are no rights, not even for admins.
    """
    rights: QuerySet[Any] = _model("IBEntitlement").objects.filter(
        link__user_id=user.pk or 0, expires_at__gt=Now()
    )
    return rights.filter(may_view=True) if action == "view" else rights.filter(may_list=True)


class IBFolderQuerySet(QuerySet["IBFolder"]):
    def entitled_to(self, user: Person) -> Self:
        if not may_read(user):
            return self.none()
        return self.filter(Exists(_entitlements(user).filter(folder=OuterRef("pk"))))

    def visible_to(self, user: Person) -> Self:
        return self.entitled_to(user).filter(hidden=False)

    def top_for(self, user: Person) -> Self:
        """Return the folders at which the user's tree starts."""
        if not may_read(user):
            return self.none()
        return self.filter(
            pk__in=_entitlements(user).filter(is_top=True).values("folder_id"), hidden=False
        )


class IBResourceQuerySet(QuerySet["IBResource"]):
    def entitled_to(self, user: Person, action: str = "list") -> Self:
        """Return the resources whose home folder grants the user `action`.

        Rights are granted per folder.
        """
        if not may_read(user):
            return self.none()
        return self.filter(Exists(_entitlements(user, action).filter(folder=OuterRef("folder_id"))))

    def visible_to(self, user: Person) -> Self:
        shown = self.entitled_to(user)
        return shown.filter(
            missing_since__isnull=True, tombstoned_at__isnull=True, folder__hidden=False
        )


class IBConnectionQuerySet(QuerySet["IBConnection"]):
    def visible_to(self, user: Person) -> Self:
        """Return the enabled connections if the user can read: the list of tenants is not secret
        within the team.
        """
        return self.filter(is_enabled=True) if may_read(user) else self.none()


class ChangeQuerySet(QuerySet["Change"]):
    def visible_to(self, user: Person) -> Self:
        """Return the changes to objects that the user can see now.

        Admins also see changes to deleted objects.
        """
        mirrored = self._mirrored_for(user)
        if is_admin(user):
            return self.filter(~Q(kind__in=IB_KINDS) | mirrored)
        seen = mirrored
        for kind, model in (
            ("task", "Task"),
            ("epic", "Epic"),
            ("comment", "Comment"),
            ("resource", "Resource"),
        ):
            rows = _model(model).objects.visible_to(user).filter(pk=OuterRef("object_id"))
            seen |= Q(Exists(rows), kind=kind)
        return self.filter(seen)

    def _mirrored_for(self, user: Person) -> Q:
        """Match changes to mirrored objects, including objects just hidden, so that entitled users
        learn of it.
        """
        folders = _model("IBFolder").objects.entitled_to(user).filter(pk=OuterRef("object_id"))
        resources = _model("IBResource").objects.entitled_to(user).filter(pk=OuterRef("object_id"))
        return Q(Exists(folders), kind=Kind.IB_FOLDER) | Q(Exists(resources), kind=Kind.IB_RESOURCE)

    def after(self, number: int) -> Self:
        """Return the feed after a position.

        A change without a position is not in the feed yet; see sequencing.py.
        """
        return self.filter(position__gt=number).order_by("position")
