// When waiting gangs are expected to start, as lines over one span of time.
import { drawn, element, renew, time } from "./dom.js";

const MOST = 20;
const [WIDE, HIGH, MARK] = [1000, 12, 8];

const parsed = (text) => (text ? Date.parse(text) : NaN);
const known = (gang) => !Number.isNaN(parsed(gang.expectedStart?.at));

// The range of one gang, with a mark where it is expected; a range without an end goes to the edge.
function range({ at, earliest, latest }, from, whole, text) {
  const place = (moment) => Math.min(WIDE, Math.max(0, (WIDE * (moment - from)) / whole));
  const middle = place(parsed(at));
  const begin = earliest ? place(parsed(earliest)) : middle;
  const end = latest ? place(parsed(latest)) : earliest ? WIDE : middle;
  return drawn("svg", { class: "bar starts", viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": text },
    drawn("rect", { class: "ground", x: begin, y: 3, width: Math.max(0, end - begin), height: HIGH - 6 }),
    drawn("rect", { class: "used", x: Math.min(middle, WIDE - MARK), y: 0, width: MARK, height: HIGH }));
}

function row(gang, from, whole) {
  const found = gang.expectedStart;
  const name = `${gang.namespace}/${gang.name}`;
  const between = found.earliest ? `, between ${found.earliest} and ${found.latest || "a time that is not known"}` : "";
  return element("li", { title: found.why }, element("b", {}, name), range(found, from, whole, `${name}: expected at ${found.at}${between}`), time(found.at));
}

// Fills a list with the gangs that start first; where none is told a time it is left empty.
export function drawStarts(list, gangs) {
  const some = gangs.filter(known).sort((one, other) => parsed(one.expectedStart.at) - parsed(other.expectedStart.at)).slice(0, MOST);
  const ends = some.flatMap(({ expectedStart: each }) => [parsed(each.at), parsed(each.latest)]).filter((each) => !Number.isNaN(each));
  const from = Math.min(Date.now(), ...some.map(({ expectedStart: each }) => parsed(each.at)));
  const whole = Math.max(1, ...ends.map((each) => each - from));
  renew(list, ...some.map((gang) => row(gang, from, whole)));
}
