from django.apps import AppConfig


class ResourcesConfig(AppConfig):
    name = "resources_app"
    verbose_name = "Backlog"
