// Draws the report. All texts are set as texts: messages repeat what tenants write.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (kind) made.className = kind;
  return made;
}

function bar(used, reserved, whole) {
  const made = document.createElementNS(SVG, "svg");
  made.setAttribute("class", "bar");
  made.setAttribute("viewBox", "0 0 100 10");
  made.setAttribute("preserveAspectRatio", "none");
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", `${used} of ${whole} used, ${reserved} reserved`);
  const share = (amount) => (whole ? Math.min(100, (100 * amount) / whole) : 0);
  const parts = [["ground", 0, 100], ["used", 0, share(used)], ["reserved", share(used), share(reserved)]];
  for (const [kind, from, width] of parts) {
    const part = document.createElementNS(SVG, "rect");
    part.setAttribute("class", kind);
    part.setAttribute("x", from);
    part.setAttribute("width", width);
    part.setAttribute("height", 10);
    made.append(part);
  }
  return made;
}

// A column is [title, value of a row, kind]; a value may be an element.
function table(id, columns, rows, count, nothing) {
  const head = element("thead");
  const titles = element("tr");
  for (const [title, , kind] of columns) {
    const cell = element("th", title, kind === "number" ? "number" : "");
    cell.scope = "col";
    titles.append(cell);
  }
  head.append(titles);
  const body = element("tbody");
  for (const row of rows) body.append(line(columns, row));
  const parts = [head, body];
  if (!count) parts.unshift(element("caption", nothing));
  else if (rows.length < count) parts.unshift(element("caption", `the first ${rows.length} of ${count}: find the others by name`));
  $(id).replaceChildren(...parts);
}

function line(columns, row) {
  const made = element("tr");
  columns.forEach(([, value, kind], at) => {
    const cell = element(at ? "td" : "th", undefined, kind);
    if (!at) cell.scope = "row";
    const content = value(row);
    cell.append(content instanceof Node ? content : String(content ?? ""));
    made.append(cell);
  });
  return made;
}

function counts(id, found) {
  const items = Object.entries(found).map(([name, count]) => {
    const item = element("li", `${name} `);
    item.append(element("b", count));
    return item;
  });
  $(id).replaceChildren(...items);
}

