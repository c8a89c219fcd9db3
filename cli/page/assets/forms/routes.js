// The views that change something, and the links that lead to them.
import { element, link, pathOf } from "../views/dom.js";
import { create, edit, scale } from "./cluster.js";
import { createQueue, deleteCluster, deleteJob, editQueue, resume, submit, suspend } from "./others.js";
import { whatIf } from "./what_if.js";

const CLUSTER = "/clusters/:namespace/:name";

export const FORMS = [
  ["/create", "Create a Ray cluster", create],
  [`${CLUSTER}/edit`, "Edit", edit],
  [`${CLUSTER}/scale`, "Scale", scale],
  [`${CLUSTER}/suspend`, "Suspend", suspend],
  [`${CLUSTER}/resume`, "Resume", resume],
  [`${CLUSTER}/delete`, "Delete", deleteCluster],
  ["/submit", "Submit a job", submit],
  ["/jobs/:namespace/:name/delete", "Delete a job", deleteJob],
  ["/create-queue", "Create a queue", createQueue],
  ["/queues/:name/edit", "Edit a queue", editQueue],
  ["/what-if", "What if", whatIf],
];

const bar = (...links) => element("p", { class: "links", role: "group", "aria-label": "Manage" }, ...links);
const query = (words) => new URLSearchParams(words);

export function clusterLinks(namespace, name) {
  const at = `/clusters${pathOf(namespace, name)}`;
  const verbs = [["edit", "Edit"], ["scale", "Scale"], ["suspend", "Suspend"], ["resume", "Resume"], ["delete", "Delete"]];
  return bar(...verbs.map(([verb, text]) => link(`${at}/${verb}`, text)),
    link(`/submit?${query({ namespace, cluster: name })}`, "Submit a job"), link(`/create?${query({ namespace, like: name })}`, "Create one like it"));
}

export const clustersLinks = (namespace = "") => bar(link(`/create?${query({ namespace })}`, "Create a Ray cluster"));
export const jobsLinks = (namespace = "") => bar(link(`/submit?${query({ namespace })}`, "Submit a job"));
export const jobLink = (namespace, name) => link(`/jobs${pathOf(namespace, name)}/delete`, "Delete");
export const queuesLinks = () => bar(link("/create-queue", "Create a queue"));
export const queueLink = (name) => link(`/queues${pathOf(name)}/edit`, "Edit");
