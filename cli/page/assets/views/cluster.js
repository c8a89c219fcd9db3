// The page of one Ray cluster: why it waits, its pods on nodes, its times, its jobs, its links.
import { ask, repeat, say } from "./asking.js";
import { box, entry, square } from "./boxes.js";
import { age, amount, colour, drawn, element, fillTable, link, natural, notes, pathOf, scrolled, section, time, zone } from "./dom.js";
import { fillJobs } from "./jobs.js";

const PAUSE = 5_000;
const api = (...parts) => `api${pathOf(...parts)}`;

// ---- what it is, and why it waits

function facts(found) {
  const { gang } = found;
  const pairs = [
    ["State", [found.state, found.suspended && "suspended", found.ending && "being deleted"].filter(Boolean).join(", ") || "none yet"],
    ["Made by", found.owner],
    ["Age", age(found.created)],
    ["Gang", gang ? gang.phase : `none: this ${found.noGang || "is not known"}`],
    ["Queue", gang?.queue],
    ["Position", gang?.waits && gang.position ? `${gang.position}${gang.of > 1 ? ` of ${gang.of}` : ""}` : ""],
    ["Ready", gang?.ready],
    ["Reason", gang && [gang.reason, gang.message].filter(Boolean).join(": ")],
    ["Means", gang?.waits ? gang.means : ""],
    ["What to do", gang?.waits ? gang.remedy : ""],
    ["Autoscaler", found.autoscaler ? "on" : ""],
  ];
  return element("dl", { class: "facts" }, ...pairs.filter(([, text]) => text).flatMap(([title, text]) =>
    [element("dt", {}, title), element("dd", {}, text)]));
}

const PODSETS = [
  ["Pod set", (each) => each.name],
  ["Pods", (each) => each.count, "number"],
  ["At once", (each) => each.minimum, "number"],
  ["Gated", (each) => each.gated, "number"],
  ["Bound", (each) => each.bound, "number"],
  ["Ready", (each) => each.ready, "number"],
  ["Why", (each) => [each.reason, each.message].filter(Boolean).join(": "), "text"],
  ["Lacks", (each) => (each.short ? lacking(each.short) : ""), "text"],
];

function lacking(short) {
  const written = (text) => amount(short.resource, text);
  const holders = short.holders.map((each) => `${each.kind} ${[each.namespace, each.name].filter(Boolean).join("/")} has ${written(each.amount)}`);
  return [`each needs ${written(short.each)} ${short.resource}, ${written(short.free)} are free, at most ${written(short.largest)} on one node`, ...holders].join("; ");
}

function helping(gang) {
  if (!gang) return [];
  const ahead = gang.ahead.length ? [`before it: ${gang.ahead.join(", ")}`] : [];
  return [...ahead, ...gang.quota, ...gang.helps, ...gang.notes];
}

const GROUPS = [
  ["Group", (each) => each.name],
  ["Replicas", (each) => each.replicas ?? "–", "number"],
  ["Least", (each) => each.min ?? "–", "number"],
  ["Most", (each) => each.max ?? "–", "number"],
  ["Hosts", (each) => each.hosts, "number"],
  ["", (each) => (each.suspended ? "suspended" : "")],
];

// ---- pods on nodes

const roundness = (group) => (group === "headgroup" ? 7 : 2);
const stateOf = (pod) => (pod.ending ? "ends" : pod.gated ? "gated" : pod.ready ? "ready" : pod.reason || pod.phase);

// Pods that are not ready have a dashed edge; places of pods that are not there yet are empty.
function placed(node, pods, promised) {
  const empty = Array.from({ length: Math.max(0, promised - pods.length) }, (_, at) => pods.length + at);
  const ready = pods.filter((each) => each.ready).length;
  const text = `${node || "no node yet"}: ${pods.length} pods, ${ready} ready${empty.length ? `, ${empty.length} more have their place here` : ""}`;
  const shapes = pods.map((pod, at) => square(`${pod.ready ? "used" : "reserved"} ${colour(pod.group)}`, at, [pod.name, pod.group, stateOf(pod)].join(", "), roundness(pod.group)));
  return box(node || "no node yet", "", text, [...shapes, ...empty.map((at) => square("free", at, "its pod is not there yet"))], pods.length + empty.length);
}

function places(found) {
  const promised = found.gang?.nodes ?? {};
  const byNode = new Map();
  for (const pod of found.pods) byNode.set(pod.node, [...(byNode.get(pod.node) ?? []), pod]);
  const names = [...new Set([...Object.keys(promised), ...byNode.keys()])].filter(Boolean).sort(natural);
  if (byNode.has("")) names.push("");
  return names.slice(0, 300).map((name) => placed(name, byNode.get(name) ?? [], promised[name] ?? 0));
}

const groupKey = (found) => [...new Set(found.pods.map((pod) => pod.group))].map((name) => entry(`used ${colour(name)}`, roundness(name), name));

const podsOf = (namespace, cluster) => [
  ["Pod", (pod) => pod.name],
  ["Group", (pod) => pod.group],
  ["Node", (pod) => pod.node],
  ["State", (pod) => stateOf(pod), "text"],
  ["Age", (pod) => age(pod.created), "number"],
  ["", (pod) => link(`/clusters${pathOf(namespace, cluster)}/logs?${new URLSearchParams({ pod: pod.name })}`, "Logs")],
];

