"""Keep the history: documents, revisions, the change log, timelines and ETags."""
