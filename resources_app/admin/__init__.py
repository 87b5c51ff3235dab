"""The admin. Whatever has a history is written through the write path here too."""

from resources_app.admin import access, history, intelligencebank, items, jobs, oauth, resources

__all__ = ["access", "history", "intelligencebank", "items", "jobs", "oauth", "resources"]
