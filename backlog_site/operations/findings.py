"""Represent the result of one check of `doctor`."""

from dataclasses import asdict, dataclass

OK, WARNING, PROBLEM = "ok", "warning", "problem"


@dataclass(frozen=True)
class Finding:
    level: str
    subject: str
    message: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)
