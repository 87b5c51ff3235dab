"""Select the site that `django.contrib.admin` serves.

A separate module, because apps are configured before models load.
"""

from django.contrib.admin.apps import AdminConfig


class BacklogAdminConfig(AdminConfig):
    default_site = "resources_app.admin_site.BacklogAdminSite"
