"""Serve MCP at /mcp and over stdio: the server object of django-mcp-server behind our transport.

`server.install()` runs once per process, when models are ready, and registers everything:
- `server.toolsets` is the package's object (`@server.toolsets.prompt()` …), `server.low_level` the
  SDK's server below:
  `low_level.add_request_handler(method, ParamsModel, async (ctx, params) -> result model)` for
  resources/list,
  resources/templates/list, resources/read, completion/complete and extension methods;
  `low_level.extensions[name] = {…}` announces an extension, `low_level.instructions = …` the
  instructions.
- `toolset.Toolset` and `@toolset.tool("Title", read_only_hint=True)`: each marked method is a tool,
  a plain function
  that may use the database. Importing its module inside `install()` is enough: the package
  registers what it finds.
- `context.current_actor()`: the `access.Actor` for whom any of these runs, in handlers and in
  threads alike.
- `threads.in_thread(function, …)`: awaits domain code on the shared database threads. No handler
  may use the ORM in
  the event loop, and none may leave it to the SDK, which would run it on separate threads.
  `threads.in_loop(coroutine)` goes back from such a thread, for `ctx.report_progress(…)`.
- Errors: a `BacklogError` that leaves a handler becomes a protocol error with the code of the
  client's era
  (`errors.protocol_error`); errors that a model can fix are returned as tool results.
- Subscriptions: `bus.bus.rules.may_watch(actor, uri)` and `.matches(change, uri)` default to the
  rules of
  `resources_app.reading.watching`, which also makes the `_meta` of a notice. `wake.announce` runs
  after each commit.
- Tests: the package finds any app with an `mcp.py` in INSTALLED_APPS; tests/mcp/fixture and
  tests/mcp/conformance are such apps, and no production setting names them.

A request passes asgi.py → transport.py (Host, Origin, token, size) → modern.py (2026-07-28, the
SDK's transport) or legacy.py (up to 2025-11-25; sessions.py in Redis, streams.py for GET) → the
SDK's kernel → handlers. bus.py delivers changes to both eras; backchannel.py carries messages
between web processes. docs/decisions gives the reasons.
"""
