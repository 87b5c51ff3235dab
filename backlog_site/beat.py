"""Make Celery's scheduler survive a clock that is set back."""

from typing import Any

from celery.beat import PersistentScheduler


class Scheduler(PersistentScheduler):  # type: ignore[misc]  # celery has no types
    """Send due entries after the clock was set back.

    Celery's own scheduler waits until the clock passes the last run.
    """

    def tick(self, *args: Any, **options: Any) -> float:
        now = self.app.now()
        if ahead := [entry for entry in self.schedule.values() if entry.last_run_at > now]:
            for entry in ahead:
                entry.last_run_at = now
            self._heap = None
        return float(super().tick(*args, **options))
