"""Define the failures of IntelligenceBank calls.

No message ever contains a URL, a session or a password.
"""


class IBFailure(Exception):
    """Report a failed call."""


class Unreachable(IBFailure):
    """Report a network failure, overload or an unreadable response. A retry may succeed."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NothingCame(Unreachable):
    """Report a response that announced rows and contained none."""


class Refused(IBFailure):
    """Report a definite rejection. A retry would fail again."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class SessionExpired(IBFailure):
    """Report an invalid sid. A new login may help."""


class AuthRequired(IBFailure):
    """Report that a user must act: wrong password, or a session that cannot be renewed."""


class ForbiddenHost(IBFailure):
    """Report a URL outside the allow-list. Nothing is ever sent there."""


class BudgetSpent(IBFailure):
    """Report that today's call budget is exhausted, or that calls cannot be counted at the
    moment.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
