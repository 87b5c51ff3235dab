"""Disable Hypothesis deadlines: properties are checked for results, not for time on a busy
machine.
"""

from hypothesis import settings

settings.register_profile("backlog", deadline=None, print_blob=True)
settings.load_profile("backlog")
