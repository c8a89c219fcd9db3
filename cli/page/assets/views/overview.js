// The overview: gangs by phase, what still fits, queues and nodes, as `muster status` has them.
import { ask, lines, repeat, say } from "./asking.js";
import { age, amount, counted, drawn, element, fillTable, finder, link, notes, pathOf, scrolled, section, time } from "./dom.js";
import { drawStarts } from "./starts.js";

const PAUSE = 15_000; // between readings where no stream says that there is a new one

function bar(used, reserved, whole) {
  const share = (part) => (whole ? Math.min(100, (100 * part) / whole) : 0);
  const parts = [["ground", 0, 100], ["used", 0, share(used)], ["reserved", share(used), share(reserved)]];
  return drawn("svg", {
    class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img",
    "aria-label": `${used} of ${whole} used, ${reserved} reserved`,
  }, ...parts.map(([kind, x, width]) => drawn("rect", { class: kind, x, width, height: 10 })));
}

const holdings = (found) => Object.entries(found).map(([name, held]) => `${amount(name, held)} ${name}`).join(", ");

// A RayCluster has a page; a gang whose name has a dot is that of an AppWrapper.
function named(gang) {
  const name = `${gang.namespace}/${gang.name}`;
  return gang.name.includes(".") ? name : link(`/clusters${pathOf(gang.namespace, gang.name)}`, name);
}

// When it is expected to start, why, and how long ago the forecaster said so.
function expectedStart(gang) {
  const found = gang.expectedStart;
  if (!found) return "";
  const range = found.earliest ? element("div", { class: "quiet" }, time(found.earliest), " to ", found.latest ? time(found.latest) : "not known") : "";
  return element("div", { title: found.moved || found.why }, found.at ? time(found.at) : "not known", range,
    element("div", { class: "quiet" }, `told ${age(found.told)} ago`));
}

const WAITING = [
  ["Gang", named],
  ["Queue", (gang) => gang.queue],
  ["Position", (gang) => gang.position || "", "number"],
  ["Priority", (gang) => gang.priority, "number"],
  ["Age", (gang) => age(gang.created), "number"],
  ["Expected start", expectedStart],
  ["Reason", (gang) => gang.reason],
  ["Message", (gang) => gang.message, "text"],
];

const FAILED = WAITING.filter(([title]) => title !== "Position" && title !== "Expected start");

const PLACED = [
  ["Gang", named],
  ["Queue", (gang) => gang.queue],
  ["Phase", (gang) => gang.phase],
  ["Ready", (gang) => gang.ready, "number"],
  ["Age", (gang) => age(gang.created), "number"],
  ["Holds", (gang) => holdings(gang.holds), "text"],
  ["Message", (gang) => gang.message, "text"],
];

// One line for each resource that is limited or used, the same ones in each column.
function amounts(queue, value) {
  const limited = queue.resources.filter((each) => each.used !== null);
  const shown = limited.length ? limited.map(value) : ["–"];
  return element("div", {}, ...shown.map((each) => element("div", {}, each)));
}

export function queueName(queue) {
  return element("span", {},
    queue.depth ? element("span", { class: "depth" }, "└ ".padStart(2 * queue.depth, " ")) : "",
    queue.name,
    queue.fault ? element("div", { class: "bad" }, queue.fault) : "");
}

function shares(queue) {
  const each = Object.entries(queue.shares).map(([name, share]) => element("div", {}, `${name} ${share}`));
  return element("span", {}, queue.share, ...each);
}

export const QUEUES = [
  ["Queue", queueName],
  ["Waiting", (queue) => queue.pending, "number"],
  ["Admitted", (queue) => queue.admitted, "number"],
  ["Resource", (queue) => amounts(queue, (each) => each.resource)],
  ["Used", (queue) => amounts(queue, (each) => amount(each.resource, each.used)), "number"],
  ["Quota", (queue) => amounts(queue, (each) => amount(each.resource, each.quota)), "number"],
  ["Borrowed", (queue) => amounts(queue, (each) => amount(each.resource, each.borrowed)), "number"],
  ["May take", (queue) => amounts(queue, (each) => amount(each.resource, each.mayTake)), "number"],
  ["Share over time", shares],
  ["Who has it", (queue) => queue.quotaHeld.join("; ")],
];

