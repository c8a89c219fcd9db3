// The queues as a tree, each with a bar of quota, usage and what it borrows.
import { ask, repeat, say } from "./asking.js";
import { amount, drawn, element, fillTable, notes, scrolled, section } from "./dom.js";
import { missing } from "./nodes.js";
import { QUEUES, queueName } from "./overview.js";

const PAUSE = 15_000;

function inNumbers(text) {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)(\w*)$/.exec(text ?? "") ?? [];
  const sizes = { "": 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };
  return digits === undefined || !(unit in sizes) ? null : Number(digits) * sizes[unit];
}

// What is used of the quota; what is borrowed goes beyond its end.
function bar(queue, each) {
  const [used, quota, borrowed] = [each.used, each.quota, each.borrowed].map(inNumbers);
  const written = (text) => amount(each.resource, text);
  const text = `${queue.name}: ${written(each.used)} ${each.resource} used${each.quota === null ? ", without quota" : ` of ${written(each.quota)}`}${borrowed ? `, ${written(each.borrowed)} borrowed` : ""}`;
  const whole = Math.max(used ?? 0, quota ?? 0) || 1;
  const own = Math.max(0, (used ?? 0) - (borrowed ?? 0));
  const wide = (part) => (100 * part) / whole;
  return element("div", {}, drawn("svg", { class: "bar wide", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": text },
    drawn("rect", { class: quota === null ? "none" : "ground", x: 0, width: wide(quota ?? whole), height: 10 }),
    drawn("rect", { class: "used", x: 0, width: wide(own), height: 10 }),
    drawn("rect", { class: "reserved", x: wide(own), width: wide(borrowed ?? 0), height: 10 })),
  element("span", { class: "quiet" }, text.slice(queue.name.length + 2)));
}

// Lists in lists: a queue's own has those below it.
function tree(queues) {
  const root = element("ul", { class: "tree" });
  const open = [root];
  for (const queue of queues) {
    open.length = Math.min(open.length, queue.depth + 1);
    const below = element("ul", {});
    const limited = queue.resources.filter((each) => each.used !== null);
    open.at(-1).append(element("li", {}, element("b", {}, queueName({ ...queue, depth: 0 })),
      element("span", { class: "quiet" }, ` ${queue.pending} waiting, ${queue.admitted} admitted`),
      ...limited.map((each) => bar(queue, each)), below));
    open.push(below);
  }
  for (const each of root.querySelectorAll("ul:empty")) each.remove();
  return root;
}

export function queues(main) {
  const lacks = notes([]);
  const picture = element("div", { id: "tree" });
  const table = scrolled("queues");
  main.append(section("h2", "Queues", "tree", lacks, picture), section("h2", "In numbers", "queues", table));
  const reading = repeat(async (signal) => {
    const found = await ask("api/room", { signal });
    lacks.replaceChildren(...missing(found).map((each) => element("li", {}, each)));
    picture.replaceChildren(tree(found.queues));
    fillTable(table.firstChild, QUEUES, found.queues, found.queues.length ? "" : "no queue that you may read");
    say(`${found.queues.length} queues${found.queuesKnown ? "" : ", others may not be listed"}`);
  }, PAUSE);
  return reading.leave;
}
