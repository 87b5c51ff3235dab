from django.apps import AppConfig


class ConformanceConfig(AppConfig):
    """What the conformance suite expects a server to have; the package finds it in mcp.py."""

    name = "tests.mcp.conformance"
    label = "conformance"
