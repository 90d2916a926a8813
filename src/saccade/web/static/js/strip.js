// The strip of looks: a thumbnail for each act; where looks share beats, a row for each beat under what was said in it.

import { element, percent } from "./dom.js";
import { paintAct } from "./paint.js";

const THUMBNAIL = 132;
const EDGE = 4; // pixels beside a thumbnail that was scrolled to: its outline

export class Strip {
  #painted = [];
  #shape = null;

  /** `choose(key)` is called with the act of a thumbnail that was pressed. */
  constructor(choose) {
    this.choose = choose;
    this.element = element("div", { class: "strip", role: "group", "aria-label": "looks" });
  }

  /** Paint `acts` over the picture; `act` is the chosen one's key. Nothing is done where nothing of it changed. */
  paint({ picture, style, act: current }, acts, labels) {
    const seen = [picture, acts, style.palette, style.opacity, style.cells, current];
    if (seen.every((value, number) => value === this.#painted[number])) return;
    const before = this.#painted.at(-1);
    this.#painted = seen;
    const drawable = acts.filter((act) => act.map || act.box || act.boxes);
    this.#build(drawable);
    drawable.forEach((act, number) => this.#paintThumbnail(this.thumbnails[number], act, picture, style, current));
    const lit = drawable.find(({ key }) => key === current)?.beat ?? null;
    for (const { row, beat } of this.rows) {
      row.toggleAttribute("data-lit", beat !== null && beat === lit);
      this.#entitle(row.firstChild, drawable.find((act) => act.beat === beat), labels?.[beat]);
    }
    if (before && before !== current) this.#reveal(drawable.findIndex(({ key }) => key === current));
  }

  /** Bring a thumbnail into the strip's own window; the page stays where it is. */
  #reveal(number) {
    if (number < 0) return;
    const [window, inner] = [this.element, this.thumbnails[number]].map((shown) => shown.getBoundingClientRect());
    const beyond = Math.max(0, inner.right - window.right) - Math.max(0, window.left - inner.left);
    if (beyond) this.element.scrollLeft += beyond + Math.sign(beyond) * EDGE;
  }

  /** Thumbnails and rows for acts of this shape; those of the same shape as before keep theirs. */
  #build(acts) {
    const hasRows = acts.some(({ place }) => place);
    const shape = acts.map(({ key }) => key).join() + hasRows;
    if (shape === this.#shape) return;
    this.#shape = shape;
    this.thumbnails = acts.map(thumbnail);
    this.rows = [];
    this.element.classList.toggle("in-rows", hasRows);
    if (!hasRows) return this.element.replaceChildren(...this.thumbnails);
    for (const beat of new Set(acts.map((act) => act.beat))) {
      const within = this.thumbnails.filter((_, number) => acts[number].beat === beat);
      this.rows.push({ beat, row: element("div", { class: "beat", role: "group" }, element("h4"), ...within) });
    }
    return this.element.replaceChildren(...this.rows.map(({ row }) => row));
  }

  #entitle(heading, { place, said }, label) {
    const sure = place && typeof label?.[1] === "number" ? percent(label[1]) : "";
    heading.replaceChildren(element("strong", { text: (place && said) ?? "all" }), element("span", { text: sure }));
    heading.parentElement.setAttribute("aria-label", place ? `${said ?? "looks"}, ${place}` : "all labels");
  }

  #paintThumbnail(button, act, picture, style, current) {
    const [canvas, words] = button.children;
    const height = Math.max(1, Math.round((THUMBNAIL * picture.height) / picture.width));
    Object.assign(canvas, { width: THUMBNAIL, height });
    paintAct(canvas.getContext("2d"), { x: 0, y: 0, width: THUMBNAIL, height }, picture, act, style);
    words.textContent = act.name ?? act.said ?? act.title;
    button.title = act.place ? `${act.title} · ${act.place}` : act.title;
    button.setAttribute("aria-label", button.title);
    button.setAttribute("aria-pressed", String(act.key === current));
    button.onclick = () => this.choose(act.key);
  }
}

function thumbnail() {
  return element("button", { type: "button", class: "thumbnail" }, element("canvas"), element("span"));
}
