"""Build ib:// URIs of mirrored folders and resources."""

from resources_app.addresses.uris import Uri
from resources_app.models import IBFolder, IBResource

ROOT = "root"


def folder_uri(client_id: str, ib_id: str, *rest: str) -> str:
    return str(Uri("ib", client_id, ("folders", ib_id, *rest)))


def resource_uri(client_id: str, ib_id: str) -> str:
    return str(Uri("ib", client_id, ("resources", ib_id)))


def uri_of_mirrored(thing: IBFolder | IBResource) -> str:
    build = folder_uri if isinstance(thing, IBFolder) else resource_uri
    return build(thing.client_id, thing.ib_id)


def parent_uri(thing: IBFolder | IBResource) -> str:
    """Return the URI of the parent folder. Top-level folders are in the root."""
    if isinstance(thing, IBResource):
        return folder_uri(thing.client_id, thing.folder_ib_id)
    return folder_uri(thing.client_id, thing.parent_ib_id if thing.depth > 1 else ROOT)
