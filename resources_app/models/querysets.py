"""The only place that decides who sees what. Every read starts with `visible_to(user)`."""

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


# Which things have every word. The index lies above this package and registers here.
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
        """What `visible_to` shows beyond what everybody sees. Begins with the groups' rows: whoever has few looks at few."""
        limited = self.visible_to(user) if not may_read(user) or is_admin(user) else self._opened_to(groups_of(user))
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
    """Tasks and epics."""

    def mentioning(self, words: str) -> Self:
        """Every word somewhere in the item, as the index knows it."""
        return self.filter(pk__in=_text_search[0](self.model, words))


class TaskQuerySet(ItemQuerySet["Task"]):
    def in_epic(self, number: int) -> Self:
        return self.filter(epic_id=number)

    def ready(self, wanted: bool = True) -> Self:
        """Open, and nothing they depend on is unfinished; with `wanted=False` all the others."""
        unfinished = _model("TaskDependency").objects.filter(
            task=OuterRef("pk"), needs__status__in=UNFINISHED, needs__archived_at__isnull=True
        )
        if not wanted:
            return self.filter(Exists(unfinished) | ~Q(status=Status.OPEN))
        return self.filter(~Exists(unfinished), status=Status.OPEN)


class CommentQuerySet(QuerySet["Comment"]):
    def visible_to(self, user: Person) -> Self:
        """Whoever sees the thing sees what was said about it."""
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
        """A folder shows when something visible lies below it, however deep."""
        return self.filter(Exists(_model("Resource").objects.visible_to(user).live().filter(ancestors=OuterRef("pk"))))


def _entitlements(user: Person, action: str = "list") -> QuerySet[Any]:
    """The rights of the person's own account that still count. No link, no right: not for admins either."""
    rights: QuerySet[Any] = _model("IBEntitlement").objects.filter(link__user_id=user.pk or 0, expires_at__gt=Now())
    return rights.filter(may_view=True) if action == "view" else rights.filter(may_list=True)


class IBFolderQuerySet(QuerySet["IBFolder"]):
    def entitled_to(self, user: Person) -> Self:
        if not may_read(user):
            return self.none()
        return self.filter(Exists(_entitlements(user).filter(folder=OuterRef("pk"))))

    def visible_to(self, user: Person) -> Self:
        return self.entitled_to(user).filter(hidden=False)

    def top_for(self, user: Person) -> Self:
        """Where this person's tree begins."""
        if not may_read(user):
            return self.none()
        return self.filter(pk__in=_entitlements(user).filter(is_top=True).values("folder_id"), hidden=False)


class IBResourceQuerySet(QuerySet["IBResource"]):
    def entitled_to(self, user: Person, action: str = "list") -> Self:
        """Rights are given per folder, and only the home folder counts."""
        if not may_read(user):
            return self.none()
        return self.filter(Exists(_entitlements(user, action).filter(folder=OuterRef("folder_id"))))

    def visible_to(self, user: Person) -> Self:
        shown = self.entitled_to(user)
        return shown.filter(missing_since__isnull=True, tombstoned_at__isnull=True, folder__hidden=False)


class IBConnectionQuerySet(QuerySet["IBConnection"]):
    def visible_to(self, user: Person) -> Self:
        """Whoever may read may link: which tenants there are is no secret inside the team."""
        return self.filter(is_enabled=True) if may_read(user) else self.none()


class ChangeQuerySet(QuerySet["Change"]):
    def visible_to(self, user: Person) -> Self:
        """A change shows to whoever sees the thing it happened to, now; to admins also when the thing is gone."""
        mirrored = self._mirrored_for(user)
        if is_admin(user):
            return self.filter(~Q(kind__in=IB_KINDS) | mirrored)
        seen = mirrored
        for kind, model in (("task", "Task"), ("epic", "Epic"), ("comment", "Comment"), ("resource", "Resource")):
            rows = _model(model).objects.visible_to(user).filter(pk=OuterRef("object_id"))
            seen |= Q(Exists(rows), kind=kind)
        return self.filter(seen)

    def _mirrored_for(self, user: Person) -> Q:
        """Also when the thing has just been hidden: whoever could read it hears of that."""
        folders = _model("IBFolder").objects.entitled_to(user).filter(pk=OuterRef("object_id"))
        resources = _model("IBResource").objects.entitled_to(user).filter(pk=OuterRef("object_id"))
        return Q(Exists(folders), kind=Kind.IB_FOLDER) | Q(Exists(resources), kind=Kind.IB_RESOURCE)

    def after(self, number: int) -> Self:
        """The feed after a position: see sequencing.py. A change without a position is not in the feed yet."""
        return self.filter(position__gt=number).order_by("position")
