// Forms of jobs and queues, and what is done to an object as it is: suspend, resume, delete.
import { pathOf } from "../views/dom.js";
import { ClusterFields, NAME, NAMESPACE, clustersOffered, editing, go } from "./cluster.js";
import { Fields } from "./fields.js";
import { sending } from "./sending.js";

const JOB = [
  ["entrypoint", "Command", "text", "as python train.py", { required: true }],
  ["cluster", "On the Ray cluster", "text", "empty: one of its own, which goes with it", { list: "clusters" }],
  ["runtimeEnv", "Runtime environment", "long", "YAML"],
  ["entrypointCpus", "CPUs for the command", "number", "", { step: "any" }],
  ["entrypointGpus", "GPUs for the command", "number", "", { step: "any" }],
];
const OWN = [
  ["retries", "Tries after the first", "number", "each on a new Ray cluster"],
  ["keepSeconds", "Seconds that it outlives the job", "number"],
];
const LIKE = ["like", "Like", "text", "a Ray cluster of the namespace to copy", { list: "clusters" }];

export function submit(main, params) {
  const place = new Fields("Where", [["namespace", "Namespace", "text", "", NAMESPACE], ["name", "Name", "text", "", { ...NAME, maxlength: 47 }]]);
  const job = new Fields("Job", JOB);
  const own = new Fields("A Ray cluster of its own", [LIKE, ...OWN], {}, true);
  const fields = new ClusterFields();
  place.at("namespace").control.value = params.namespace ?? "";
  job.at("cluster").control.value = params.cluster ?? "";
  const clusters = clustersOffered(place, fields);
  const at = (name) => place.at(name).value;
  own.node.append(...fields.nodes);
  sending(main, {
    title: "Submit a job",
    parts: [place.node, job.node, own.node, clusters],
    path: () => `api/manage${pathOf("jobs", at("namespace"), at("name"), "submit")}`,
    body: () => {
      const { like = "", ...rest } = own.changed;
      return { job: { ...job.changed, ...rest }, like, form: fields.changed };
    },
    act: "Submit it",
    done: () => go(`/jobs?${new URLSearchParams({ namespace: at("namespace") })}`)(),
  });
}

const LIMIT = "resources, as nvidia.com/gpu=16, cpu=512";
const QUEUE = [
  ["parent", "Parent", "text", "the queue to borrow from"],
  ["quota", "Quota", "map", LIMIT],
  ["borrowingLimit", "At most of the parent's", "map", LIMIT],
  ["lendingLimit", "At most lent to others", "map", LIMIT],
  ["namespaces", "Namespaces", "list", "whose gangs may use it, with commas"],
  ["namespaceLabels", "Namespaces by labels", "map", "as team=ml"],
  ["nodeLabels", "Nodes by labels", "map", "which its gangs may use"],
];
const RULES = [
  ["ordering", "Order", "choice", "", { options: ["Priority", "FIFO"] }],
  ["whenBlocked", "When the first does not fit", "choice", "", { options: ["Strict", "BestEffort", "Backfill"] }],
  ["stop", "Stop", "choice", "", { options: ["None", "Hold", "HoldAndDrain"] }],
  ["withinQueue", "Stops gangs of the queue", "choice", "", { options: ["Never", "LowerPriority"] }],
  ["reclaim", "Stops borrowers", "choice", "", { options: ["Never", "LowerPriority", "Any"] }],
  ["whileBorrowing", "Stops others to borrow", "choice", "", { options: ["Never", "LowerPriority"] }],
  ["createPods", "Pods of its gangs are created", "choice", "", { options: ["Always", "WhenAdmitted"] }],
];

function queueFields(values) {
  const all = [new Fields("Queue", QUEUE, values), new Fields("Rules", RULES, values)];
  return {
    nodes: all.map((each) => each.node),
    changed: () => Object.assign({}, ...all.map((each) => each.changed)),
    rebase: (now) => all.forEach((each) => each.rebase(now)),
  };
}

export function createQueue(main) {
  const place = new Fields("Name", [["name", "Name", "text", "", { required: true, maxlength: 63, pattern: "[a-z0-9]([a-z0-9.\\-]*[a-z0-9])?" }]]);
  const fields = queueFields({});
  sending(main, {
    title: "Create a queue",
    parts: [place.node, ...fields.nodes],
    path: () => `api/manage${pathOf("queues", place.at("name").value, "create")}`,
    body: () => ({ queue: fields.changed() }),
    act: "Create it",
    done: go("/queues"),
  });
}

export function editQueue(main, { name }) {
  const path = `api/manage${pathOf("queues", name)}`;
  return editing(main, path, (found, state) => {
    const fields = queueFields(found.form);
    return {
      title: `Edit queue ${name}`,
      parts: fields.nodes,
      path: () => `${path}/edit`,
      body: () => ({ state: state(), queue: fields.changed() }),
      act: "Change it",
      done: go("/queues"),
      rebase: (now) => fields.rebase(now.form),
    };
  });
}

// What takes no form: it is said at once what it would do.
const acting = (kind, verb, act, after) => (main, { namespace, name }) => {
  sending(main, {
    title: `${act}: ${namespace}/${name}`,
    parts: [],
    path: () => `api/manage${pathOf(kind, namespace, name, verb)}`,
    body: () => ({}),
    act,
    done: () => go(after(namespace, name))(),
    atOnce: true,
  });
};

const toCluster = (namespace, name) => `/clusters${pathOf(namespace, name)}`;
export const suspend = acting("clusters", "suspend", "Suspend it", toCluster);
export const resume = acting("clusters", "resume", "Resume it", toCluster);
export const deleteCluster = acting("clusters", "delete", "Delete it", () => "/clusters");
export const deleteJob = acting("jobs", "delete", "Delete it", (namespace) => `/jobs?${new URLSearchParams({ namespace })}`);
