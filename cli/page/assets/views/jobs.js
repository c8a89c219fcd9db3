// RayJobs: how far Ray and KubeRay have come with each, why it waits, and its log.
import { ask, repeat, say } from "./asking.js";
import { age, element, field, fillTable, finder, link, notes, pathOf, scrolled, section } from "./dom.js";

const PAUSE = 10_000;
const ROWS = 200;

export const JOBS = [
  ["Job", (job) => `${job.namespace}/${job.name}`],
  ["Ray", (job) => job.job],
  ["KubeRay", (job) => job.deployment],
  ["Ray cluster", (job) => (job.cluster ? link(`/clusters${pathOf(job.namespace, job.cluster)}`, job.cluster) : "")],
  ["Queue", (job) => job.queue],
  ["Why", (job) => [job.reason, job.message].filter(Boolean).join(": "), "text"],
  ["Age", (job) => age(job.created), "number"],
  ["Command", (job) => job.entrypoint, "text"],
  ["", (job) => link(`/jobs${pathOf(job.namespace, job.name)}/log`, "Log")],
];

// The newest first, those that have a text in one of their words.
export function fillJobs(table, found, text, nothing) {
  const wanted = text.trim().toLowerCase();
  const matching = found.filter((job) => !wanted || Object.values(job).some((each) => each.toLowerCase().includes(wanted))).reverse();
  const some = matching.length > ROWS ? `the newest ${ROWS} of ${matching.length}: find the others` : "";
  fillTable(table, JOBS, matching.slice(0, ROWS), matching.length ? some : nothing);
}

export function jobs(main, params) {
  let found = { jobs: [], unread: [] };
  const [form, query] = finder(params.find ?? "", "name, Ray cluster, state, command", () => draw());
  const namespace = element("input", { id: "namespace", maxlength: 253, autocomplete: "off", placeholder: "all" });
  namespace.value = params.namespace ?? "";
  namespace.addEventListener("change", () => {
    const named = namespace.value.trim();
    location.hash = named ? `/jobs?${new URLSearchParams({ namespace: named })}` : "/jobs";
  });
  const table = scrolled("jobs");
  const unread = notes([]);
  main.append(section("h2", "Jobs", "jobs", element("div", { class: "tools" }, form, field("Namespace", namespace)), unread, table));
  function draw() {
    fillJobs(table.firstChild, found.jobs, query.value, "no RayJob");
    unread.replaceChildren(...found.unread.map((each) => element("li", {}, each)));
    say(`${found.jobs.length} jobs`);
  }
  const reading = repeat(async (signal) => {
    found = await ask(`api/jobs?${new URLSearchParams({ namespace: namespace.value })}`, { signal });
    draw();
  }, PAUSE);
  return reading.leave;
}
