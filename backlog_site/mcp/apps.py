from django.apps import AppConfig

from backlog_site.mcp import compat  # noqa: F401  # must come before `mcp_server`, the next app, is imported


class McpConfig(AppConfig):
    name = "backlog_site.mcp"
    label = "backlog_mcp"

    def ready(self) -> None:
        """Install the server before the package's own ready(), which registers every toolset
        imported by then.
        """
        from backlog_site.mcp import server, wake  # noqa: PLC0415  # they need models
        from resources_app.history import change_log  # noqa: PLC0415

        server.install()
        change_log.listen(wake.after_commit)
