"""What things were: documents, revisions, the change log, timelines, ETags."""
