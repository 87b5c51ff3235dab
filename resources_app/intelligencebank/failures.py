"""What can go wrong with IntelligenceBank. No text here ever carries an address, a session or a password."""


class IBFailure(Exception):
    """A call that did not give what was asked for."""


class Unreachable(IBFailure):
    """Network, overload or an answer that cannot be read: the same call may work later."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NothingCame(Unreachable):
    """Rows were announced and none was given."""


class Refused(IBFailure):
    """A clear no. The same call would get it again."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class SessionExpired(IBFailure):
    """The sid is no longer valid: one new login may help."""


class AuthRequired(IBFailure):
    """Only a person can help: wrong password, or a session that cannot be renewed."""


class ForbiddenHost(IBFailure):
    """An address outside the allow-list; nothing is ever sent there."""


class BudgetSpent(IBFailure):
    """The calls of today are used up, or nobody can count them at the moment."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
