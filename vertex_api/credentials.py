"""The credentials of all calls to Google Cloud: of the identity that Pulumi's Google provider acts as.

They are chosen in its order (terraform-provider-google, `ProviderConfigure` of provider.go and `GetCredentials` of
config.go, read in November 2026): what the stack's config has, else what the environment has, else the Application
Default Credentials. An access token comes before a key. An account to impersonate is added to any of them.
"""

import json
import os
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_KEY, _TOKEN, _ACCOUNT = "gcp:credentials", "gcp:accessToken", "gcp:impersonateServiceAccount"
_DELEGATES = "gcp:impersonateServiceAccountDelegates"
"""A list, which no variable has."""
CONFIG_KEYS = (_KEY, _TOKEN, _ACCOUNT, _DELEGATES)
_KEY_VARIABLES = ("GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON")
_DEFAULT_VARIABLE, _DEFAULT_PLACE = "GOOGLE_APPLICATION_CREDENTIALS", "Application Default Credentials"
_TOKEN_VARIABLE, _ACCOUNT_VARIABLE = "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"
_DEFAULT_REMEDY = f"run `gcloud auth application-default login`, or set {_DEFAULT_VARIABLE}"
_REMEDIES = {
    "authorized_user": "log in again by `gcloud auth application-default login`",
    "external_account": "the token of the identity provider may have ended: get a new one, and look at the "
    "conditions of the pool",
}
"""What to do about credentials that Google does not take, by the type of their file."""
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_IMPERSONATED = re.compile(r"serviceAccounts/([^/:]+):generateAccessToken")
_LONG = re.compile(r"[\w.+=-]{60,}")
_MAX_REASON_LENGTH = 300
_UNAUTHENTICATED = 401


@dataclass(frozen=True)
class _Setting:
    """What a key of the stack's config or a variable says. Messages name its `place` and never quote its text."""

    place: str
    text: str = field(repr=False)

    def read(self) -> str:
        """Return the content of the file that the text is the path of, or the text itself."""
        path = os.path.expanduser(self.text) if self.text.startswith("~") else self.text  # noqa: PTH111
        try:
            return Path(path).read_text() if os.path.exists(path) else self.text  # noqa: PTH110
        except (OSError, ValueError):
            return ""  # which nothing accepts

    def parse(self) -> dict[str, Any] | None:
        """Return the JSON object that a key is, `None` if there is none in what should have it."""
        try:
            info = json.loads(self.read())
        except ValueError:
            return None
        return info if isinstance(info, dict) else None


@dataclass(frozen=True)
class _Identity:
    """Who calls: by a `token`, or by the JSON of a `key`, or else by default; as `account`, if that is to be."""

    token: _Setting | None
    key: _Setting | None
    account: _Setting | None
    delegates: tuple[str, ...]


_config: dict[str, Any] = {}


def use_config(config: Mapping[str, Any]) -> None:
    """Take what the stack's config says of credentials, for all calls of this process."""
    _config.clear()
    _config.update({key: config[key] for key in CONFIG_KEYS if config.get(key)})


def load() -> Any:
    """Return the credentials of google-auth for a call that is made now. Raises GoogleAuthError."""
    import google.auth
    from google.auth import exceptions, impersonated_credentials
    from google.oauth2.credentials import Credentials

    identity = _identity()
    if identity.token:
        credentials: Any = Credentials(identity.token.read().strip()).with_quota_project_from_environment()
    else:
        if identity.key and (info := identity.key.parse()) is None:
            raise exceptions.DefaultCredentialsError(f"{identity.key.place} has no JSON")
        with warnings.catch_warnings():
            # Its warning is about keys that are somebody else's.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                if identity.key:
                    credentials, _ = google.auth.load_credentials_from_dict(info, scopes=[_SCOPE])
                else:
                    credentials, _ = google.auth.default(scopes=[_SCOPE])
            except (ValueError, LookupError, TypeError, AttributeError) as error:  # as of a file that holds a list
                raise exceptions.DefaultCredentialsError("a credential file is incomplete") from error
    if identity.account is None:
        return credentials
    return impersonated_credentials.Credentials(
        source_credentials=credentials,
        target_principal=identity.account.text,
        target_scopes=[_SCOPE],
        delegates=list(identity.delegates),
    ).with_quota_project_from_environment()


def fetch_token() -> str:
    """Return an access token. Raises GoogleAuthError."""
    from google.auth.transport.requests import Request

    credentials = load()
    if not credentials.valid:
        credentials.refresh(Request())
    return str(credentials.token)


def personal_token(credentials: Any) -> str:
    """Return an access token that tells whose it is, if there is one: of a person, with all scopes of the log-in.

    A token that is asked for with a scope of its own, as those of `load` are, has no other, not even that of the
    e-mail (google-auth, `refresh_grant` of google/oauth2/_client.py). Raises GoogleAuthError.
    """
    from google.auth.transport.requests import Request
    from google.oauth2.credentials import Credentials

    if not isinstance(credentials, Credentials) or not credentials.refresh_token:
        return str(credentials.token)
    person = Credentials(
        None,
        refresh_token=credentials.refresh_token,
        token_uri=credentials.token_uri,
        client_id=credentials.client_id,
        client_secret=credentials.client_secret,
        rapt_token=credentials.rapt_token,
    )
    person.refresh(Request())
    return str(person.token)


