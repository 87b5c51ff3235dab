"""Advise users on runs that did not end well."""

from resources_app.models.ib import IBSyncRun

Status = IBSyncRun.Status
_UNTOUCHED = "Nothing was hidden."
ADVICE: dict[str, str] = {
    Status.PAUSED: "It goes on by itself from where it was.",
    Status.INCOMPLETE: (
        f"{_UNTOUCHED} The next full run tries again; at a quieter hour it gets further."
    ),
    Status.AUTH_REQUIRED: (
        "Enter the account's e-mail address and password again, on the connection in the admin."
    ),
    Status.FAILED: (
        f"{_UNTOUCHED} Is IntelligenceBank up, and the connection's address right? Then run it"
        " again."
    ),
    Status.TRIPPED: (
        f"{_UNTOUCHED} Look into IntelligenceBank; if it is right, accept it on the connection in"
        " the admin."
    ),
}