// ---- times

function bar(zones) {
  const now = Date.now();
  const times = zones.map((each) => [each.state, Date.parse(each.begin), each.end ? Date.parse(each.end) : now]);
  const [from, whole] = [times[0][1], Math.max(1, now - times[0][1])];
  const text = zones.map((each) => `${each.state} from ${each.begin}`).join(", ");
  return drawn("svg", { class: "times", viewBox: "0 0 1000 24", preserveAspectRatio: "none", role: "img", "aria-label": text },
    ...times.map(([state, begin, end]) => drawn("rect", {
      class: state, x: (1000 * (begin - from)) / whole, y: 0, width: Math.max(2, (1000 * (end - begin)) / whole), height: 24,
    }, drawn("title", {}, state))));
}

function lasting(each) {
  const seconds = Math.max(0, Math.round(((each.end ? Date.parse(each.end) : Date.now()) - Date.parse(each.begin)) / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

const ZONES = [
  ["State", (each) => element("span", { class: `state ${each.state}` }, each.state)],
  ["From", (each) => time(each.begin)],
  ["For", (each) => lasting(each), "number"],
];

const MOMENTS = [
  ["When", (each) => time(each.last)],
  ["About", (each) => each.of],
  ["Reason", (each) => each.reason],
  ["Message", (each) => each.message, "text"],
  ["Times", (each) => each.count, "number"],
];

// ---- the page

export function cluster(main, { namespace, name }) {
  const title = `${namespace}/${name}`;
  const unread = notes([]);
  const about = element("div", {});
  const helps = notes([]);
  const links = element("p", { class: "links" });
  const [groups, podSets, pods, zones, moments, jobTable] = ["groups", "podsets", "pods", "zones", "moments", "jobs"].map(scrolled);
  const boxes = element("ul", { class: "boxes", "aria-label": "Nodes of this cluster" });
  const key = element("ul", { class: "legend", "aria-label": "Groups" });
  const times = element("div", {});
  main.append(section("h2", title, "cluster", links, unread, about, helps),
    section("h2", "Pod sets of the gang", "podsets", podSets),
    section("h2", "Worker groups", "groups", groups),
    section("h2", "Where its pods are", "pods", key, boxes, pods),
    section("h2", `When it waited and ran (${zone})`, "zones", times, zones),
    section("h2", "Events", "moments", moments),
    section("h2", "Jobs on this cluster", "jobs", jobTable,
      element("p", {}, link(`/jobs?${new URLSearchParams({ namespace })}`, `All jobs of ${namespace}`))));
  let why = null;

  function draw(found) {
    if (why && found.gang && why.phase === found.gang.phase) found = { ...found, gang: { ...why, nodes: found.gang.nodes } };
    about.replaceChildren(facts(found));
    helps.replaceChildren(...helping(found.gang).map((each) => element("li", {}, each)));
    unread.replaceChildren(...found.unread.map((each) => element("li", {}, each)));
    links.replaceChildren(...found.links.map((each) => element("a", { href: each.address, rel: "noopener noreferrer", target: "_blank" }, each.name)));
    fillTable(podSets.firstChild, PODSETS, found.gang?.podSets ?? [], found.gang?.podSets.length ? "" : "no gang, or none that was looked at yet");
    fillTable(groups.firstChild, GROUPS, found.groups, found.groups.length ? "" : "no worker group");
    boxes.replaceChildren(...places(found));
    key.replaceChildren(...groupKey(found));
    const more = found.allPods > found.pods.length ? `the first ${found.pods.length} of ${found.allPods}` : "";
    fillTable(pods.firstChild, podsOf(namespace, name), found.pods, found.pods.length ? more : "no pods");
    const known = found.timeline.zones;
    times.replaceChildren(...(known.length ? [bar(known)] : []));
    fillTable(zones.firstChild, ZONES, known, known.length ? "" : "nothing is known");
    fillTable(moments.firstChild, MOMENTS, [...found.timeline.moments].reverse(), found.timeline.moments.length ? "" : "no Events: Kubernetes keeps them for an hour");
    main.dataset.phase = found.gang?.phase ?? "";
    say(`${title}: ${found.gang?.phase || found.state || "no state yet"}`);
  }

  let last;
  const reading = repeat(async (signal) => {
    last = await ask(api("clusters", namespace, name), { signal });
    draw(last);
    if (last.gang?.waits) rivals(last.gangName, signal);
    const jobs = await ask(`api/jobs?${new URLSearchParams({ namespace })}`, { signal }).catch((error) => ({ jobs: [], fault: error.message }));
    const own = jobs.jobs.filter((job) => job.cluster === name && job.namespace === namespace);
    fillJobs(jobTable.firstChild, own, "", jobs.fault ?? "no RayJob runs on it");
  }, PAUSE);

  // Who has the room takes longer to find out: the page doesn't wait for it.
  let under = false;
  async function rivals(gang, signal) {
    if (under) return;
    under = true;
    try {
      why = await ask(`${api("gangs", namespace, gang)}/why`, { signal });
      if (!signal.aborted) draw(last);
    } catch (error) {
      if (!signal.aborted) helps.replaceChildren(element("li", {}, error.message));
    } finally {
      under = false;
    }
  }

  return () => {
    reading.leave();
    delete main.dataset.phase;
  };
}
