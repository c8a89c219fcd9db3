// Fields of forms: what a person changed of them is read, and nothing else.
import { element } from "../views/dom.js";

let made = 0;

const READ = {
  text: (text) => text,
  long: (text) => text,
  number: (text) => (text === "" ? null : Number(text)),
  choice: (text) => text,
  yes: (text) => (text === "" ? null : text === "yes"),
  list: (text) => parts(text),
  map: (text) => Object.fromEntries(parts(text).map((each) => each.split(/=(.*)/s).map((part) => part.trim()).slice(0, 2))),
};

const parts = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

function written(kind, value) {
  if (value === null || value === undefined) return "";
  if (kind === "yes") return value ? "yes" : "no";
  if (kind === "list") return value.join(", ");
  if (kind === "map") return Object.entries(value).map(([key, each]) => `${key}=${each}`).join(", ");
  return String(value);
}

function control(kind, options, attributes) {
  if (kind === "long") return element("textarea", { rows: 4, ...attributes });
  if (kind === "yes" || kind === "choice") {
    const all = kind === "yes" ? ["yes", "no"] : options;
    return element("select", attributes, ...["", ...all].map((each) => element("option", { value: each }, each || "as it is")));
  }
  const number = kind === "number" ? { type: "number", min: 0, step: attributes.step ?? 1 } : { type: "text" };
  return element("input", { autocomplete: "off", spellcheck: "false", ...number, ...attributes });
}

// One field: [name, label, kind, help, more]; `more` has options, or attributes of the control.
class Field {
  constructor([name, label, kind, help = "", more = {}], value) {
    Object.assign(this, { name, kind, before: written(kind, value) });
    const { options, ...attributes } = more;
    const id = `form-${++made}`;
    const about = help && { "aria-describedby": `${id}-help` };
    this.control = control(kind, options, { id, name, ...about, ...attributes });
    this.control.value = this.before;
    if (kind === "map") this.control.addEventListener("input", () => this.check());
    this.node = element("div", { class: "row" }, element("label", { for: id }, label), this.control,
      ...(help ? [element("span", { id: `${id}-help`, class: "quiet" }, help)] : []));
  }

  check() {
    const bad = parts(this.control.value).find((each) => !/^[^=]+=/.test(each));
    this.control.setCustomValidity(bad === undefined ? "" : `${bad}: write it as name=value`);
  }

  get isTouched() {
    return this.control.value.trim() !== this.before;
  }

  get value() {
    const now = READ[this.kind](this.control.value.trim());
    if (this.kind !== "map") return now;
    const gone = Object.keys(READ.map(this.before)).filter((key) => !(key in now));
    return { ...now, ...Object.fromEntries(gone.map((key) => [key, ""])) };
  }

  // Takes what others wrote meanwhile; what this person typed stays.
  rebase(value) {
    const touched = this.isTouched;
    this.before = written(this.kind, value);
    if (!touched) this.control.value = this.before;
  }
}

export class Fields {
  constructor(title, rows, values = {}, folded = false) {
    this.all = rows.map((row) => new Field(row, values[row[0]]));
    const inside = this.all.map((each) => each.node);
    this.node = folded
      ? element("details", {}, element("summary", {}, title), ...inside)
      : element("fieldset", {}, element("legend", {}, title), ...inside);
  }

  get isTouched() {
    return this.all.some((each) => each.isTouched);
  }

  at(name) {
    return this.all.find((each) => each.name === name);
  }

  // What was changed, by name; what says how many of what is sent together.
  get changed() {
    const touched = this.all.filter((each) => each.isTouched);
    const found = Object.fromEntries(touched.map((each) => [each.name, each.value]));
    if ("gpus" in found || "gpu" in found) {
      for (const name of ["gpus", "gpu"]) found[name] = this.at(name).value || null;
    }
    return found;
  }

  rebase(values) {
    for (const each of this.all) each.rebase(values[each.name]);
  }
}

// Names to choose from, which a text field may offer and does not insist on.
export function offered(id, names) {
  return element("datalist", { id }, ...names.map((each) => element("option", { value: each })));
}
