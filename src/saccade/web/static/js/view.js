// A lens: one model's view JSON on a card, with its picture, what it read there, its answer and its strip of looks.

import { actsOf, TOTAL } from "./acts.js";
import { barList } from "./bars.js";
import { element, percent, weight } from "./dom.js";
import { cellAt } from "./frames.js";
import { paintAct } from "./paint.js";
import { onTarget, scoresOfView } from "./scores.js";
import { slotTable } from "./slots.js";
import { Stage } from "./stage.js";

const ANSWERS_SHOWN = 5;
const THUMBNAIL = 132;

export class Lens {
  acts = [];

  /** `on` holds what to do when something happens: model(name), close(), act(key), hover(point or null). */
  constructor(on) {
    this.on = on;
    this.stage = new Stage();
    this.stage.element.addEventListener("pointermove", (event) => on.hover(this.stage.at(event)));
    this.stage.element.addEventListener("pointerleave", () => on.hover(null));
    this.chooser = element("select", { "aria-label": "model", onchange: () => on.model(this.chooser.value) });
    this.closer = element("button", {
      class: "icon",
      type: "button",
      text: "×",
      title: "Close this model",
      "aria-label": "Close this model",
      onclick: on.close,
    });
    this.about = element("p", { class: "about" });
    this.readout = element("p", { class: "readout" });
    this.answer = element("p", { class: "answer", "aria-live": "polite" });
    this.said = element("p", { class: "said", hidden: true });
    this.confidences = element("div");
    this.scores = element("div", { class: "scores" });
    this.strip = element("div", { class: "strip", role: "group", "aria-label": "looks" });
    this.slots = element("div", { class: "scroll" });
    this.element = element(
      "article",
      { class: "lens" },
      element("div", { class: "lens-head" }, this.chooser, this.closer),
      this.about,
      element("div", { class: "stage-frame" }, this.stage.element),
      this.readout,
      element("div", { class: "lens-body" }, element("div", {}, this.answer, this.said, this.confidences), this.scores),
      this.slots,
      this.strip,
    );
  }

  /** Offer `models` ({name, summary}) with `chosen` among them; a lens that is alone cannot be closed. */
  offer(models, chosen, alone) {
    this.chooser.replaceChildren(
      ...models.map(({ name }) => element("option", { value: name, text: name, selected: name === chosen })),
    );
    this.chooser.disabled = models.length < 2;
    this.closer.hidden = alone;
    this.about.textContent = this.about.title = models.find(({ name }) => name === chosen)?.summary ?? "";
  }

  /** Show no answer but `why` there is none. */
  refuse(why) {
    Object.assign(this, { view: null, acts: [], evidence: null });
    this.answer.replaceChildren(element("span", { class: "sure", text: why }));
    for (const part of [this.said, this.confidences, this.scores]) part.replaceChildren();
  }

