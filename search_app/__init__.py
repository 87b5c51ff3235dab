"""Index, search, snippets and context over what resources_app holds."""
