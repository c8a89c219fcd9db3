// Who the person is: a token or a secret in this tab's memory alone, and calls that send it.
"use strict";

const WORDS = {
  token: {
    title: "Log in",
    label: "Token of Kubernetes",
    help: "It stays in the memory of this tab. kubectl create token, or your log-in, gives one.",
  },
  secret: {
    title: "Allow changes",
    label: "Secret of this start",
    help: "It stands behind #secret= in the address that muster dashboard printed.",
  },
};

const known = { token: "", secret: secretOfAddress() };
const asking = {};

// The secret leaves the address at once: what is shared or kept of it must not open the page.
function secretOfAddress() {
  const found = /^#secret=([\w-]+)$/.exec(location.hash);
  if (found) history.replaceState(null, "", location.pathname + location.search);
  return found ? found[1] : "";
}

// Why something was not done: the status of the answer, 0 without one, and the line to show.
export class Fault extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Sends one request of the page, and asks for what it needs; gives the Response, which may be a fault.
export async function call(path, options = {}) {
  for (;;) {
    const used = { ...known };
    const answer = await sent(path, options);
    const needs = answer.ok ? "" : await needed(answer);
    if (!needs) return answer;
    if (known[needs] === used[needs]) await askOnce(needs, used[needs] !== "");
  }
}

// The same, as JSON; throws a Fault for what is none.
export async function ask(path, options) {
  const answer = await call(path, options);
  const found = await answer.json().catch(() => null);
  if (answer.ok && found !== null) return found;
  throw new Fault(answer.status, found?.fault ?? `${answer.status} ${answer.statusText}`);
}

// Sends a change, with its body as JSON.
export function change(method, path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method, headers, body: JSON.stringify(body) });
}

// Who the person is, as the API server says it.
export const session = () => ask("api/session");

async function sent(path, options) {
  const headers = new Headers(options.headers);
  if (known.token) headers.set("Authorization", `Bearer ${known.token}`);
  if (options.method && options.method !== "GET") headers.set("X-Muster-Write", known.secret || "1");
  const address = new URL(path.replace(/^\/+/, ""), document.baseURI);
  try {
    return await fetch(address, { ...options, headers, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Fault(0, "the page is not reached: muster dashboard does not answer, or its proxy wants a log-in");
  }
}

async function needed(answer) {
  if (answer.status !== 401 && answer.status !== 403) return "";
  const found = await answer.clone().json().catch(() => ({}));
  return found.needs in WORDS ? found.needs : "";
}

// One dialog, however many calls wait for it.
function askOnce(what, again) {
  asking[what] ??= prompted(what, again).finally(() => delete asking[what]);
  return asking[what];
}

function prompted(what, again) {
  const { dialog, input } = dialogFor(what, again);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve, reject) => {
    dialog.addEventListener("close", () => {
      known[what] = dialog.returnValue === "given" ? input.value.trim() : known[what];
      dialog.remove();
      if (dialog.returnValue === "given") resolve();
      else reject(new Fault(401, `nothing was sent: ${WORDS[what].label} is missing`));
    });
  });
}

function dialogFor(what, again) {
  const words = WORDS[what];
  const [dialog, form, input] = ["dialog", "form", "input"].map((each) => document.createElement(each));
  dialog.className = "ask";
  dialog.setAttribute("aria-labelledby", "ask-title");
  form.method = "dialog";
  Object.assign(input, { id: "ask-value", type: "password", required: true, autocomplete: "off", spellcheck: false });
  input.setAttribute("aria-describedby", "ask-help");
  const refused = again ? "What was given is refused or has expired. " : "";
  form.append(
    part("h2", words.title, { id: "ask-title" }),
    part("label", words.label, { htmlFor: "ask-value" }),
    input,
    part("p", refused + words.help, { id: "ask-help" }),
    part("button", "Go on", { type: "submit", value: "given" }),
    part("button", "Not now", { type: "submit", value: "", formNoValidate: true }),
  );
  dialog.append(form);
  return { dialog, input };
}

function part(name, text, fields) {
  return Object.assign(document.createElement(name), { textContent: text }, fields);
}
