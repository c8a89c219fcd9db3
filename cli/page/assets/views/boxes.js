// Nodes as boxes in a grid: each has a picture of squares, and says in words what they are.
import { drawn, element } from "./dom.js";

export const [SIDE, GAP, ROW] = [14, 3, 8];
export const WIDTH = ROW * (SIDE + GAP);

export const square = (kind, at, text, rx = 2) => drawn("rect", {
  class: kind, x: (at % ROW) * (SIDE + GAP) + 1, y: Math.floor(at / ROW) * (SIDE + GAP) + 1, width: SIDE, height: SIDE, rx,
}, drawn("title", {}, text));

export function box(name, beside, text, shapes, squares) {
  const height = Math.ceil(Math.max(1, squares) / ROW) * (SIDE + GAP) + 1;
  return element("li", {}, element("b", {}, name), beside && element("span", { class: "quiet" }, beside),
    drawn("svg", { class: "node", viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, role: "img", "aria-label": text }, ...shapes));
}

// One entry of a legend.
export const entry = (kind, rx, ...text) => element("li", {},
  drawn("svg", { class: "node swatch", viewBox: "0 0 16 16", width: 16, "aria-hidden": true },
    drawn("rect", { class: kind, x: 1, y: 1, width: 14, height: 14, rx })), ...text);
