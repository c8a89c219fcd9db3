"""Builds the credentials for a member from its kubeconfig, without files on a disk."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from dispatcher.shell.kubeconfig import RefusedKubeconfig, Target
from kube.api.credentials import ClusterAccess, Login, TlsFiles


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What a Secret said: where that changes, another connection is made."""

    login: Login
    called: str = "a Secret"

    def due(self) -> Login:
        return self.login

    def anew(self) -> Login:
        return self.login


@contextlib.contextmanager
def access_of(target: Target) -> Iterator[ClusterAccess]:
    """Give access to a member; RefusedKubeconfig where its certificates cannot be used."""
    with contextlib.ExitStack() as stack:
        tls = TlsFiles(
            ca=stack.enter_context(_held("ca", target.authority)),
            certificate=stack.enter_context(_held("certificate", target.certificate)),
            key=stack.enter_context(_held("key", target.key)),
        )
        login = Login(
            server=target.server,
            authorization=f"Bearer {target.token}" if target.token else None,
            tls=tls,
            server_name=target.server_name,
            proxy=target.proxy,
        )
        try:
            access = ClusterAccess(_Fixed(login), login)
        except (OSError, ValueError) as error:  # ssl.SSLError is one
            raise RefusedKubeconfig(str(error)) from error
        yield access


@contextlib.contextmanager
def _held(name: str, content: bytes) -> Iterator[str | None]:
    """Give a path to some bytes in memory: OpenSSL reads certificates and keys from files alone."""
    if not content:
        yield None
        return
    file = os.memfd_create(name)
    try:
        os.write(file, content)
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)
