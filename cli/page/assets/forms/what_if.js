// What changes of the cluster would do to its gangs; nothing is changed.
import { change } from "../session.js";
import { ask } from "../views/asking.js";
import { element, fillTable, notes, renew, scrolled, section, time } from "../views/dom.js";
import { Fields } from "./fields.js";

const FIELDS = [
  ["cordon", "Nodes that take no new pods", "list", "names, by commas"],
  ["drain", "Nodes whose pods go too", "list", "names, by commas"],
  ["addNodes", "More nodes", "list", "so many like one that there is: 4=gpu-1"],
  ["quota", "Other quotas", "list", "QUEUE:RESOURCE=AMOUNT, as research:nvidia.com/gpu=32"],
  ["stop", "Gangs that end now", "list", "NAMESPACE/NAME, by commas"],
  ["namespace", "Namespace", "text", "of gangs and objects that name none"],
  ["yaml", "Submitted", "long", "Ray clusters, jobs or services, as YAML"],
];

const EFFECTS = {
  StartsNow: "starts now", StopsNow: "stops now", LosesPods: "loses pods", Ends: "ends", Sooner: "sooner",
  Later: "later", NoMoreKnown: "not known any more", Known: "known now", StopsLater: "stops later",
};
const BAD = new Set(["StopsNow", "LosesPods", "StopsLater"]);

function moves(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const minutes = Math.round(Math.abs(seconds) / 60);
  const text = minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${text} ${seconds < 0 ? "sooner" : "later"}`;
}

const stamp = (text) => (text ? time(text) : "");

const GANGS = [
  ["Gang", (each) => `${each.namespace}/${each.name}`],
  ["Queue", (each) => each.queue],
  ["Effect", (each) => element("span", { class: BAD.has(each.effect) && "bad" }, EFFECTS[each.effect] ?? each.effect)],
  ["Start", (each) => stamp(each.after)],
  ["Without the changes", (each) => stamp(each.before)],
  ["Moves", (each) => moves(each.laterSeconds), "number"],
  ["Sure", (each) => each.sure ?? ""],
  ["Why", (each) => each.why, "text"],
];

const moved = (before, after) => (before === after ? String(after) : `${before} → ${after}`);

const DEVICES = [
  ["Resource", (each) => each.resource],
  ["All", (each) => moved(each.before, each.after), "number"],
  ["Free", (each) => moved(each.freeBefore, each.freeAfter), "number"],
  ["On nodes that take none", (each) => moved(each.offBefore, each.offAfter), "number"],
  ["Stranded", (each) => moved(each.strandedBefore, each.strandedAfter), "number"],
];

function shown(found) {
  const gangs = scrolled("effects");
  const devices = scrolled("devices");
  const caption = found.effects.length ? "" : `nothing starts, stops or moves; ${found.waiting} gangs wait`;
  fillTable(gangs.firstChild, GANGS, found.effects, caption);
  fillTable(devices.firstChild, DEVICES, found.devices, found.devices.length ? "" : "no devices");
  return [
    element("p", {}, `If: ${found.changes.join(", ")}. Of the picture of `, time(found.taken), ", run forward to ", time(found.reached), "."),
    notes([...found.notes, ...found.unread]),
    section("h3", "Gangs", "effects", gangs),
    section("h3", "Devices", "devices", devices),
  ];
}

export function whatIf(main) {
  const fields = new Fields("What would be changed, all at once", FIELDS);
  const fault = element("p", { role: "alert", class: "bad" });
  const answer = element("div", { class: "plan", role: "region", "aria-label": "What it would do", tabindex: -1 });
  const form = element("form", { class: "manage" }, fields.node, element("p", {}, element("button", { type: "submit" }, "Show what it would do")));
  main.append(section("h2", "What if", "form", element("p", { class: "quiet" }, "The coordinator's own rules are run forward on a picture of the cluster, with the changes and without them. Nothing is changed."), form, fault, answer));

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    renew(fault);
    renew(answer, element("p", { role: "status" }, "The cluster is read, and run forward twice: this may take half a minute."));
    form.inert = true;
    try {
      renew(answer, ...shown(await change("POST", "api/what-if", fields.changed)));
    } catch (error) {
      renew(answer);
      renew(fault, error.message);
    } finally {
      form.inert = false;
    }
    answer.focus();
  });
  form.addEventListener("input", () => renew(answer));
  ask("api/session").then(({ namespace }) => fields.rebase({ namespace }), () => {});
}
