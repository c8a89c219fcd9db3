// Logs of pods, as they are written. Of a long one the end is kept: a browser's memory is no disk.
import { ask, pieces, say } from "./asking.js";
import { button, element, field, link, pathOf, section } from "./dom.js";

const KEPT = 1 << 20; // characters that are shown
const DRAWN = 100; // milliseconds between two drawings at least; what comes faster is never drawn
const SHARE = 0.1; // the most of the time that drawing may take while there is more to read

const api = (...parts) => `api${pathOf(...parts)}`;
const inUnits = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${Math.round(bytes / 1e5) / 10} MB`);

// The end of a log: texts that wait to be drawn, and those that are. The oldest are dropped.
class Shown {
  constructor(output) {
    this.output = output;
    this.waiting = [];
    this.length = 0;
    this.bytes = 0;
    output.replaceChildren();
  }

  take(text) {
    this.waiting.push(text);
    this.length += text.length;
    while (this.length > KEPT && this.waiting.length > 1) this.length -= this.waiting.shift().length;
  }

  draw() {
    const { output } = this;
    const atEnd = output.scrollTop + output.clientHeight >= output.scrollHeight - 40;
    output.append(...this.waiting.map((text) => document.createTextNode(text)));
    this.waiting = [];
    this.length = 0;
    let kept = output.textContent.length;
    while (kept > KEPT && output.childNodes.length > 1) {
      kept -= output.firstChild.length;
      output.firstChild.remove();
    }
    this.kept = kept;
    if (atEnd) output.scrollTop = output.scrollHeight;
  }
}

async function read(address, shown, signal, told) {
  const decoder = new TextDecoder();
  let next = 0;
  let timer;
  const draw = () => {
    clearTimeout(timer);
    timer = undefined;
    const began = performance.now();
    shown.draw();
    told();
    next = performance.now() + Math.max(DRAWN, (performance.now() - began) / SHARE);
  };
  try {
    for await (const piece of pieces(address, signal)) {
      shown.bytes += piece.length;
      shown.take(decoder.decode(piece, { stream: true }));
      if (performance.now() > next) {
        draw();
        await new Promise((resolve) => setTimeout(resolve, 0)); // the page answers its reader in between
      } else timer ??= setTimeout(draw, DRAWN);
    }
  } finally {
    shown.take(decoder.decode());
    draw();
  }
}

// The controls, and the log below them; `source` is a pod and a container of it.
function reader(main, title, namespace, source, follow) {
  const tail = element("select", {}, ...[["1000", "the last 1000"], ["100", "the last 100"], ["100000", "the last 100000"], ["all", "all"]]
    .map(([value, text]) => element("option", { value }, text)));
  const following = element("input", { type: "checkbox", checked: follow });
  const previous = element("input", { type: "checkbox" });
  const output = element("pre", { id: "log", class: "log", tabindex: 0, role: "log", "aria-live": "off", "aria-label": title });
  const told = element("p", { id: "told", role: "status" });
  const tools = element("div", { class: "tools" }, field("Lines", tail), field("Follow", following),
    field("Before its last restart", previous), button("Stop", () => leaving.abort()));
  let leaving = new AbortController();

  async function begin() {
    leaving.abort();
    leaving = new AbortController();
    const { signal } = leaving;
    const shown = new Shown(output);
    const { pod, container } = source();
    if (!pod) return;
    const asked = new URLSearchParams({ container, tail: tail.value, follow: following.checked, previous: previous.checked });
    const tell = (end = "") => {
      if (signal !== leaving.signal) return;
      const part = shown.bytes > KEPT ? `, the last ${inUnits(shown.kept)} are shown` : "";
      told.textContent = `${pod}, ${container}: ${inUnits(shown.bytes)} read${part}${end}`;
      output.dataset.bytes = shown.bytes;
      output.dataset.kept = shown.kept;
    };
    delete output.dataset.ended;
    try {
      await read(`${api("logs", namespace, pod)}?${asked}`, shown, signal, tell);
      tell("; it has ended");
    } catch (error) {
      if (signal.aborted) tell("; stopped");
      else say(error.message, true);
    }
    if (signal === leaving.signal) output.dataset.ended = true;
  }

  for (const each of [tail, following, previous]) each.addEventListener("change", begin);
  return { parts: [tools, told, output], begin, leave: () => leaving.abort() };
}

export function clusterLogs(main, { namespace, name, pod, container }) {
  const pods = element("select", { id: "pod" });
  const containers = element("select", { id: "container" });
  const log = reader(main, `Log of ${namespace}/${name}`, namespace, () => ({ pod: pods.value, container: containers.value }), true);
  const leaving = new AbortController();
  let found = [];
  function fill() {
    const chosen = found.find((each) => each.name === pods.value);
    containers.replaceChildren(...(chosen?.containers ?? []).map((each) => element("option", { value: each }, each)));
  }
  pods.addEventListener("change", () => { fill(); log.begin(); });
  containers.addEventListener("change", log.begin);
  main.append(section("h2", `Logs of ${namespace}/${name}`, "logs",
    element("p", {}, link(`/clusters${pathOf(namespace, name)}`, "The Ray cluster")),
    element("div", { class: "tools" }, field("Pod", pods), field("Container", containers)), ...log.parts));
  ask(api("clusters", namespace, name), { signal: leaving.signal }).then((cluster) => {
    found = cluster.pods;
    pods.replaceChildren(...found.map((each) => element("option", { value: each.name, selected: each.name === pod }, `${each.name} (${each.group})`)));
    fill();
    if (container) containers.value = container;
    if (found.length) log.begin();
    else say(cluster.unread.join("; ") || "it has no pods");
  }).catch((error) => { if (!leaving.signal.aborted) say(error.message, true); });
  return () => { leaving.abort(); log.leave(); };
}

export function jobLog(main, { namespace, name }) {
  let source = { pod: "", container: "" };
  const log = reader(main, `Log of the job ${namespace}/${name}`, namespace, () => source, true);
  const leaving = new AbortController();
  main.append(section("h2", `Log of the job ${namespace}/${name}`, "logs",
    element("p", {}, link(`/jobs?${new URLSearchParams({ namespace })}`, "Jobs of the namespace")), ...log.parts));
  ask(`${api("jobs", namespace, name)}/log`, { signal: leaving.signal }).then((found) => {
    source = found;
    log.begin();
  }).catch((error) => { if (!leaving.signal.aborted) say(error.message, true); });
  return () => { leaving.abort(); log.leave(); };
}
