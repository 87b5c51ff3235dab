"""Celery's scheduler, made to bear a clock that is set back."""

from typing import Any

from celery.beat import PersistentScheduler


class Scheduler(PersistentScheduler):  # type: ignore[misc]  # celery has no types
    """Celery's own would send nothing until the clock has caught up with when it sent last."""

    def tick(self, *args: Any, **options: Any) -> float:
        now = self.app.now()
        if ahead := [entry for entry in self.schedule.values() if entry.last_run_at > now]:
            for entry in ahead:
                entry.last_run_at = now
            self._heap = None
        return float(super().tick(*args, **options))
