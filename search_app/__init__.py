"""Index and search the content of resources_app, and build snippets and context from it."""
