from django.apps import AppConfig


class SearchConfig(AppConfig):
    name = "search_app"

    def ready(self) -> None:
        from resources_app import changes, querysets, subscriptions  # noqa: PLC0415  # models can be imported only now
        from resources_app.registry import REGISTRY  # noqa: PLC0415
        from search_app import addresses, embedding, indexing, rebuilding, search  # noqa: F401, PLC0415  # some register jobs

        changes.listen(indexing.follow)
        changes.listen_to_mirror(indexing.follow_mirror)
        querysets.use_text_search(search.matching_numbers)
        subscriptions.use_text_match(search.has_every_word)
        REGISTRY.add(*addresses.ENTRIES)