function age(created) {
  const seconds = Math.max(0, (Date.now() - Date.parse(created)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 120) return `${Math.floor(seconds)}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86400)}d`;
}

const UNITS = [["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];
const inBytes = (resource) => /^(memory|ephemeral-storage|hugepages-.*)$/.test(resource);

// Writes a quantity in usual units, as the commands do: 997000m is 997.
function amount(resource, text) {
  const [, digits, milli] = /^(\d+)(m?)$/.exec(text) ?? [];
  if (digits === undefined) return text ?? "–";
  const number = Number(digits);
  if (milli) return number % 1000 ? text : String(number / 1000);
  const [unit, size] = UNITS.find(([, least]) => inBytes(resource) && number >= least) ?? ["", 1];
  return `${Math.ceil((10 * number) / size) / 10}${unit}`;
}

// Nodes count CPU in thousandths; the rest is as a quantity says it.
const counted = (of, number) => amount(of.resource, of.resource === "cpu" ? `${number}m` : String(number));

const holdings = (found) => Object.entries(found).map(([name, held]) => `${amount(name, held)} ${name}`).join(", ");

const WAITING = [
  ["Gang", (gang) => `${gang.namespace}/${gang.name}`],
  ["Queue", (gang) => gang.queue],
  ["Position", (gang) => gang.position || "", "number"],
  ["Priority", (gang) => gang.priority, "number"],
  ["Age", (gang) => age(gang.created), "number"],
  ["Reason", (gang) => gang.reason],
  ["Message", (gang) => gang.message, "text"],
];

const FAILED = WAITING.filter(([title]) => title !== "Position");

const PLACED = [
  ["Gang", (gang) => `${gang.namespace}/${gang.name}`],
  ["Queue", (gang) => gang.queue],
  ["Phase", (gang) => gang.phase],
  ["Ready", (gang) => gang.ready, "number"],
  ["Age", (gang) => age(gang.created), "number"],
  ["Holds", (gang) => holdings(gang.holds), "text"],
  ["Message", (gang) => gang.message, "text"],
];

// One line for each resource that is limited or used, the same ones in each column.
function amounts(queue, value) {
  const made = element("div");
  const limited = queue.resources.filter((each) => each.used !== null);
  for (const each of limited) made.append(element("div", value(each)));
  if (!limited.length) made.append(element("div", "–"));
  return made;
}

function named(queue) {
  const made = element("span");
  if (queue.depth) made.append(element("span", "└ ".padStart(2 * queue.depth, " "), "depth"));
  made.append(queue.name);
  if (queue.fault) made.append(element("div", queue.fault, "bad"));
  return made;
}

function shares(queue) {
  const made = element("span", queue.share);
  for (const [name, share] of Object.entries(queue.shares)) made.append(element("div", `${name} ${share}`));
  return made;
}

const QUEUES = [
  ["Queue", named],
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
  ["Used", (pool) => counted(pool, pool.used), "number"],
  ["Reserved", (pool) => counted(pool, pool.reserved), "number"],
  ["Free", (pool) => counted(pool, pool.free), "number"],
  ["Stranded", (pool) => pool.stranded, "number"],
  ["On nodes that take none", (pool) => counted(pool, pool.unschedulable), "number"],
  ...["1", "2", "4", "8"].map((size) => [`Pods of ${size}`, (pool) => pool.holes[size] ?? "", "number"]),
];

const NODES = [
  ["Node", (node) => node.name],
  ["Pool", (node) => node.pool],
  ["Resource", (node) => node.resource],
  ["In use", (node) => bar(node.used, node.reserved, node.allocatable)],
  ["Used", (node) => counted(node, node.used), "number"],
  ["Reserved", (node) => counted(node, node.reserved), "number"],
  ["Free", (node) => node.off ? "" : counted(node, node.free), "number"],
  ["", (node) => node.off],
];

function draw(found) {
  const over = found.finished ? `, ${found.finished} finished` : "";
  $("state").textContent = found.fault || `read ${Math.round(found.age)} s ago; ${found.gangs} ${found.gangs === 1 ? "gang" : "gangs"}${over}`;
  $("state").classList.toggle("bad", Boolean(found.fault));
  counts("phases", found.phases);
  counts("reasons", found.reasons);
  table("waiting", WAITING, found.waiting.items, found.waiting.count, "no gang waits");
  table("placed", PLACED, found.placed.items, found.placed.count, "no gang has a place");
  table("failed", FAILED, found.failed.items, found.failed.count, "no gang has failed");
  table("queues", QUEUES, found.queues.items, found.queues.count, found.queuesKnown ? "no queue" : "queues may not be listed");
  const unknown = found.nodesKnown ? "no node" : "nodes or pods may not be listed";
  table("pools", POOLS, found.pools, found.pools.length, unknown);
  table("nodes", NODES, found.nodes.items, found.nodes.count, unknown);
  $("unread").replaceChildren(...found.unread.map((each) => element("li", each)));
  document.body.dataset.version = found.version;
}

let asked = 0;

async function refresh() {
  const mine = ++asked;
  const answer = await fetch(`report?q=${encodeURIComponent($("query").value)}`);
  const found = await answer.json();
  if (mine !== asked) return; // a later question is under way
  if (answer.ok) draw(found);
  else lost(found.fault);
}

function lost(why) {
  $("state").textContent = why;
  $("state").classList.add("bad");
}

const again = () => refresh().catch(() => lost("muster dashboard does not answer"));

let typed;
$("query").addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(again, 150);
});
$("search").addEventListener("submit", (event) => event.preventDefault());

const changes = new EventSource("changes");
changes.onmessage = again;
changes.onerror = () => lost("muster dashboard does not answer");
