"""Pick the tasks to request: any live and unrestricted one, random but the same in every run."""

import random
from collections.abc import Sequence

# One task in fifty is archived, and one is restricted to a group without alice.
_SPREAD = 50


def is_archived(number: int) -> bool:
    return number % _SPREAD == 0


def is_restricted(number: int) -> bool:
    return number % _SPREAD == 1


class Picks:
    def __init__(self, tasks: int, seed: int = 0) -> None:
        self._tasks = tasks
        self._chance = random.Random(seed)

    def number(self) -> int:
        while True:
            number = self._chance.randint(2, self._tasks)
            if not is_archived(number) and not is_restricted(number):
                return number

    def one_of(self, words: Sequence[str]) -> str:
        return self._chance.choice(words)

    def ref(self) -> str:
        return f"TASK-{self.number():04d}"

    def refs(self, count: int) -> list[str]:
        """Return different refs, or all there are."""
        plain = [
            n for n in range(2, self._tasks + 1) if not is_archived(n) and not is_restricted(n)
        ]
        return [
            f"TASK-{number:04d}" for number in self._chance.sample(plain, min(count, len(plain)))
        ]
