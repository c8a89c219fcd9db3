// The nodes by GPU, each coloured by the gang that has it: what is used, reserved, free.
import { ask, repeat, say } from "./asking.js";
import { SIDE, WIDTH, box, entry, square } from "./boxes.js";
import { button, colour, counted, drawn, element, field, finder, link, notes, pathOf, renew, section } from "./dom.js";

const PAUSE = 15_000;
const SHOWN = 200; // nodes of one page
const CELLS = 64; // above that a node is a bar: nobody counts squares

// The parts of a node in order: [kind, colour, amount, what it is].
function parts(node) {
  const used = node.uses.map((use) => [use.reserved ? "reserved" : "used", colour(use.holder), use.amount,
    `${counted(node.resource, use.amount)} ${use.reserved ? "reserved for" : "used by"} ${use.holder}`]);
  const taken = node.uses.reduce((sum, use) => sum + use.amount, 0);
  const left = Math.max(0, node.allocatable - taken);
  return left ? [...used, [node.off ? "off" : "free", "", left, `${counted(node.resource, left)} ${node.off ? `not to be had (${node.off})` : "free"}`]] : used;
}

function bars(found, whole) {
  let at = 1;
  return found.map(([kind, tint, count, text]) => {
    const width = (WIDTH * count) / Math.max(1, whole);
    at += width;
    return drawn("rect", { class: `${kind} ${tint}`, x: at - width, y: 1, width: Math.max(0, width - 1), height: SIDE }, drawn("title", {}, text));
  });
}

function picture(node) {
  const found = parts(node);
  const squares = node.allocatable <= CELLS ? found.flatMap(([kind, tint, count, text]) => Array(count).fill([`${kind} ${tint}`, text])) : [];
  const shapes = squares.length ? squares.map(([kind, text], at) => square(kind, at, text)) : bars(found, node.allocatable);
  const words = `${node.name}: ${counted(node.resource, node.allocatable)} ${node.resource}; ${found.map(([, , , text]) => text).join(", ")}`;
  return box(node.name, [node.pool, node.resource, node.off].filter(Boolean).join(", "), words, shapes, squares.length);
}

function legend(nodes) {
  const sums = new Map();
  for (const node of nodes) {
    for (const use of node.uses) {
      const key = `${use.holder}\n${node.resource}`;
      const sum = sums.get(key) ?? { ...use, amount: 0, held: 0, resource: node.resource };
      sum[use.reserved ? "held" : "amount"] += use.amount;
      sums.set(key, sum);
    }
  }
  const most = [...sums.values()].sort((one, other) => other.amount + other.held - one.amount - one.held).slice(0, 40);
  return most.map((each) => {
    const [namespace, name] = each.gang.split("/");
    const title = each.holder.startsWith("RayCluster ") ? link(`/clusters${pathOf(namespace, name)}`, each.gang) : each.holder;
    const reserved = each.held ? `, ${counted(each.resource, each.held)} reserved` : "";
    return entry(`used ${colour(each.holder)}`, 2, title, ` ${counted(each.resource, each.amount)} ${each.resource}${reserved}`);
  });
}

const KEY = [["used c0", "used by a gang or others, in the colour of the holder"], ["reserved c0", "reserved: promised to a gang, its pods are not there yet"],
  ["free", "free"], ["off", "on a node that takes no pods"]];

export function nodes(main, params) {
  let found;
  let shown = SHOWN;
  const [form, query] = finder(params.find ?? "", "node, pool, gang", () => { shown = SHOWN; draw(); });
  const free = element("input", { type: "checkbox" });
  free.addEventListener("change", () => draw());
  const lacks = notes([]);
  const beside = element("ul", { class: "quiet", "aria-label": "Devices that no node has for itself" });
  const holders = element("ul", { class: "legend", "aria-label": "Who has the most" });
  const list = element("ul", { class: "boxes", "aria-label": "Nodes" });
  const more = button("More nodes", () => { shown += SHOWN; draw(); });
  main.append(section("h2", "Nodes", "nodes", element("div", { class: "tools" }, form, field("With something free", free)), lacks,
    element("ul", { class: "legend", "aria-label": "Colours" }, ...KEY.map(([kind, text]) => entry(kind, 2, text))), holders, beside, list, more));

  function draw() {
    if (!found) return;
    const wanted = query.value.trim().toLowerCase();
    const words = (node) => [node.name, node.pool, node.resource, node.off, ...node.uses.map((use) => use.holder)];
    const matching = found.nodes.filter((node) => (!free.checked || (node.free && !node.off))
      && (!wanted || words(node).some((each) => each.toLowerCase().includes(wanted))));
    renew(list, ...matching.slice(0, shown).map(picture));
    more.hidden = matching.length <= shown;
    renew(holders, ...legend(matching));
    renew(beside, ...found.beside.map((each) => element("li", {}, each)));
    renew(lacks, ...missing(found).map((each) => element("li", {}, each)));
    const others = found.nodesWithout ? `, ${found.nodesWithout} without such devices` : "";
    say(found.nodesKnown ? `${matching.length} of ${found.allNodes} nodes${others}` : "nodes are not known");
  }

  const reading = repeat(async (signal) => {
    found = await ask("api/room", { signal });
    draw();
  }, PAUSE);
  return reading.leave;
}

// What is not shown, and by which right it would be.
export const missing = (found) => [...found.lacks.map((each) => `a right is missing: ${each}`), ...found.unread];
