// The sections of counters as a ring: one colour for each owner.

import { el } from "./dom.js";
import { counted, grouped } from "./values.js";

const SVG = "http://www.w3.org/2000/svg";
const SECTIONS = 16_384;
/** Colours of owners, which the style sheet defines. */
export const COLOURS = 8;

const svg = (name, attributes, ...children) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

/** Returns the ring of these ranges, and its legend. `nameOf` names a member, `placeOf` gives its colour. */
export function ring(ranges, nameOf, placeOf) {
  const owners = new Map();
  for (const { first, last, member } of ranges) {
    const owner = owners.get(member) ?? { member, count: 0, path: "" };
    owner.count += last - first + 1;
    owner.path += arc(first / SECTIONS, (last + 1) / SECTIONS);
    owners.set(member, owner);
  }
  const all = [...owners.values()].sort((a, b) => placeOf(a.member) - placeOf(b.member));
  const text = all.map(({ member, count }) => `${nameOf(member)} ${grouped(count)}`).join(", ");
  const drawn = svg("svg", {
    viewBox: "-50 -50 100 100",
    class: "ring",
    role: "img",
    "aria-label": `Owners of the counter sections: ${text}`,
  });
  for (const { member, count, path } of all) {
    drawn.append(
      svg(
        "path",
        { d: path, class: `owner-${placeOf(member) % COLOURS}` },
        svg("title", {}, `${nameOf(member)}: ${counted(count, "section")}`),
      ),
    );
  }
  drawn.append(
    svg("text", { "text-anchor": "middle", y: "-1" }, grouped(SECTIONS)),
    svg("text", { "text-anchor": "middle", y: "9", class: "small" }, "sections"),
  );
  const legend = all.map(({ member, count }) =>
    el(
      "li",
      {},
      el("span", { class: `key owner-${placeOf(member) % COLOURS}` }),
      nameOf(member),
      el("small", {}, `${counted(count, "section")}, ${((count * 100) / SECTIONS).toFixed(1)} %`),
    ),
  );
  return el("div", { class: "ring-box" }, drawn, el("ul", { class: "ring-legend" }, legend));
}

/** Returns the path of an arc between two shares of the circle, from its top, clockwise. */
function arc(from, to) {
  const [outer, inner] = [48, 30];
  // A whole circle has no arc of its own: its ends are one point.
  const end = Math.min(to, from + 0.999_99);
  const at = (share, radius) =>
    `${(radius * Math.sin(2 * Math.PI * share)).toFixed(3)} ${(-radius * Math.cos(2 * Math.PI * share)).toFixed(3)}`;
  const long = end - from > 0.5 ? 1 : 0;
  return `M${at(from, outer)}A${outer} ${outer} 0 ${long} 1 ${at(end, outer)}L${at(end, inner)}A${inner} ${inner} 0 ${long} 0 ${at(from, inner)}Z`;
}
