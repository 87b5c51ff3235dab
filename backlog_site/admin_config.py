"""Which site `django.contrib.admin` serves. Alone in its module: apps are configured before models can be imported."""

from django.contrib.admin.apps import AdminConfig


class BacklogAdminConfig(AdminConfig):
    default_site = "resources_app.admin_site.BacklogAdminSite"
