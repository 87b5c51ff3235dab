"""Register the admin. Objects with a history are written through the write path here too."""

from resources_app.admin import access, history, intelligencebank, items, jobs, oauth, resources

__all__ = ["access", "history", "intelligencebank", "items", "jobs", "oauth", "resources"]
