// Sends a form: what it would do is shown first, and done once the person agrees to just that.
import { Fault, change } from "../session.js";
import { button, element, section } from "../views/dom.js";

const FITS = { Yes: "It would start now.", No: "It would not start now, and wait.", Unknown: "It is not known whether it would start now." };

function verdict(fit) {
  const [found] = fit.objects;
  const more = [found.reason, found.message].filter(Boolean).join(": ");
  const most = found.largestThatFit.map((each) => `${each.group}: ${each.fit ?? "none"} of ${each.asked} replicas would fit`);
  return [`${FITS[found.fits]} ${more}`.trim(), ...most, ...found.notes, ...fit.notJudged];
}

const list = (title, texts) => (texts.length ? [element("h3", {}, title), element("ul", {}, ...texts.map((each) => element("li", {}, each)))] : []);

function planned(told) {
  const yaml = told.yaml ? [element("details", {}, element("summary", {}, "As YAML"), element("pre", { class: "yaml", tabindex: 0 }, told.yaml))] : [];
  return [
    ...list("Whether it starts", told.fit ? verdict(told.fit) : []),
    ...list("What it does", told.said),
    ...list("Note", told.notes),
    ...(told.asks ? [element("p", { class: "bad" }, told.asks)] : []),
    ...yaml,
  ];
}

// Shows a form in `main`. `path` and `body` say what is sent, `act` is the word for doing it, `done` is
// called after it, and `conflict` where somebody else changed the object meanwhile.
export function sending(main, { title, parts, path, body, act, done, conflict, atOnce = false }) {
  const fault = element("p", { role: "alert", class: "bad" });
  const plan = element("div", { class: "plan", role: "region", "aria-label": "What would be done", tabindex: -1 });
  const check = element("button", { type: "submit" }, "Show what it would do");
  const form = element("form", { class: "manage" }, ...parts, element("p", {}, check));
  main.append(section("h2", title, "form", form, fault, plan));
  let sent = null;

  async function trying(work) {
    fault.textContent = "";
    form.inert = true;
    let failed = null;
    try {
      return await work();
    } catch (error) {
      failed = error;
      fault.textContent = error.message;
      if (error instanceof Fault && error.status === 409 && conflict) await conflict(error).catch((other) => { fault.textContent = other.message; });
      return null;
    } finally {
      form.inert = false;
      if (failed) check.focus();
    }
  }

  async function preview() {
    plan.replaceChildren();
    sent = { path: path(), body: body() };
    const told = await trying(() => change("POST", sent.path, sent.body));
    if (!told) return;
    plan.replaceChildren(...planned(told));
    if (told.refused) fault.textContent = told.refused;
    else if (!told.nothing) plan.append(element("p", {}, button(act, () => carryOut(told.asks))));
    (plan.querySelector("button") ?? plan).focus();
  }

  async function carryOut(agreed) {
    const found = await trying(() => change("POST", sent.path, { ...sent.body, agreed }));
    if (!found) return plan.replaceChildren();
    plan.replaceChildren(element("p", { role: "status" }, found.done));
    done(found.done);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    preview();
  });
  form.addEventListener("input", () => plan.replaceChildren());
  if (atOnce) preview();
  else form.querySelector("input, select, textarea")?.focus();
  return { again: () => plan.replaceChildren(), say: (text) => { fault.textContent = text; } };
}
