from django.apps import AppConfig


class ViewerConfig(AppConfig):
    name = "backlog_site.viewer"
    label = "backlog_viewer"