  /** Take a new view; `masks` are those of all objects, where they are known. */
  take(view, evidence, masks) {
    this.view = view;
    this.acts = actsOf(view);
    this.evidence = evidence;
    const shares = [[view.answer, view.confidence ?? 0], ...view.alternatives].slice(0, ANSWERS_SHOWN);
    this.answer.replaceChildren(
      ...(view.question === null ? [] : [element("span", { class: "asked", text: `${view.question} → ` })]),
      view.words?.length
        ? element("strong", {}, ...this.#lighting(view.words))
        : element("strong", { text: view.answer }),
      element("span", { class: "sure", text: view.confidence === null ? "" : ` ${percent(view.confidence)} sure` }),
    );
    const ordered = shares.map(([label, value], rank) => ({ label, value, own: rank === 0 }));
    this.confidences.replaceChildren(...(view.alternatives.length ? [barList(ordered, "confidence")] : []));
    const labels = view.words ? [] : (view.labels ?? []);
    this.said.hidden = labels.length === 0;
    this.said.replaceChildren(...this.#lighting(labels.map(([word]) => word)));
    const total = this.acts.find((act) => act.key === TOTAL);
    const live = total?.map && evidence ? [onTarget(total.map, evidence, masks)] : [];
    const tables = live.length ? live : scoresOfView(view.scores);
    this.scores.replaceChildren(
      ...tables.flatMap(({ title, rows }) => [element("h4", { text: title }), barList(rows, title)]),
    );
  }

  /** `spoken` with spaces between; each lights its act when hovered or focused. */
  #lighting(spoken) {
    const stepped = this.acts.filter((act) => act.step !== undefined && act.key.includes(":"));
    return spoken.flatMap((word, step) => {
      const act = stepped.find((candidate) => candidate.step === step);
      const show = () => act && this.on.act(act.key);
      const light = { "data-act": act?.key, onpointerenter: show, onfocus: show, onclick: show };
      return [...(step ? [" "] : []), element("button", { type: "button", class: "word", text: word, ...light })];
    });
  }

  /** Paint what the page shows now: {picture, act (key), style, outline, selection, pointer}. */
  paint(shown) {
    const act = this.acts.find(({ key }) => key === shown.act) ?? null;
    const cell = act?.map && shown.pointer ? cellAt(act.map, shown.pointer.x, shown.pointer.y) : null;
    const evidence = shown.outline ? this.evidence : null;
    this.stage.paint({ ...shown, act, cell, evidence });
    this.stage.element.setAttribute("aria-label", this.#described(act));
    this.readout.textContent = this.#read(shown, act, cell);
    for (const word of this.element.querySelectorAll(".word"))
      word.setAttribute("aria-current", String(word.dataset.act === shown.act));
    this.#paintStrip(shown);
    const slots = this.acts.filter((candidate) => candidate.slots);
    this.slots.replaceChildren(...(slots.length ? [slotTable(slots, shown.act, shown.style.palette)] : []));
  }

  #described(act) {
    if (!this.view) return "waiting for the model";
    return `${this.view.model}: ${this.view.answer}; ${act ? `map of ${act.title}` : "no map"}`;
  }

  #read(shown, act, cell) {
    if (!this.view) return "";
    if (!act) return `${this.view.model} has no look of this name`;
    const place = cell && `column ${cell.column + 1}, row ${cell.row + 1}`;
    if (cell) return `${act.title} · ${place} of ${act.map.grid.join("×")} · weight ${weight(cell.value)}`;
    return `${act.title} · ${act.note}${act.map ? ` · peak ${weight(act.map.peak)}` : ""}`;
  }

  /** Repainted only when something of it changed: while the pointer moves, nothing does. */
  #paintStrip(shown) {
    const { picture, style } = shown;
    const painted = [picture, this.acts, style.palette, style.opacity, style.cells, shown.act];
    if (this.painted && painted.every((value, number) => value === this.painted[number])) return;
    this.painted = painted;
    const drawable = this.acts.filter((act) => act.map || act.box);
    while (this.strip.children.length > drawable.length) this.strip.lastChild.remove();
    while (this.strip.children.length < drawable.length) this.strip.append(thumbnail());
    drawable.forEach((act, number) => {
      const button = this.strip.children[number];
      const canvas = button.firstChild;
      const ratio = picture.height / picture.width;
      Object.assign(canvas, { width: THUMBNAIL, height: Math.max(1, Math.round(THUMBNAIL * ratio)) });
      const area = { x: 0, y: 0, width: canvas.width, height: canvas.height };
      paintAct(canvas.getContext("2d"), area, picture, act, style);
      button.lastChild.textContent = act.said ?? act.title;
      button.title = act.title;
      button.setAttribute("aria-label", act.title);
      button.setAttribute("aria-pressed", String(act.key === shown.act));
      button.onclick = () => this.on.act(act.key);
    });
  }
}

function thumbnail() {
  return element("button", { type: "button", class: "thumbnail" }, element("canvas"), element("span"));
}
