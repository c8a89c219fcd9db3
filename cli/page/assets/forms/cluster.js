// Forms of Ray clusters: a new one, and changes of one that exists.
import { ask } from "../session.js";
import { element, pathOf } from "../views/dom.js";
import { Fields, offered } from "./fields.js";
import { Groups, POD } from "./groups.js";
import { sending } from "./sending.js";

export const NAME = { required: true, pattern: "[a-z]([a-z0-9\\-]*[a-z0-9])?", maxlength: 53, title: "a-z, 0-9 and -, beginning with a letter" };
export const NAMESPACE = { required: true, pattern: "[a-z0-9]([a-z0-9\\-]*[a-z0-9])?", maxlength: 63, title: "a-z, 0-9 and -" };

const TERMS = [
  ["queue", "Queue", "text", "empty: the one that selects the namespace", { list: "queues" }],
  ["priorityClass", "Priority class", "text"],
  ["gang", "All of it starts together", "yes"],
  ["autoscaler", "Ray's autoscaler", "yes"],
  ["image", "Image of all pods", "text"],
];
const MORE = [
  ["rayVersion", "Version of Ray", "text", "where the image's tag does not tell it"],
  ["idleTimeoutSeconds", "Seconds until an idle worker ends", "number", "by Ray's autoscaler"],
  ["upscalingMode", "How fast the autoscaler adds", "choice", "", { options: ["Default", "Aggressive", "Conservative"] }],
  ["topologyRequired", "All workers in one value of", "text", "a label of nodes"],
  ["topologyPreferred", "If they fit, in one value of", "text", "a label of nodes"],
  ["replicaTopologyRequired", "Each replica in one value of", "text", "a label of nodes"],
  ["expectedDuration", "How long it runs", "text", "as 2h30m"],
  ["createPods", "Its pods are created", "choice", "", { options: ["always", "when-admitted"] }],
  ["faultTolerance", "State of the head in the built-in Redis", "yes", "where the administrator installed it"],
];
const DELETED = ["workersToDelete", "Worker pods to delete", "list", "their names, with commas"];

// All fields of a Ray cluster, and what was changed of them.
export class ClusterFields {
  constructor(values = {}, first = null, isNew = true) {
    const terms = isNew ? TERMS : TERMS.filter(([name]) => name !== "image");
    this.terms = new Fields("Ray cluster", terms, values);
    this.more = new Fields("More", isNew ? MORE : [...MORE, DELETED], values, true);
    this.head = new Fields("Head", POD, values.head ?? {}, true);
    this.groups = new Groups(values.groups, first);
    this.queues = offered("queues", []);
    this.nodes = [this.terms.node, this.more.node, this.head.node, this.groups.node, this.queues];
  }

  get changed() {
    const head = this.head.isTouched ? { head: this.head.changed } : {};
    return { ...this.terms.changed, ...this.more.changed, ...head, ...this.groups.changed };
  }

  rebase(values) {
    for (const each of [this.terms, this.more]) each.rebase(values);
    this.head.rebase(values.head ?? {});
    this.groups.rebase(values.groups ?? []);
  }

  offer(names) {
    this.queues.replaceChildren(...offered("", names).children);
  }
}

// What a namespace has to choose from; a form works without it.
async function choices(namespace) {
  const nothing = { queues: [], clusters: [] };
  return namespace ? ask(`api/manage${pathOf("choices", namespace)}`).catch(() => nothing) : nothing;
}

// Keeps queues and Ray clusters to choose from those of the namespace that the form names.
export function clustersOffered(place, fields) {
  const clusters = offered("clusters", []);
  const namespace = place.at("namespace").control;
  async function offer() {
    const found = await choices(place.at("namespace").value);
    fields.offer(found.queues);
    clusters.replaceChildren(...offered("", found.clusters).children);
  }
  namespace.addEventListener("change", offer);
  offer();
  return clusters;
}

export const go = (path) => () => { location.hash = path; };

