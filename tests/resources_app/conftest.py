"""Properties are checked for what they give, not for how long one example takes on a busy machine."""

from hypothesis import settings

settings.register_profile("backlog", deadline=None, print_blob=True)
settings.load_profile("backlog")
