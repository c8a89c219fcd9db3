// Shows the view that the fragment of the address names; each is (main, params) => cleanup.
import { FORMS } from "./forms/routes.js";
import { session } from "./session.js";
import { say } from "./views/asking.js";
import { cluster } from "./views/cluster.js";
import { clusters } from "./views/clusters.js";
import { jobs } from "./views/jobs.js";
import { clusterLogs, jobLog } from "./views/logs.js";
import { nodes } from "./views/nodes.js";
import { overview } from "./views/overview.js";
import { queues } from "./views/queues.js";
import { redis } from "./views/redis.js";

// Parts that begin with a colon are names.
const ROUTES = [
  ["/", "Overview", overview],
  ["/clusters", "Ray clusters", clusters],
  ["/clusters/:namespace/:name", "Ray cluster", cluster],
  ["/clusters/:namespace/:name/logs", "Logs", clusterLogs],
  ["/jobs", "Jobs", jobs],
  ["/jobs/:namespace/:name/log", "Log of a job", jobLog],
  ["/nodes", "Nodes", nodes],
  ["/queues", "Queues", queues],
  ["/redis", "Built-in Redis", redis],
  ...FORMS,
];

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function matched(pattern, path) {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  if (wanted.length !== given.length) return null;
  const params = {};
  for (const [at, each] of wanted.entries()) {
    if (each.startsWith(":") && given[at]) params[each.slice(1)] = decoded(given[at]);
    else if (each !== given[at]) return null;
  }
  return params;
}

function where() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return [path || "/", Object.fromEntries(new URLSearchParams(query))];
}

let leave;
let shown;

function show() {
  const [path, query] = where();
  const found = ROUTES.map(([pattern, title, view]) => [matched(pattern, path), title, view]).find(([params]) => params);
  if (!found) return location.replace("#/");
  const [params, title, view] = found;
  leave?.();
  const main = document.querySelector("main");
  main.replaceChildren();
  say("");
  main.dataset.path = path;
  document.title = [params.name, title, "Muster"].filter(Boolean).join(" · ");
  for (const each of document.querySelectorAll("nav a")) {
    const own = each.getAttribute("href").slice(1);
    if (own === path || (own !== "/" && path.startsWith(`${own}/`))) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  leave = view(main, { ...query, ...params });
  if (shown !== undefined) main.focus({ preventScroll: true });
  if (shown !== path) scrollTo(0, 0);
  shown = path;
}

addEventListener("hashchange", show);
document.getElementById("skip").addEventListener("click", () => document.querySelector("main").focus());
show();

// Who acts here, as the API server says it: without an answer the views say why.
session().then(({ user }) => { document.getElementById("who").textContent = user; }, () => {});
