"""Import folders of backlog-mcp (FLDR-0001), which have no counterpart here, as epics or as labels
of their tasks.
"""

from typing import Literal

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import FIELDS
from resources_app.interchange.item_files import FOLDER_ID, ItemFile, make_ref, read_item_file
from resources_app.interchange.tree import Tree
from resources_app.models import Epic, Sequence, Task
from resources_app.reading.markdown import BOOKKEEPING
from resources_app.vocabulary import Kind

FolderMode = Literal["epics", "labels"]
# Key in the import's bookkeeping, so that the next import needs no option.
FOLDERS_AS = "folders_as"
_MAX_LABEL = 50


class FolderImport:
    """Apply a folder mode.

    Without one, each task is treated as at its last import; otherwise its folder is kept as text.
    """

    def __init__(self, tree: Tree, mode: FolderMode | None) -> None:
        self.tree = tree
        self.mode = mode
        self.texts: dict[str, tuple[str, str]] = {}

    def read(self, path: str) -> None:
        match = FOLDER_ID.match(path.rpartition("/")[2])
        if match is None or not int(match[1]):
            raise ValidationFailed("There is no id like FLDR-0001 in the file name.")
        self.texts[f"FLDR-{int(match[1]):04d}"] = (path, self.tree.read_text(path))

    def apply(self, items: dict[str, ItemFile]) -> list[str]:
        """Change the items according to the mode and add the epics.

        Return the paths of the unused folders.
        """
        inside = [item for item in items.values() if item.folder]
        for item, mode in zip(inside, self._modes(inside), strict=True):
            item.folders_as = mode
        epics = self._epics(items, {item.folder for item in inside if item.folders_as == "epics"})
        for item in inside:
            if item.folders_as == "epics" and item.folder in epics:
                _put_into(item, epics[item.folder].ref)
            elif item.folders_as == "labels":
                self._label(item)
            else:
                item.folders_as = ""
                reason = f"The folder {item.folder} has no counterpart (see --folders)."
                item.warnings.append(f"{reason} Kept as it is, but without effect.")
        items |= {epic.ref: epic for epic in epics.values()}
        labelled = {item.folder for item in inside if item.folders_as == "labels"}
        return [
            path
            for ref, (path, _) in self.texts.items()
            if ref not in epics and ref not in labelled
        ]

    def _modes(self, inside: list[ItemFile]) -> list[str]:
        if self.mode:
            return [self.mode] * len(inside)
        rows = Task.objects.filter(pk__in=[item.number for item in inside]).values_list(
            "pk", "extra"
        )
        remembered = {
            number: extra.get(BOOKKEEPING, {}).get(FOLDERS_AS, "") for number, extra in rows
        }
        return [remembered.get(item.number, "") for item in inside]

    def _epics(self, items: dict[str, ItemFile], wanted: set[str]) -> dict[str, ItemFile]:
        """Return the epics that represent folders. Existing ones keep their numbers."""
        known = {
            extra["folder_id"]: number
            for number, extra in Epic.objects.filter(extra__has_key="folder_id").values_list(
                "pk", "extra"
            )
        }
        written = {
            item.kept.get("folder_id"): item.number
            for item in items.values()
            if item.kind == Kind.EPIC
        }
        refs = (
            wanted | set(self.texts)
            if self.mode == "epics"
            else wanted | (set(self.texts) & known.keys())
        )
        last = Sequence.objects.values_list("last", flat=True).get(prefix=Epic.PREFIX)
        last = max([last, *(item.number for item in items.values() if item.kind == Kind.EPIC)])
        epics: dict[str, ItemFile] = {}
        for ref in sorted(refs):
            number = written.get(ref) or known.get(ref)
            if number is None:
                number = last = last + 1
            epics[ref] = items.get(make_ref(Kind.EPIC, number)) or self._as_epic(ref, number)
        return epics

    def _as_epic(self, ref: str, number: int) -> ItemFile:
        path, text = self.texts.get(ref, (ref, f"---\nid: {ref}\ntitle: {ref}\n---\n"))
        epic = read_item_file(path, text, as_epic=number)
        epic.kept["folder_id"] = ref
        epic.layout = {}
        return epic

    def _label(self, item: ItemFile) -> None:
        labels = FIELDS[item.kind]["labels"]
        path, text = self.texts.get(item.folder, ("", ""))
        title = read_item_file(path, text, as_epic=1).values["title"] if text else ""
        label = title if title and len(title) <= _MAX_LABEL else item.folder
        try:
            item.values["labels"] = labels.clean("labels", [*item.values["labels"], label])
        except ValidationFailed as error:
            item.warnings.append(
                f"The folder {item.folder} did not become a label: {error.message}"
            )


def _put_into(item: ItemFile, epic: str) -> None:
    if item.values["epic_id"] is None:
        item.values["epic_id"] = epic
        item.kept.pop("parent_id", None)
