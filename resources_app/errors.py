"""Define the errors that the domain raises and each adapter renders."""

from typing import Any


class BacklogError(Exception):
    """Carry a code, a message, details, and a suggestion that says what to do."""

    code = "unavailable"
    status = 503
    retryable = False
    suggestion = ""

    def __init__(self, message: str, *, suggestion: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.suggestion = self.suggestion if suggestion is None else suggestion

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "message": self.message,
            "details": self.details,
            "suggestion": self.suggestion,
            "retryable": self.retryable,
        }


class NotFound(BacklogError):
    code = "not_found"
    status = 404
    suggestion = "Check the id or path; list or search to find what exists and is visible to you."


class PermissionDenied(BacklogError):
    code = "permission_denied"
    status = 403


class Conflict(BacklogError):
    code = "conflict"
    status = 409
    retryable = True
    suggestion = "Read the resource again, check details.diff, and retry with the new ETag."


class OperationFailed(BacklogError):
    code = "operation_failed"
    status = 422
    suggestion = "Read the resource to get its current content, then retry."


class InvalidOperation(BacklogError):
    code = "invalid_operation"
    status = 400
    suggestion = "Use one of details.allowed."


class ValidationFailed(BacklogError):
    code = "validation_failed"
    status = 400
    suggestion = "Correct the value named in details and send the request again."


class InvalidUri(BacklogError):
    code = "invalid_uri"
    status = 400
    suggestion = "Use one of the URI patterns in details.patterns."


class Unauthenticated(BacklogError):
    code = "unauthenticated"
    status = 401
    suggestion = "Send 'Authorization: Bearer <token>'; manage.py create_token makes one."


class RateLimited(BacklogError):
    code = "rate_limited"
    status = 429
    retryable = True


class Unavailable(BacklogError):
    code = "unavailable"
    status = 503
    retryable = True
    suggestion = "Try again in a few seconds."
