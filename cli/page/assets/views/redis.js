// The built-in Redis: its servers, and the Ray clusters that keep most in it.
import { ask, repeat, say } from "./asking.js";
import { counted, fillTable, link, pathOf, scrolled, section } from "./dom.js";

const PAUSE = 15_000;
const size = (bytes) => counted("memory", bytes);

const SERVERS = [
  ["Server", (server) => server.name],
  ["Role", (server) => (server.answers ? server.role : "no answer")],
  ["Memory", (server) => (server.answers ? size(server.memory) : ""), "number"],
  ["Limit", (server) => (server.maxMemory ? size(server.maxMemory) : ""), "number"],
  ["Behind", (server) => (server.lag === null ? "" : size(server.lag)), "number"],
];
const CLUSTERS = [
  ["Ray cluster", (cluster) => link(`/clusters${pathOf(cluster.namespace, cluster.name)}`, `${cluster.namespace}/${cluster.name}`)],
  ["Memory", (cluster) => size(cluster.bytes), "number"],
];

export function redis(main) {
  const [servers, clusters] = ["redis", "states"].map(scrolled);
  main.append(section("h2", "Built-in Redis", "redis", servers), section("h2", "What Ray clusters keep in it", "states", clusters));
  const reading = repeat(async (signal) => {
    const found = await ask("api/redis", { signal });
    const role = (server) => (server.name === found.primary ? "primary" : "replica");
    fillTable(servers.firstChild, SERVERS, found.servers.map((each) => ({ ...each, role: role(each) })), found.primary ? "" : "no primary");
    fillTable(clusters.firstChild, CLUSTERS, found.clusters, found.clusters.length ? "" : "no Ray cluster keeps its state in it");
    say(`as of ${found.at}`);
  }, PAUSE);
  return reading.leave;
}
