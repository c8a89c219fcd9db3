"""Finds the API server and the credentials to use with it.

The `kubernetes` package reads kubeconfig and in-cluster files and runs exec plugins, as kubectl
users expect; it costs most of a second to import, so only the functions here import it, in a
thread. What it doesn't do is ours: renewal on time without blocking the loop, one renewal for all
calls that wait, and TLS files that change under a running program.

Invariant: a renewal that fails never takes away credentials that may still work.
"""

# Importing `kubernetes` late is what keeps a start fast (see above).
# ruff: noqa: PLC0415

import asyncio
import contextlib
import logging
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import structlog

from kube.api.errors import NoAccess
from kube.api.kubeconfig_entries import (
    SERVICE_ACCOUNT,
    Headers,
    acts_as,
    check_shape,
    chosen_context,
    chosen_user,
    kubeconfig_paths,
)

log = structlog.get_logger(__name__)

RENEW_AFTER = 60.0
"""Seconds between looks at the credentials: client-go reads a service account's token once a
minute too, and the package renews what an exec plugin gave five minutes before it expires."""

PATIENCE = 2.0
"""Seconds that a call waits for a renewal that is merely due; a plugin that hangs must not stop
calls whose credentials still work."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """What a TLS context is made of."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Login:
    """One reading of the configuration."""

    server: str
    authorization: str | None = None
    tls: TlsFiles = TlsFiles()
    server_name: str | None = None
    proxy: str | None = None
    acts_as: Headers = ()


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one request carries; a new object whenever anything in it changed."""

    authorization: str | None = None
    ssl_context: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    acts_as: Headers = ()
    """The headers of an impersonation."""

    @property
    def headers(self) -> Headers:
        """Return what a request says of who asks."""
        authorization = (("Authorization", self.authorization),) if self.authorization else ()
        return (*authorization, *self.acts_as)


class LoginSource(Protocol):
    """Where logins come from; both methods block, so they are called in a thread."""

    @property
    def called(self) -> str:
        """How to name it to the operator."""

    def due(self) -> Login:
        """Read again what may have expired by now."""

    def anew(self) -> Login:
        """Read everything again: what we have was refused."""


class ClusterAccess:
    """The server's address, and credentials that renew themselves."""

    def __init__(
        self,
        source: LoginSource,
        login: Login,
        *,
        renew_after: float = RENEW_AFTER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server = login.server.rstrip("/")
        self._source = source
        self._renew_after = renew_after
        self._clock = clock
        self._read_at = clock()
        self._fingerprint = _fingerprint(login)
        self._credentials = _credentials(login)
        self._renewal: asyncio.Task[None] | None = None

    async def current(self) -> Credentials:
        """Return what to send now; starts the renewal when it is due."""
        if self._clock() - self._read_at >= self._renew_after:
            renewal = self._renew(self._source.due)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(renewal), PATIENCE)
        return self._credentials

    async def after_refusal(self, refused: Credentials) -> Credentials:
        """Return credentials younger than `refused` where they can be had, else the same."""
        if self._credentials is refused:
            await asyncio.shield(self._renew(self._source.anew))
        return self._credentials

    async def close(self) -> None:
        """Wait for a renewal that is under way no longer."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    def _renew(self, read: Callable[[], Login]) -> asyncio.Task[None]:
        # One at a time: a hundred calls refused at once must not start a hundred plugins.
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._replace(read))
        return self._renewal

    async def _replace(self, read: Callable[[], Login]) -> None:
        try:
            found = await asyncio.to_thread(self._changed, read)
        except (NoAccess, OSError, ValueError) as error:
            log.warning("credentials not renewed", error=str(error))
        else:
            if found is not None:
                self._fingerprint, self._credentials = found
        self._read_at = self._clock()

    def _changed(self, read: Callable[[], Login]) -> tuple[object, Credentials] | None:
        login = read()
        fingerprint = _fingerprint(login)
        if fingerprint == self._fingerprint or _says_less(login, self._credentials):
            return None
        return fingerprint, _credentials(login)


def _says_less(login: Login, held: Credentials) -> bool:
    # The package logs a failing exec plugin and goes on without a token: keep the one we have.
    nothing = login.authorization is None and login.tls.certificate is None
    return nothing and held.authorization is not None


def _fingerprint(login: Login) -> object:
    files = (login.tls.ca, login.tls.certificate, login.tls.key)
    return login, tuple(Path(file).read_bytes() if file else b"" for file in files)


def _credentials(login: Login) -> Credentials:
    """Make of a login what requests carry; ValueError where none could."""
    _expect_an_address(login.server)
    if not (login.authorization or "").isprintable():
        raise ValueError("the token, or the password, has a character that a header cannot have")
    context = _tls_context(login.tls) if login.server.startswith("https") else None
    return Credentials(login.authorization, context, login.server_name, login.proxy, login.acts_as)


def _expect_an_address(server: str) -> None:
    try:
        parts = urlsplit(server)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none, a bracket that does not end
        is_one = False
    if not is_one or not server.isprintable():
        raise ValueError(f"server: {server!r} is no address, such as https://host:6443")


def _tls_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=files.ca)
    # Python 3.13 asks for extensions that the CAs of many clusters lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not files.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files.certificate:
        context.load_cert_chain(files.certificate, files.key)
    return context


@dataclass(frozen=True, slots=True)
class _Fixed:
    login: Login
    called: str = "an address"

    def due(self) -> Login:
        return self.login

    def anew(self) -> Login:
        return self.login


class _InCluster:
    """The service account's files; kubelet replaces the token long before it expires."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self._directory = directory
        self._environ = environ
        self.called = f"service account {directory}"

    def anew(self) -> Login:
        from kubernetes.client import Configuration
        from kubernetes.config.incluster_config import InClusterConfigLoader

        loader = InClusterConfigLoader(
            token_filename=str(self._directory / "token"),
            cert_filename=str(self._directory / "ca.crt"),
            environ=self._environ,
        )
        return _loaded(loader.load_and_set, Configuration(), self.called)

    due = anew


