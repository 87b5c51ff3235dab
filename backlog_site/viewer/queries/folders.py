"""Query the tree beside a folder of files: its ancestors and its contents."""

from dataclasses import dataclass, field

from resources_app.addresses.targets import AREAS
from resources_app.files.folders import ancestor_paths
from resources_app.identity.roles import Person
from resources_app.models import Folder

MOST = 500


@dataclass(frozen=True)
class Branch:
    path: str
    branches: list["Branch"] = field(default_factory=list)


def tree(user: Person, path: str) -> list[Branch]:
    """Return both areas from the top.

    Below them only opened folders are expanded, however many there are.
    """
    opened = [*AREAS, *ancestor_paths(path), path]
    rows = Folder.objects.visible_to(user).filter(parent__path__in=opened).order_by("path")
    found = {area: Branch(area) for area in AREAS}
    # A folder sorts after its parent, because its path is longer.
    for below in rows.values_list("path", flat=True)[:MOST]:
        found[below] = Branch(below)
        if parent := found.get(below.rpartition("/")[0]):
            parent.branches.append(found[below])
    return [found[area] for area in AREAS]
