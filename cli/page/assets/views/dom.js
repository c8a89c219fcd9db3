// Makes elements. All texts are set as texts: names and messages repeat what tenants write.

const SVG = "http://www.w3.org/2000/svg";
export const SECOND = 1000;
const collator = new Intl.Collator("en", { numeric: true });

export const natural = (one, other) => collator.compare(one, other);

// Attributes that are false or undefined are left out; children are nodes or texts.
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((each) => each !== undefined && each !== null).map((each) => each instanceof Node ? each : String(each)));
  return made;
}

export const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const drawn = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
export const link = (path, text) => element("a", { href: `#${path}` }, text);

// A path of the page: parts are names, which may hold what a path must not.
export const pathOf = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;

export function button(text, act) {
  const made = element("button", { type: "button" }, text);
  made.addEventListener("click", act);
  return made;
}

let labels = 0;

export function field(text, control) {
  control.id ||= `field-${++labels}`;
  return element("span", { class: "field" }, element("label", { for: control.id }, text), control);
}

// A field to look for something; `act` is called once typing has paused.
export function finder(value, placeholder, act) {
  const input = element("input", { id: "query", type: "search", maxlength: 200, autocomplete: "off", placeholder });
  input.value = value;
  let typed;
  input.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(act, 150);
  });
  const form = element("form", { role: "search" }, element("label", { for: "query" }, "Find"), input);
  form.addEventListener("submit", (event) => event.preventDefault());
  return [form, input];
}

export function section(level, title, id, ...children) {
  const heading = element(level, { id: `${id}-title` }, title);
  return element("section", { "aria-labelledby": heading.id }, heading, ...children);
}

// A table that scrolls sideways by itself. A column is [title, value of a row, kind].
export function scrolled(id) {
  const table = element("table", { id });
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": `${id}-title` }, table);
}

export function fillTable(table, columns, rows, caption) {
  const titles = columns.map(([title, , kind]) => element("th", { scope: "col", class: kind === "number" && "number" }, title));
  const lines = rows.map((row) => element("tr", {}, ...columns.map(([, value, kind], at) =>
    element(at ? "td" : "th", { scope: at ? undefined : "row", class: kind }, value(row) ?? ""))));
  table.replaceChildren(...(caption ? [element("caption", {}, caption)] : []),
    element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...lines));
}

export function age(created) {
  const seconds = Math.max(0, (Date.now() - Date.parse(created)) / SECOND);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 120) return `${Math.floor(seconds)}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86400)}d`;
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
export const zone = clock.resolvedOptions().timeZone;

export function time(stamp) {
  const parsed = new Date(stamp);
  return Number.isNaN(parsed.getTime()) ? element("span", {}, stamp) : element("time", { datetime: stamp }, clock.format(parsed));
}

const UNITS = [["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];
const inBytes = (resource) => /^(memory|ephemeral-storage|hugepages-.*)$/.test(resource);

// Writes a quantity in usual units, as the commands do: 997000m is 997.
export function amount(resource, text) {
  const [, digits, milli] = /^(\d+)(m?)$/.exec(text) ?? [];
  if (digits === undefined) return text ?? "–";
  const number = Number(digits);
  if (milli) return number % 1000 ? text : String(number / 1000);
  const [unit, size] = UNITS.find(([, least]) => inBytes(resource) && number >= least) ?? ["", 1];
  return `${Math.ceil((10 * number) / size) / 10}${unit}`;
}

// Nodes count CPU in thousandths; the rest is as a quantity says it.
export const counted = (resource, number) => amount(resource, resource === "cpu" ? `${number}m` : String(number));

// One of the colours of page.css, always the same for a name.
export const COLOURS = 10;
export function colour(name) {
  let sum = 7;
  for (const each of name) sum = (31 * sum + each.codePointAt(0)) % 1000003;
  return `c${sum % COLOURS}`;
}

export const notes = (texts) => element("ul", { class: "notes" }, ...texts.map((each) => element("li", {}, each)));
