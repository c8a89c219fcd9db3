"""Selects entries and impersonation from one or several kubeconfigs, as kubectl does.

The `kubernetes` package reads the same files, but takes the current context of the last of them
where kubectl takes that of the first, and passes over `as`: a command would go to another cluster,
or run with more rights than it was given.
"""

import os
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Headers = tuple[tuple[str, str], ...]
"""Names and values; a name may come several times."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

AS, UID, GROUPS, EXTRA = "as", "as-uid", "as-groups", "as-user-extra"
IMPERSONATION = {AS, UID, GROUPS, EXTRA}
"""What a user of a kubeconfig says of impersonation."""

_TOKEN = {*string.ascii_letters, *string.digits, *"!#$&'*+-.^_`|~"}
"""What the name of a header may have, without the mark of an escape."""


def check_shape(path: str) -> None:
    """Raise ValueError where a file is no kubeconfig: the package takes its parts as they come."""
    for file, whole in _read(path):
        if not isinstance(whole, dict | None):
            raise ValueError(f"{file}: {_kind(whole)}; allowed: a kubeconfig")
        for part, key in (("clusters", "cluster"), ("contexts", "context"), ("users", "user")):
            _check_entries(f"{file}: {part}", (whole or {}).get(part) or [], key)


def _check_entries(where: str, entries: Any, key: str) -> None:
    if not isinstance(entries, list):
        raise ValueError(f"{where}: {_kind(entries)}; allowed: a list")
    for at, each in enumerate(entries):
        if not isinstance(each, dict):
            raise ValueError(f"{where}[{at}]: {_kind(each)}; allowed: an object")
        if not isinstance(each.get(key), dict | None):
            raise ValueError(f"{where}[{at}].{key}: {_kind(each[key])}; allowed: an object")


def _kind(found: Any) -> str:
    return "text" if isinstance(found, str) else f"a {type(found).__name__}"


def chosen_context(path: str, context: str | None) -> str | None:
    """Name the context: the one asked for, else the current one of the first file that says one.

    Empty, as `kubectl config unset` leaves it, says none.
    """
    said = (whole.get("current-context") for whole in _files(path))
    return context or next((each for each in said if isinstance(each, str) and each), None)


def chosen_user(path: str, context: str | None) -> Mapping[str, Any]:
    """Return what is said of the user of a context; empty where nothing is."""
    files = list(_files(path))
    chosen = _first(files, "contexts", chosen_context(path, context), "context")
    return _first(files, "users", chosen.get("user"), "user")


def acts_as(user: Mapping[str, Any]) -> Headers:
    """Return the headers of the impersonation that a user asks for; ValueError for odd ones."""
    name = _text(AS, user.get(AS) or "")
    uid = _text(UID, user.get(UID) or "")
    groups = [_text(GROUPS, each) for each in _list(GROUPS, user.get(GROUPS))]
    extra = dict(_extra(user.get(EXTRA)))
    if not name and (uid or groups or extra):
        raise ValueError(f"{UID}, {GROUPS} and {EXTRA} need {AS}, the name of a user")
    found = [("Impersonate-User", name)] if name else []
    found += [("Impersonate-Uid", uid)] if uid else []
    found += [("Impersonate-Group", each) for each in groups]
    found += [(f"Impersonate-Extra-{_escaped(key)}", each) for key in extra for each in extra[key]]
    return tuple(found)


def _extra(found: Any) -> Iterator[tuple[str, list[str]]]:
    if not isinstance(found or {}, dict):
        raise ValueError(f"{EXTRA}: {found!r} is no mapping of names to lists of text")
    for key, values in (found or {}).items():
        named = f"{EXTRA}.{key}"
        yield _text(EXTRA, key), [_text(named, each) for each in _list(named, values)]


def _list(key: str, found: Any) -> list[Any]:
    if not isinstance(found or [], list):
        raise ValueError(f"{key}: {found!r} is no list of text")
    return found or []


def _text(key: str, found: Any) -> str:
    if not isinstance(found, str) or not (found.isprintable()):
        raise ValueError(f"{key}: {found!r} is no text that a header can have")
    return found


def _escaped(key: str) -> str:
    """Return a key as the name of a header has it: what it cannot have as %XX."""
    return "".join(
        chr(each) if chr(each) in _TOKEN else f"%{each:02X}" for each in key.encode("utf-8")
    )


def _first(files: list[Mapping[str, Any]], part: str, name: Any, key: str) -> Mapping[str, Any]:
    """Return the first entry of a name, whichever file it is in."""
    for whole in files:
        for each in whole.get(part) or ():
            if isinstance(each, dict) and each.get("name") == name:
                found = each.get(key)
                return found if isinstance(found, dict) else {}
    return {}


def _files(path: str) -> Iterator[Mapping[str, Any]]:
    """Read the files that are there, in their order."""
    for _, found in _read(path):
        yield found if isinstance(found, dict) else {}


def _read(path: str) -> Iterator[tuple[str, Any]]:
    for each in filter(None, path.split(os.pathsep)):
        file = Path(each).expanduser()
        if file.exists():
            yield each, yaml.safe_load(file.read_text(encoding="utf-8"))


def context_namespace(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> str:
    """Name the namespace of the context that `load_access` finds, or of the service account.

    Reads files, and is called once `load_access` has read them without a fault.
    """
    path = next((each for each, _ in kubeconfig_paths(kubeconfig, "", environ) if each), None)
    if path is None:
        found = service_account / "namespace"
        return found.read_text(encoding="utf-8").strip() if found.exists() else "default"
    from kubernetes.config import list_kube_config_contexts  # noqa: PLC0415 - half a second

    contexts, _ = list_kube_config_contexts(path)
    chosen = chosen_context(path, context)
    named = [each for each in contexts if each["name"] == chosen] or [{}]
    return str((named[0].get("context") or {}).get("namespace") or "default")


def kubeconfig_paths(
    kubeconfig: str | None, setting: str, environ: Mapping[str, str]
) -> Iterator[tuple[str | None, str]]:
    """Yield paths of kubeconfigs, with the setting that names each; the first one counts."""
    yield kubeconfig, setting
    yield environ.get("KUBECONFIG"), "environment variable KUBECONFIG"
    if not environ.get("KUBERNETES_SERVICE_HOST"):
        yield str(Path("~/.kube/config").expanduser()), "the default"