export function create(main, params) {
  const place = new Fields("Where", [
    ["namespace", "Namespace", "text", "", NAMESPACE],
    ["name", "Name", "text", "", NAME],
    ["like", "Like", "text", "a Ray cluster of the namespace to copy", { list: "clusters" }],
  ]);
  for (const name of ["namespace", "like"]) place.at(name).control.value = params[name] ?? "";
  const fields = new ClusterFields({}, params.like ? null : { name: "workers" });
  const clusters = clustersOffered(place, fields);
  const at = (name) => place.at(name).value;
  sending(main, {
    title: "Create a Ray cluster",
    parts: [place.node, ...fields.nodes, clusters],
    path: () => `api/manage${pathOf("clusters", at("namespace"), at("name"), "create")}`,
    body: () => ({ form: fields.changed, like: at("like") }),
    act: "Create it",
    done: () => go(`/clusters${pathOf(at("namespace"), at("name"))}`)(),
  });
}

const kept = (found) => JSON.stringify(found);

// Names what is different between two states of a form.
function different(before, after) {
  const names = Object.keys({ ...before, ...after }).filter((name) => kept(before[name]) !== kept(after[name]));
  return names.join(", ") || "its labels or its spec";
}

// Shows a form of an object as it is. `show` makes it, of what was read, and gives what is sent and how
// it takes what others wrote meanwhile.
export function editing(main, path, show) {
  main.append(element("p", { class: "quiet" }, "reading it"));
  const leaving = new AbortController();
  ask(path, { signal: leaving.signal }).then((found) => {
    if (leaving.signal.aborted) return;
    main.replaceChildren();
    let read = found;
    const { rebase, ...rest } = show(found, () => read.state);
    const form = sending(main, {
      ...rest,
      conflict: async (error) => {
        const now = await ask(path);
        const others = different(read.form, now.form);
        rebase(now);
        read = now;
        form.say(`${error.message}. Changed by others: ${others}. What you wrote is still here: look, and send it again.`);
      },
    });
  }).catch((error) => {
    if (!leaving.signal.aborted) main.replaceChildren(element("p", { role: "alert", class: "bad" }, error.message));
  });
  return () => leaving.abort();
}

export function edit(main, { namespace, name }) {
  const path = `api/manage${pathOf("clusters", namespace, name)}`;
  return editing(main, path, (found, state) => {
    const fields = new ClusterFields(found.form, null, false);
    choices(namespace).then((all) => fields.offer(all.queues));
    return {
      title: `Edit ${namespace}/${name}`,
      parts: fields.nodes,
      path: () => `${path}/edit`,
      body: () => ({ state: state(), form: fields.changed }),
      act: "Change it",
      done: go(`/clusters${pathOf(namespace, name)}`),
      rebase: (now) => fields.rebase(now.form),
    };
  });
}

// How many replicas each group has, or between which numbers Ray's autoscaler keeps them.
export function scale(main, { namespace, name }) {
  const path = `api/manage${pathOf("clusters", namespace, name)}`;
  return editing(main, path, (found, state) => {
    const rows = found.form.autoscaler ? [["min", "Least", "number", "", { required: true }], ["max", "Most", "number", "", { required: true }]] : [["replicas", "Replicas", "number", "", { required: true }]];
    const groups = found.form.groups.map((each) => [each.name, new Fields(`Group ${each.name}`, rows, each)]);
    const target = ([group, fields]) => `${group}=${rows.map(([field]) => fields.at(field).value).join("..")}`;
    return {
      title: `Scale ${namespace}/${name}`,
      parts: groups.map(([, fields]) => fields.node),
      path: () => `${path}/scale`,
      body: () => ({ state: state(), targets: groups.filter(([, fields]) => fields.isTouched).map(target) }),
      act: "Scale it",
      done: go(`/clusters${pathOf(namespace, name)}`),
      rebase: (now) => groups.forEach(([group, fields]) => fields.rebase(now.form.groups.find((each) => each.name === group) ?? {})),
    };
  });
}