const POOLS = [
  ["Pool", (pool) => pool.name],
  ["Resource", (pool) => pool.resource],
  ["Nodes", (pool) => pool.nodes, "number"],
  ["In use", (pool) => bar(pool.used, pool.reserved, pool.allocatable)],
  ["Used", (pool) => counted(pool.resource, pool.used), "number"],
  ["Reserved", (pool) => counted(pool.resource, pool.reserved), "number"],
  ["Free", (pool) => counted(pool.resource, pool.free), "number"],
  ["Stranded", (pool) => pool.stranded, "number"],
  ["On nodes that take none", (pool) => counted(pool.resource, pool.unschedulable), "number"],
  ...["1", "2", "4", "8"].map((size) => [`Pods of ${size}`, (pool) => pool.holes[size] ?? "", "number"]),
];

const NODES = [
  ["Node", (node) => node.name],
  ["Pool", (node) => node.pool],
  ["Resource", (node) => node.resource],
  ["In use", (node) => bar(node.used, node.reserved, node.allocatable)],
  ["Used", (node) => counted(node.resource, node.used), "number"],
  ["Reserved", (node) => counted(node.resource, node.reserved), "number"],
  ["Free", (node) => (node.off ? "" : counted(node.resource, node.free)), "number"],
  ["", (node) => node.off],
];

const SECTIONS = [
  ["pools", "What still fits"],
  ["waiting", "Waiting gangs"],
  ["queues", "Queues"],
  ["placed", "Gangs that have their place"],
  ["failed", "Gangs that failed"],
  ["nodes", "Nodes with devices"],
];

function counts(list, found) {
  list.replaceChildren(...Object.entries(found).map(([name, count]) =>
    element("li", {}, `${name} `, element("b", {}, count))));
}

function rows(id, columns, items, count, nothing) {
  const some = items.length < count ? `the first ${items.length} of ${count}: find the others by name` : "";
  fillTable(document.getElementById(id), columns, items, count ? some : nothing);
}

function draw(found) {
  const over = found.finished ? `, ${found.finished} finished` : "";
  say(found.fault || `read ${Math.round(found.age)} s ago; ${found.gangs} ${found.gangs === 1 ? "gang" : "gangs"}${over}`, Boolean(found.fault));
  counts(document.getElementById("phases"), found.phases);
  counts(document.getElementById("reasons"), found.reasons);
  drawStarts(document.getElementById("starts"), found.waiting.items);
  rows("waiting", WAITING, found.waiting.items, found.waiting.count, "no gang waits");
  rows("placed", PLACED, found.placed.items, found.placed.count, "no gang has a place");
  rows("failed", FAILED, found.failed.items, found.failed.count, "no gang has failed");
  rows("queues", QUEUES, found.queues.items, found.queues.count, found.queuesKnown ? "no queue" : "queues may not be listed");
  const unknown = found.nodesKnown ? "no node" : "nodes or pods may not be listed";
  rows("pools", POOLS, found.pools, found.pools.length, unknown);
  rows("nodes", NODES, found.nodes.items, found.nodes.count, unknown);
  document.getElementById("unread").replaceChildren(...found.unread.map((each) => element("li", {}, each)));
  document.body.dataset.version = found.version;
}

const above = (id) => (id === "waiting" ? [element("ul", { id: "starts", "aria-label": "Expected starts" })] : []);

export function overview(main, params) {
  const [form, query] = finder(params.find ?? "", "gang, queue, reason, node", () => reading.again());
  main.append(form,
    section("h2", "Gangs", "gangs", element("ul", { id: "phases", class: "counts" }), element("ul", { id: "reasons", class: "counts" })),
    ...SECTIONS.map(([id, title]) => section("h2", title, id, ...above(id), scrolled(id))),
    Object.assign(notes([]), { id: "unread" }));
  let asked = 0;
  let followed = false;
  const leaving = new AbortController();
  const reading = repeat(async (signal) => {
    const mine = ++asked;
    const found = await ask(`report?q=${encodeURIComponent(query.value)}`, { signal });
    if (mine === asked) draw(found); // else a later question is under way
    if (found.version && !followed) follow(leaving.signal, reading.again); // 0: it is read for each person alone
    followed = true;
  }, PAUSE);
  return () => {
    leaving.abort();
    reading.leave();
    delete document.body.dataset.version;
  };
}

// Reads again when the server has.
async function follow(signal, again) {
  while (!signal.aborted) {
    try {
      for await (const _ of lines("changes", signal)) await again();
    } catch (error) {
      if (error.status === 401) return;
      if (!signal.aborted) say(error.message, true);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
