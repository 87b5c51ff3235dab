"""Build the sidebar."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    return [
        _group(
            "Work",
            ("Dashboard", "dashboard", "index"),
            ("Tasks", "task_alt", "resources_app_task_changelist"),
            ("Epics", "flag", "resources_app_epic_changelist"),
            ("Comments", "chat", "resources_app_comment_changelist"),
        ),
        _group(
            "Files",
            ("Resources", "description", "resources_app_resource_changelist"),
            ("Folders", "folder", "resources_app_folder_changelist"),
        ),
        _group(
            "IntelligenceBank",
            ("Connections", "hub", "resources_app_ibconnection_changelist"),
            ("Sync runs", "sync", "resources_app_ibsyncrun_changelist"),
            ("Folders", "folder_shared", "resources_app_ibfolder_changelist"),
            ("Resources", "imagesmode", "resources_app_ibresource_changelist"),
            ("Linked people", "badge", "resources_app_iblink_changelist"),
            ("Entitlements", "verified_user", "resources_app_ibentitlement_changelist"),
            ("Quarantine", "report", "resources_app_ibquarantine_changelist"),
        ),
        _group(
            "History",
            ("Changes", "history", "resources_app_change_changelist"),
            ("Revisions", "difference", "resources_app_revision_changelist"),
        ),
        _group(
            "Operation",
            ("Jobs", "manufacturing", "resources_app_job_changelist"),
            ("API tokens", "key", "resources_app_apitoken_changelist"),
            ("OAuth clients", "hub", "oauth2_provider_application_changelist"),
            ("OAuth access", "vpn_key", "oauth2_provider_accesstoken_changelist"),
            ("Service accounts", "smart_toy", "resources_app_serviceaccount_changelist"),
            ("Users", "person", "auth_user_changelist"),
            ("Groups", "group", "auth_group_changelist"),
        ),
    ]


def _group(title: str, *items: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "title": title,
        "separator": True,
        "items": [
            {"title": name, "icon": icon, "link": reverse(f"admin:{page}")}
            for name, icon, page in items
        ],
    }
