"""One whole control plane on loopback, and what can be done with it.

`Cluster.start(directory, options)` returns when the API server, the scheduler, the controller
manager, kwok and KubeRay answer and pods can be created. Several clusters may live at once. What
this process starts ends with it, also when it is killed, unless `release` says otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from testbed import components, nodes
from testbed.api import Api, Connections, Json
from testbed.audit import Auditor
from testbed.build import Artifacts, Say, build
from testbed.components import Ports, Site
from testbed.crds import Served, create_crds, wait_until_served
from testbed.credentials import MASTERS, Identity, write_kubeconfig, write_token_file
from testbed.errors import TestbedError
from testbed.health import endpoint, is_healthy
from testbed.nodes import NodeSpec
from testbed.options import Options, SchedulerConfig, scheduler_configuration
from testbed.ports import PortAllocator
from testbed.processes import Process, Watchdog
from testbed.recipes import recipes_for
from testbed.seed import Seed, ensure_seed, renew_identity
from testbed.waiting import wait_until

ADMIN = "admin"
_KUBERAY_ROLE = "kuberay-operator"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Cluster:
    """A running control plane with its directory, ports, users and processes."""

    started: ClassVar[list[Cluster]] = []
    """All that this process has started, for reports of failures."""

    auditor: ClassVar[Auditor | None] = None
    """What counts the rights that are used on all clusters of this process; in tests alone."""

    def __init__(
        self, directory: Path, options: Options, programs: Artifacts, seed: Seed | None
    ) -> None:
        self.directory = directory
        self.options = options
        self.ports = PortAllocator()
        self.processes: dict[str, Process] = {}
        ports = Ports(*(self.ports.allocate() for _ in Ports.__dataclass_fields__))
        self.site = Site(directory, ports, programs)
        self._identities = {identity.name: identity for identity in _identities(options)}
        self._seed = seed
        self._guard = Watchdog()
        self._connections = Connections(ports.apiserver, self.site.pki.ca)

    @classmethod
    def start(cls, root_dir: Path, options: Options | None = None) -> Cluster:
        """Start a cluster in a new or empty directory and return it when it is ready."""
        chosen = options or Options()
        programs, seed = prepare(lambda line: print(line, file=sys.stderr, flush=True), chosen)
        cluster = cls(root_dir.resolve(), chosen, programs, seed)
        cls.started.append(cluster)
        try:
            cluster._bring_up()
        except BaseException as error:
            error.add_note(f"The logs are in {cluster.logs}")
            cluster.stop()
            raise
        return cluster

    # What a user of the cluster needs to know

    @property
    def server(self) -> str:
        """The API server's address."""
        return self.site.server

    @property
    def ca_file(self) -> Path:
        """The certificate authority behind the API server's certificate."""
        return self.site.pki.ca

    @property
    def token(self) -> str:
        """A bearer token that may do everything."""
        return self._identities[ADMIN].token

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that may do everything."""
        return self.site.kubeconfig(ADMIN)

    @property
    def logs(self) -> Path:
        """The folder with one log file for each program."""
        return self.site.logs

    @property
    def samples(self) -> Path:
        """KubeRay's own example manifests."""
        return self.site.programs.samples

    @property
    def api(self) -> Api:
        """The API server as the administrator sees it."""
        return Api(self.site.ports.apiserver, self.token, self.ca_file, self._connections)

    def user_api(self, name: str) -> Api:
        """Return the API server as one of `options.users` sees it."""
        self.user_kubeconfig(name)  # there is such a user
        return replace(self.api, token=self._identities[name].token)

    @property
    def running(self) -> bool:
        """Tell whether any of its programs runs."""
        return any(process.running for process in self.processes.values())

    def user_kubeconfig(self, name: str) -> Path:
        """Return the kubeconfig of one of `options.users`, which begin without rights."""
        if name not in self.options.users:
            known = ", ".join(self.options.users)
            raise TestbedError(f"no user {name!r} in this cluster's options, only: {known}")
        return self.site.kubeconfig(name)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Return a kubeconfig with a fresh token of a service account that exists."""
        token = self.kubectl("create", "token", name, "-n", namespace, "--duration=24h").strip()
        path = self.site.kubeconfig(f"{namespace}.{name}")
        return write_kubeconfig(path, self.server, self.ca_file, token)

    # What can be done with it

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002 - as subprocess
        """Run kubectl as the administrator and return what it prints."""
        command = [str(self.site.programs.program("kubectl")), *args]
        cache = self.directory / "kubectl"
        fixed = {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(cache)}
        done = subprocess.run(
            command,
            input=input,
            env={**os.environ, **fixed},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise TestbedError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def add_nodes(self, specs: Sequence[NodeSpec]) -> None:
        """Create nodes, fast, and wait until all of them can be scheduled to."""
        nodes.add_nodes(self.api, specs)

    def create_crds(self, *files: Path) -> None:
        """Create CRDs, one to a file, and wait until they are served."""
        create_crds(self.api, files)

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace and wait until pods can be created in it."""
        metadata = {"name": name, "labels": dict(labels or {})}
        self.api.create("/api/v1/namespaces", {"metadata": metadata})
        self._wait_for_service_account(name)

    def create_priority_class(self, metadata: Json, value: int, **fields: object) -> None:
        """Create a PriorityClass and wait until pods of it are admitted.

        Admission hears of it by a watch, and refuses pods with a name that it does not know.
        """
        self.api.create(_PRIORITY_CLASSES, {"metadata": metadata, "value": value, **fields})
        container = {"name": "main", "image": "none"}
        spec = {"priorityClassName": metadata["name"], "containers": [container]}
        pod = {"metadata": {"name": "asked"}, "spec": spec}
        wait_until(
            lambda: self.api.would_create("/api/v1/namespaces/default/pods", pod),
            f"pods of priority class {metadata['name']} to be admitted",
        )

    def spawn(self, name: str, argv: list[str], env: Mapping[str, str] | None = None) -> Process:
        """Start a program in its own session, logging to `.logs/<name>.log`.

        `env` is added to this process's own environment. The program ends with the cluster.
        """
        if name in self.processes and self.processes[name].running:
            raise TestbedError(f"a process {name!r} is running already")
        environment = {**os.environ, **(env or {})}
        log = self.logs / f"{name}.log"
        process = Process(name, argv, environment, log, self._guard)
        self.processes[name] = process
        return process

    def process(self, name: str) -> Process:
        """Return one of the programs by name: `kube-apiserver`, or as it was spawned."""
        if name not in self.processes:
            known = ", ".join(self.processes)
            raise TestbedError(f"no process {name!r}, only: {known}")
        return self.processes[name]

    def start_scheduler(
        self,
        config: SchedulerConfig | Path | None = None,
        *,
        kubeconfig: Path | None = None,
        program: Path | None = None,
    ) -> None:
        """Start kube-scheduler, for clusters whose options leave it out or after stopping it.

        `kubeconfig` gives it the rights of another user, `program` is one of another version.
        """
        own = kubeconfig or self.site.kubeconfig(components.SCHEDULER)
        complete = scheduler_configuration(config, own)
        stock, *arguments = components.scheduler(self.site, self.options, complete)
        self.spawn(components.SCHEDULER, [str(program or stock), *arguments])
        self.wait_healthy(components.SCHEDULER)

    def wait_healthy(self, *names: str) -> None:
        """Wait until programs of the control plane answer, for example after a restart."""
        what = f"{', '.join(names)} to be healthy"
        wait_until(lambda: all(self._is_healthy(name) for name in names), what)

    def stop(self) -> None:
        """End every process; the files stay. Nothing is saved, so nothing is asked politely."""
        for process in self.processes.values():
            process.kill()
        self._connections.close()
        self._guard.close()
        self.ports.close()
        if self.auditor:
            expected = self.options.refusals_expected
            self.auditor.take_in(self.directory, refusals_expected=expected)

    def release(self) -> None:
        """Let every process outlive this one; another one must end them."""
        self._connections.close()
        self._guard.release()
        self._guard.close()
        self.ports.close()

    def remove_data(self) -> None:
        """Delete the cluster's files but for the logs."""
        for path in self.directory.iterdir():
            if path == self.logs:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    # How it comes up

    def _bring_up(self) -> None:
        self.start_api_server()
        self._start_clients()
        self.wait_healthy(*self.processes)
        self._wait_for_service_account("default")

    def start_api_server(self) -> None:
        """Start etcd and the API server, and nothing that uses them."""
        self.logs.mkdir(parents=True)
        if self._seed:
            self._seed.plant(self.site.etcd_data)
        self.spawn(components.ETCD, components.etcd(self.site))
        self._write_credentials()
        self.wait_healthy(components.ETCD)
        if self._seed:
            renew_identity(self.site.ports.etcd)
        audit = self.auditor.flags(self.directory) if self.auditor else ()
        self.spawn(components.API_SERVER, [*components.apiserver(self.site, self.options), *audit])
        self.wait_healthy(components.API_SERVER)

    def _write_credentials(self) -> None:
        self.site.pki.write()
        write_token_file(self.site.tokens, self._identities.values())
        for name, identity in self._identities.items():
            path = self.site.kubeconfig(name)
            write_kubeconfig(path, self.server, self.ca_file, identity.token)

    def _start_clients(self) -> None:
        """Start what needs the API server; CRDs first, since programs look for new kinds rarely."""
        site, options = self.site, self.options
        if options.scheduler:
            own = site.kubeconfig(components.SCHEDULER)
            complete = scheduler_configuration(options.scheduler_config, own)
            self.spawn(components.SCHEDULER, components.scheduler(site, options, complete))
        if options.kwok:
            self.spawn(components.KWOK, components.kwok(site, options))
        wait_until_served(self.api, self._seed.served if self._seed else ())
        self.create_crds(*options.crds)
        self.spawn(components.CONTROLLER_MANAGER, components.controller_manager(site, options))
        if options.kuberay:
            self._start_kuberay()

    def _start_kuberay(self) -> None:
        """Run the operator with the rights that KubeRay ships for it, and no others."""
        role = self.site.programs.kuberay_role.read_bytes()
        self.api.apply(f"{_RBAC}/clusterroles/{_KUBERAY_ROLE}", role)
        user = {"kind": "User", "name": self._identities[components.KUBERAY].user}
        self.api.create(
            f"{_RBAC}/clusterrolebindings",
            {
                "metadata": {"name": _KUBERAY_ROLE},
                "subjects": [{**user, "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {
                    "kind": "ClusterRole",
                    "name": _KUBERAY_ROLE,
                    "apiGroup": "rbac.authorization.k8s.io",
                },
            },
        )
        connection = {"KUBECONFIG": str(self.site.kubeconfig(components.KUBERAY))}
        argv = components.kuberay(self.site, self.options)
        self.spawn(components.KUBERAY, argv, {**self.options.kuberay_env, **connection})

    def _is_healthy(self, name: str) -> bool:
        self.process(name).expect_running()
        asked = endpoint(name, self.site.ports)
        if asked is None:
            raise TestbedError(f"{name!r} is no program of the control plane")
        return is_healthy(asked, self.ca_file)

    def _wait_for_service_account(self, namespace: str) -> None:
        """Admission refuses pods until the controller manager has made this account."""
        if components.CONTROLLER_MANAGER in self.processes:
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
            what = f"the service account of namespace {namespace}"
            wait_until(lambda: self.api.exists(path), what)


def prepare(say: Say, options: Options | None = None) -> tuple[Artifacts, Seed | None]:
    """Make whatever clusters of these versions need beforehand and is not there yet.

    The seed is for clusters with KubeRay.
    """
    chosen = options or Options()
    programs = build(recipes_for(chosen.kubernetes, chosen.kuberay_version), say)
    return programs, ensure_seed(programs, _grow_seed, say) if chosen.kuberay else None


def _grow_seed(programs: Artifacts, target: Path) -> list[Served]:
    """Let an API server fill an empty etcd and take in KubeRay's CRDs; keep what etcd has then."""
    bare = Options(kuberay=False, kwok=False, scheduler=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(Path(folder) / "root", bare, programs, None) as cluster,
    ):
        cluster.start_api_server()
        served = create_crds(cluster.api, sorted(programs.crds.glob("*.yaml")))
        for name in (components.API_SERVER, components.ETCD):
            cluster.process(name).stop()
        # etcd keeps an empty log file at hand, as large as the one in use.
        shutil.copytree(cluster.site.etcd_data, target, ignore=shutil.ignore_patterns("*.tmp"))
    return served


def _identities(options: Options) -> list[Identity]:
    """List the holders of tokens: scheduler and KubeRay as in a real cluster, the rest as masters.

    The controller manager's rights are spread over a service account for each controller there;
    one identity with all of them spares the testbed these tokens.
    """
    masters = (MASTERS,)
    return [
        Identity(ADMIN, "testbed-admin", masters),
        Identity(components.CONTROLLER_MANAGER, f"system:{components.CONTROLLER_MANAGER}", masters),
        Identity(components.SCHEDULER, f"system:{components.SCHEDULER}"),
        Identity(components.KWOK, "testbed-kwok", masters),
        Identity(
            components.KUBERAY,
            f"system:serviceaccount:ray-system:{_KUBERAY_ROLE}",
            ("system:serviceaccounts", "system:serviceaccounts:ray-system"),
        ),
        *(Identity(name, name, groups) for name, groups in options.users.items()),
    ]
