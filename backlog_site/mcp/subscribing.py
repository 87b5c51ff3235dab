"""Handle resources/subscribe, resources/unsubscribe and subscriptions/listen."""

from typing import Any

import mcp.types as protocol
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.types import SubscriptionFilter

from backlog_site.mcp.bus import MAX_WATCHES, RESOURCE_LIST, Notice, bus
from backlog_site.mcp.context import current_actor, current_request
from backlog_site.serving.database_threads import in_thread
from resources_app.errors import ValidationFailed
from resources_app.identity.roles import Actor
from resources_app.reading import watching
from resources_app.reading.watching import Position


async def subscribe(
    _ctx: ServerRequestContext, params: protocol.SubscribeRequestParams
) -> protocol.EmptyResult:
    position = await in_thread(_admit, current_actor(), [params.uri])
    if watches := current_request().watches:
        await watches.add(params.uri, position)
    return protocol.EmptyResult()


async def unsubscribe(
    _ctx: ServerRequestContext, params: protocol.UnsubscribeRequestParams
) -> protocol.EmptyResult:
    if watches := current_request().watches:
        await watches.remove(params.uri)
    return protocol.EmptyResult()


async def listen(
    ctx: ServerRequestContext, params: protocol.SubscriptionsListenRequestParams
) -> protocol.SubscriptionsListenResult:
    """Stream the answer: first the granted subscriptions, then the notices, all with the stream's
    id.
    """
    if ctx.request_id is None:
        raise MCPError(protocol.INVALID_REQUEST, "subscriptions/listen needs a request id")
    meta = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
    granted = _granted(params.notifications)
    uris = granted.resource_subscriptions or []
    with bus.attached(current_request().caller) as watcher:
        position = await in_thread(_admit, current_actor(), uris)
        for uri in [*uris, *([RESOURCE_LIST] if granted.resources_list_changed else [])]:
            watcher.watch(uri, position)
        await _send(ctx, _acknowledgement(granted, meta))
        async for notice in watcher.notices():
            await _send(ctx, notification_of(notice, meta))
    return protocol.SubscriptionsListenResult(_meta=meta)


def _admit(actor: Actor, uris: list[str]) -> Position:
    """Check the addresses in a database thread.

    The position is read last, so that all later changes are delivered.
    """
    if len(uris) > MAX_WATCHES:
        raise ValidationFailed(
            f"{MAX_WATCHES} addresses can be watched at most.", field="resourceSubscriptions"
        )
    for uri in uris:
        bus.rules.may_watch(actor, uri)
    return watching.end_of_feed()


def _granted(wanted: SubscriptionFilter) -> SubscriptionFilter:
    """Return the granted subscriptions.

    Tools and prompts do not change at runtime, as server.discover states.
    """
    return SubscriptionFilter(
        resources_list_changed=wanted.resources_list_changed or None,
        resource_subscriptions=list(dict.fromkeys(wanted.resource_subscriptions or ())) or None,
    )


async def _send(ctx: ServerRequestContext, notification: protocol.ServerNotification) -> None:
    await ctx.session.send_notification(notification, related_request_id=ctx.request_id)


def _acknowledgement(
    granted: SubscriptionFilter, meta: dict[str, Any]
) -> protocol.ServerNotification:
    params = protocol.SubscriptionsAcknowledgedNotificationParams(notifications=granted, _meta=meta)
    return protocol.SubscriptionsAcknowledgedNotification(params=params)


def notification_of(notice: Notice, meta: dict[str, Any]) -> protocol.ServerNotification:
    if notice.uri == RESOURCE_LIST:
        return protocol.ResourceListChangedNotification(
            params=protocol.NotificationParams(_meta=meta)
        )
    params = protocol.ResourceUpdatedNotificationParams(
        uri=notice.uri, _meta={**notice.meta, **meta}
    )
    return protocol.ResourceUpdatedNotification(params=params)
