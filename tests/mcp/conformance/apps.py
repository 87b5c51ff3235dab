from django.apps import AppConfig


class ConformanceConfig(AppConfig):
    """Provide what the conformance suite expects of a server; the package finds it in mcp.py."""

    name = "tests.mcp.conformance"
    label = "conformance"