class _Kubeconfig:
    """A kubeconfig's context: token, token file, client certificate, password or plugin."""

    def __init__(self, path: str, context: str | None, origin: str) -> None:
        self.called = f"kubeconfig {path} ({origin})"
        self._path = path
        self._context = context
        self._configuration: Any = None
        self._acts_as: Headers = ()

    def due(self) -> Login:
        if self._configuration is None:
            return self.anew()
        # The hook runs the exec plugin only when what it gave is about to expire.
        hook = self._configuration.refresh_api_key_hook
        login = _loaded(hook or (lambda _: None), self._configuration, self.called)
        return replace(login, acts_as=self._acts_as)

    def anew(self) -> Login:
        from kubernetes.client import Configuration
        from kubernetes.config import load_kube_config

        def load(configuration: Any) -> None:
            _require_one_of(self._path)
            check_shape(self._path)
            context = chosen_context(self._path, self._context)
            user = chosen_user(self._path, context)
            self._acts_as = acts_as(user)
            load_kube_config(self._path, context, configuration)
            _require_a_login(user, configuration)

        fresh = Configuration()
        login = _loaded(load, fresh, self.called)
        self._configuration = fresh
        return replace(login, acts_as=self._acts_as)


def _require_a_login(user: Mapping[str, Any], configuration: Any) -> None:
    """Say that a plugin or provider gave nothing: the package would go on without any."""
    asked = [each for each in ("exec", "auth-provider") if user.get(each)]
    if asked and not configuration.api_key.get("BearerToken") and not configuration.cert_file:
        raise ValueError(f"{asked[0]} gave no credentials")


def _require_one_of(path: str) -> None:
    """Say that there is no file: the package would speak of an invalid one, without its name."""
    if not any(Path(each).exists() for each in path.split(os.pathsep) if each):
        raise FileNotFoundError("no such file")


def _loaded(load: Callable[[Any], None], configuration: Any, called: str) -> Login:
    said = _Said()
    logging.getLogger().addHandler(said)
    try:
        load(configuration)
    except Exception as error:
        # An error of YAML has many lines, and some have no text at all.
        text = " ".join(str(error).split()) or type(error).__name__
        raise NoAccess(": ".join((called, text, *said.lines))) from error
    finally:
        logging.getLogger().removeHandler(said)
    return _login_in(configuration, called)


class _Said(logging.Handler):
    """Keeps what the package logs where it should raise: a plugin that fails."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(" ".join(record.getMessage().split()))


def _login_in(configuration: Any, called: str) -> Login:
    proxy = configuration.proxy or None
    if proxy is not None and not str(proxy).startswith(("http://", "https://")):
        raise NoAccess(f"{called}: proxy {proxy!r}: only http:// and https:// are supported")
    return Login(
        server=configuration.host,
        # A token file ends in a newline more often than not; a header must not.
        authorization=(configuration.api_key.get("BearerToken") or "").strip() or None,
        tls=TlsFiles(
            ca=configuration.ssl_ca_cert or None,
            certificate=configuration.cert_file or None,
            key=configuration.key_file or None,
            verify=bool(configuration.verify_ssl),
        ),
        server_name=configuration.tls_server_name or None,
        proxy=proxy,
    )


def open_access(server: str) -> ClusterAccess:
    """Return access to a server that asks for no credentials (a test, a local proxy)."""
    login = Login(server=server)
    return ClusterAccess(_Fixed(login), login)


def token_access(server: str, ca: str | None, token: str) -> ClusterAccess:
    """Return access with one token, and nothing else that could say who asks.

    Raises ValueError for an address or a token that is none, OSError for a file that is none.
    """
    login = Login(server=server, authorization=f"Bearer {token}", tls=TlsFiles(ca=ca))
    return ClusterAccess(_Fixed(login), login)


async def load_access(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    setting: str = "the path given",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    renew_after: float = RENEW_AFTER,
) -> ClusterAccess:
    """Find the cluster: the path given, else $KUBECONFIG, else in-cluster, else ~/.kube/config.

    Raises NoAccess when what was found can't be used; nothing else is tried then. `setting` is
    where the path given comes from: the message names it beside the path.
    """
    source: LoginSource = _InCluster(service_account, environ)
    for path, origin in kubeconfig_paths(kubeconfig, setting, environ):
        if path:
            source = _Kubeconfig(path, context, origin)
            break

    def load() -> ClusterAccess:
        return ClusterAccess(source, source.anew(), renew_after=renew_after)

    try:
        return await asyncio.to_thread(load)
    except (OSError, ValueError) as error:
        raise NoAccess(f"{source.called}: {error}") from error