def explain(error: Exception) -> str:
    """Return what to do about a GoogleAuthError, in one line without anything secret."""
    identity = _identity()
    is_impersonation = "impersonated" in str(error)
    code, reason = _answer(error)
    if identity.token and not (is_impersonation and code != _UNAUTHENTICATED):
        return f"{identity.token.place}: the access token has expired or is not valid; set a new one"
    if is_impersonation and identity.account:
        place, account = identity.account.place, identity.account.text
        return _no_token(place, account, reason, "roles/iam.serviceAccountTokenCreator", "who runs `pulumi`")
    if (key := identity.key or _default_file()) is None:
        return _DEFAULT_REMEDY
    info = key.parse()
    if identity.key and info is None:
        return f"{key.place}: is neither a JSON object nor the path of a file that has one; set one of them"
    if info is None or not (identity.key or os.path.isfile(key.text)):  # noqa: PTH113  # takes whatever text
        return f"{key.place}: is not the path of a credential file of Google's; {_DEFAULT_REMEDY}"
    if is_impersonation and (matched := _IMPERSONATED.search(str(info.get("service_account_impersonation_url")))):
        if info.get("type") == "external_account":
            role, member = "roles/iam.workloadIdentityUser", "the identity of the pool"
        else:
            role, member = "roles/iam.serviceAccountTokenCreator", "who has logged in"
        return _no_token(key.place, matched[1], reason, role, member)
    remedy = _REMEDIES.get(str(info.get("type")), "set those of an account that exists and is enabled")
    return f"{key.place}: Google does not take the credentials ({reason}); {remedy}"


def explain_impersonation(error: Exception, own: Any, account: str) -> str:
    """Return what to do, in one line, about a GoogleAuthError of an `account` that `own` credentials impersonate."""
    email = getattr(own, "service_account_email", None)
    is_account = isinstance(email, str) and "@" in email
    member = f"serviceAccount:{email}" if is_account else '"user:$(gcloud config get account)"'
    _, reason = _answer(error)
    return (
        f"Google gives no token of {account} ({reason.rstrip('.')}); grant the right to impersonate it: gcloud iam "
        f"service-accounts add-iam-policy-binding {account} --member={member} "
        "--role=roles/iam.serviceAccountTokenCreator"
    )


def _no_token(place: str, account: str, reason: str, role: str, member: str) -> str:
    return (
        f"{place}: Google gives no token of {account} ({reason}); grant {role} on it to {member}, and enable "
        "iamcredentials.googleapis.com in its project"
    )


def _default_file() -> _Setting | None:
    """Return where the Application Default Credentials are read from, `None` if no file has them."""
    from google.auth import _cloud_sdk

    if found := _find_variable(_DEFAULT_VARIABLE):
        return found
    path = str(_cloud_sdk.get_application_default_credentials_path())
    return _Setting(_DEFAULT_PLACE, path) if Path(path).is_file() else None


def exposed(config: Mapping[str, Any], secret_keys: Collection[str]) -> list[str]:
    """Return the keys of a stack's config that hold credentials in plain text, which Pulumi shows and stores.

    A path of a file is none.
    """
    plain = [_Setting(key, config[key]) for key in (_TOKEN, _KEY) if config.get(key) and key not in secret_keys]
    return [each.place for each in plain if each.read() == each.text and _is_secret(each)]


def _is_secret(text: _Setting) -> bool:
    """Return whether what is no path is secret: a token, or JSON that is not the configuration of an identity pool."""
    info = text.parse()
    return text.place == _TOKEN or (info is not None and info.get("type") != "external_account")


def differing(provider: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Return by which keys a provider with this config of its own is not who calls with a stack's `config`.

    A provider that is made by a program does not see the stack's config, but the environment.
    """
    own, stack = _identity(provider), _identity(config)
    return [
        key
        for key, one, other in (
            (_TOKEN, own.token, stack.token),
            (_KEY, own.key, stack.key),
            (_ACCOUNT, own.account, stack.account),
        )
        if (one and one.text) != (other and other.text)
    ]


def token_place() -> str | None:
    """Return where the access token comes from that calls use as it is, until it expires; `None` if they use none."""
    identity = _identity()
    return identity.token.place if identity.token and not identity.account else None


def _identity(config: Mapping[str, Any] = _config) -> _Identity:
    key, token, account = (
        _Setting(name, config[name]) if config.get(name) else None for name in (_KEY, _TOKEN, _ACCOUNT)
    )
    if not key and not token:
        key, token = _find_variable(*_KEY_VARIABLES), _find_variable(_TOKEN_VARIABLE)
    delegates = config.get(_DELEGATES, [])
    if isinstance(delegates, str):  # the engine passes lists as JSON
        delegates = json.loads(delegates)
    return _Identity(token, key, account or _find_variable(_ACCOUNT_VARIABLE), tuple(delegates))


def _find_variable(*names: str) -> _Setting | None:
    return next((_Setting(name, os.environ[name]) for name in names if os.environ.get(name)), None)


def _answer(error: Exception) -> tuple[int | None, str]:
    """Return the code and the reason of a service that refuses a token: `args` are a message and the answer's body.

    An answer is `{"error": {"code": 403, "message": …}}`, or one of OAuth's. What may be a token is left out of it.
    """
    code, reason = None, None
    try:
        answer = json.loads(error.args[1])
        reason = answer.get("error_description")
        code, reason = answer["error"]["code"], answer["error"]["message"]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        pass
    words = " ".join(_LONG.sub("…", str(reason or "no reason given")).split())
    return code, words[:_MAX_REASON_LENGTH]
