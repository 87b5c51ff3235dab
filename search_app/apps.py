from django.apps import AppConfig


class SearchConfig(AppConfig):
    name = "search_app"

    def ready(self) -> None:
        from resources_app.history import change_log  # noqa: PLC0415  # models can be imported only now
        from resources_app.models import querysets  # noqa: PLC0415  # models can be imported only now
        from resources_app.querying import snapshots  # noqa: PLC0415  # models can be imported only now
        from resources_app.reading.registry import REGISTRY  # noqa: PLC0415
        from search_app import addresses, search  # noqa: PLC0415  # some register jobs
        from search_app.index import rebuild, write  # noqa: F401, PLC0415  # some register jobs
        from search_app.semantic import worker  # noqa: F401, PLC0415  # some register jobs

        change_log.listen_to_groups(write.follow)
        change_log.listen_to_mirror(write.follow_mirror)
        querysets.use_text_search(search.matching_numbers)
        snapshots.use_text_index(search.DocumentText)
        REGISTRY.add(*addresses.ENTRIES)
