"""Who the code of a job acts as at Google: an account that is impersonated for minutes, or who is logged in here.

Tokens stay in the process that asks for them, which puts them into headers and nowhere else.
"""

import threading
from collections.abc import Mapping
from typing import Any

from vertex_api import credentials
from vertex_api.answers import translate_errors
from vertex_api.errors import PermissionDenied

TOKEN_SECONDS = 600
"""Of an impersonated account. A person's own tokens have the hour that Google gives them."""
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_ANSWER_SECONDS = 30.0


class Acting:
    """Acts as an `account`, by the credentials of `credentials.load`; as whom they are of, without one."""

    def __init__(self, account: str = "") -> None:
        self.account = account
        self._lock = threading.Lock()
        self._own: Any = None
        self._current: Any = None

    def headers(self) -> Mapping[str, str]:
        """Return the headers of a call that is made now, with a token that lasts some minutes more.

        Raises PermissionDenied, which says in one line what to do, and Unavailable.
        """
        with self._lock, translate_errors():
            if self._current is None or not self._current.valid:
                self._current = None
                self._current = self._renewed()
            found = {"authorization": f"Bearer {self._current.token}"}
            if quota_project := getattr(self._current, "quota_project_id", None):
                found["x-goog-user-project"] = str(quota_project)
            return found

    def forget(self) -> None:
        """Ask for another token with the next call: Google takes the present one no more."""
        with self._lock:
            self._own = self._current = None

    def _renewed(self) -> Any:
        import requests
        from google.auth import exceptions, impersonated_credentials
        from google.auth.transport.requests import Request

        from vertex_api import transport

        session = Request(transport.mount(requests.Session(), _ANSWER_SECONDS))
        # Kept once all has worked: who logs in after a failure is asked with the next call.
        own, self._own = self._own or credentials.load(), None
        if not own.valid:
            own.refresh(session)
        if not self.account:
            return own
        acting = impersonated_credentials.Credentials(
            source_credentials=own,
            target_principal=self.account,
            target_scopes=[_SCOPE],
            lifetime=TOKEN_SECONDS,
        ).with_quota_project_from_environment()
        try:
            acting.refresh(session)
        except exceptions.RefreshError as error:
            raise PermissionDenied(credentials.explain_impersonation(error, own, self.account)) from error
        self._own = own
        return acting
