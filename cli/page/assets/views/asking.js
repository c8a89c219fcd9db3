// Reads answers of the server of the page, at once or piece by piece, and again and again.
import { Fault, ask, call } from "../session.js";

export { Fault, ask };

// Yields the pieces of an answer as they come. The next one is read once the last is dealt with.
export async function* pieces(path, signal) {
  const answer = await call(path, { signal });
  if (!answer.ok) throw new Fault(answer.status, (await answer.json().catch(() => ({}))).fault ?? `${answer.status} ${answer.statusText}`);
  const reader = answer.body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export async function* lines(path, signal) {
  const decoder = new TextDecoder();
  let left = "";
  for await (const piece of pieces(path, signal)) {
    const found = (left + decoder.decode(piece, { stream: true })).split("\n");
    left = found.pop();
    yield* found.filter(Boolean);
  }
  if (left) yield left;
}

export function say(text, bad = false) {
  const state = document.getElementById("state");
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("bad", bad);
}

// Reads until the view is left, and again after each pause; a fault is said, and what was seen stays.
export function repeat(read, pause) {
  const leaving = new AbortController();
  let timer;
  async function once() {
    clearTimeout(timer);
    timer = undefined;
    try {
      await read(leaving.signal);
    } catch (error) {
      if (!leaving.signal.aborted) say(error.message, true);
      if (error.status === 401) return; // whoever gave no token is not asked again and again
    }
    if (!leaving.signal.aborted && timer === undefined) timer = setTimeout(next, pause);
  }
  // Nobody looks at a page that is hidden.
  function next() {
    if (document.hidden) timer = setTimeout(next, pause);
    else once();
  }
  once();
  return { again: once, leave: () => { leaving.abort(); clearTimeout(timer); } };
}
