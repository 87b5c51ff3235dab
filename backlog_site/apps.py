from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "backlog_site"
