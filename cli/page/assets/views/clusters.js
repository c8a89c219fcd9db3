// All Ray clusters, with or without a gang: the first ones are seen while the others come.
import { lines, repeat, say } from "./asking.js";
import { age, button, element, field, fillTable, finder, link, natural, notes, pathOf, scrolled, section } from "./dom.js";

const PAGE = 100;
const PAUSE = 30_000;

const keyOf = (row) => `${row.namespace}/${row.name}`;

const COLUMNS = [
  ["Ray cluster", (row) => link(`/clusters${pathOf(row.namespace, row.name)}`, keyOf(row))],
  ["State", (row) => row.state],
  ["Queue", (row) => row.of?.queue],
  ["Gang", (row) => row.of?.phase ?? (row.whole ? "no gang" : "…")],
  ["Why it waits", (row) => (waits(row) ? `${row.of.reason}: ${row.of.message}` : ""), "text"],
  ["Workers", (row) => `${row.ready}/${row.desired}`, "number"],
  ["GPUs", (row) => (row.gpus === "0" ? "" : row.gpus), "number"],
  ["Age", (row) => age(row.created), "number"],
  ["Made by", (row) => row.owner],
];

const waits = (row) => row.of !== undefined && !["Admitted", "Running", "Finished"].includes(row.of.phase) && row.of.reason;

const words = (row) => [keyOf(row), row.state, row.owner, row.of?.queue, row.of?.phase, row.of?.reason, row.of?.message];

// What has been read so far; the gangs may come before their clusters, or after them.
class Found {
  constructor() {
    this.clusters = [];
    this.gangs = new Map();
    this.unread = [];
    this.whole = false;
  }

  take(piece) {
    this.clusters.push(...(piece.clusters ?? []));
    for (const each of piece.gangs ?? []) this.gangs.set(keyOf(each), each);
    if (piece.unread) this.unread.push(piece.unread);
    if (piece.choose) this.choose = true;
    if (piece.whole) this.whole = true;
  }

  rows(text) {
    const wanted = text.trim().toLowerCase();
    const joined = this.clusters.map((row) => ({ ...row, of: this.gangs.get(`${row.namespace}/${row.gang}`), whole: this.whole }));
    const matching = wanted ? joined.filter((row) => words(row).some((each) => each?.toLowerCase().includes(wanted))) : joined;
    return matching.sort((one, other) => natural(keyOf(one), keyOf(other)));
  }
}

export function clusters(main, params) {
  let found = new Found();
  let page = 0;
  const [form, query] = finder(params.find ?? "", "name, namespace, queue, state, reason", () => { page = 0; draw(); });
  const namespaces = element("input", { id: "namespaces", maxlength: 2000, autocomplete: "off", placeholder: "all" });
  namespaces.value = params.namespace ?? "";
  namespaces.addEventListener("change", () => {
    const named = namespaces.value.trim();
    location.hash = named ? `/clusters?${new URLSearchParams({ namespace: named })}` : "/clusters";
  });
  const before = button("Previous", () => { page -= 1; draw(); });
  const after = button("Next", () => { page += 1; draw(); });
  const place = element("span", { id: "place" });
  const unread = notes([]);
  const table = scrolled("clusters");
  main.append(section("h2", "Ray clusters", "clusters",
    element("div", { class: "tools" }, form, field("Namespaces", namespaces), button("Read again", () => reading.again())),
    unread, element("div", { class: "tools", role: "group", "aria-label": "Pages" }, before, after, place), table));

  function draw() {
    const rows = found.rows(query.value);
    page = Math.max(0, Math.min(page, Math.ceil(rows.length / PAGE) - 1));
    const [from, to] = [page * PAGE, Math.min((page + 1) * PAGE, rows.length)];
    fillTable(table.firstChild, COLUMNS, rows.slice(from, to), found.whole && !rows.length ? "no Ray cluster" : "");
    place.textContent = rows.length ? `${from + 1} to ${to} of ${rows.length}` : "";
    before.disabled = page === 0;
    after.disabled = to >= rows.length;
    const choose = found.choose && !namespaces.value ? ["name the namespaces that you may read, with commas between them"] : [];
    unread.replaceChildren(...[...found.unread, ...choose].map((each) => element("li", {}, each)));
    say(`${found.clusters.length} Ray clusters${found.whole ? "" : " so far"}`);
    main.dataset.whole = found.whole;
  }

  const reading = repeat(async (signal) => {
    const next = new Found();
    const first = !found.whole;
    for await (const line of lines(`api/clusters?${new URLSearchParams({ namespace: namespaces.value })}`, signal)) {
      next.take(JSON.parse(line));
      if (!first) continue; // what was seen stays until all is read again
      found = next;
      if (next.clusters.length <= 10 * PAGE) draw();
    }
    found = next;
    draw();
  }, PAUSE);
  return () => {
    reading.leave();
    delete main.dataset.whole;
  };
}
