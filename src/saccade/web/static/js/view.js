// A lens: one model's view JSON on a card, with its picture, what it read there, its answer and its strip of looks.

import { actsOf, measuresOf, spokenIn, TOTAL } from "./acts.js";
import { Brush } from "./brush.js";
import { paintHeat } from "./colours.js";
import { button, element, options, percent, weight } from "./dom.js";
import { cellAt } from "./frames.js";
import { maskNamed, onTarget } from "./scores.js";
import { Stage } from "./stage.js";
import { Strip } from "./strip.js";

const ANSWERS_SHOWN = 5;

export class Lens {
  acts = [];

  /**
   * `on` holds what to do when something happens: model(name), close(), act(key), fit(), hover(point or null),
   * edit(attention or null).
   */
  constructor(on) {
    this.on = on;
    this.stage = new Stage();
    this.brush = new Brush(on);
    this.stage.element.addEventListener("pointermove", (event) => on.hover(this.stage.at(event)));
    this.stage.element.addEventListener("pointerleave", () => on.hover(null));
    this.brush.attach(this.stage);
    this.chooser = element("select", { "aria-label": "model", onchange: () => on.model(this.chooser.value) });
    const closes = "Close this model";
    this.closer = button("×", on.close, { class: "icon", title: closes, "aria-label": closes });
    this.frame = element("div", { class: "stage-frame" }, this.stage.element);
    this.about = element("p", { class: "about" });
    this.readout = element("p", { class: "readout" });
    this.answer = element("p", { class: "answer", "aria-live": "polite" });
    this.said = element("p", { class: "said", hidden: true });
    this.notes = element("p", { class: "hint" });
    this.fit = element("p", { class: "hint fit", role: "status" });
    this.confidences = element("div");
    this.scores = element("div", { class: "scores" });
    this.fitter = button("Show such a scene", on.fit);
    this.advised = element("span");
    this.advice = element("p", { class: "advice", "aria-live": "polite" }, this.advised, " ", this.fitter);
    this.strip = new Strip(on.act);
    this.slots = element("div", { class: "scroll" });
    const words = element("div", {}, this.answer, this.said, this.fit, this.advice, this.confidences, this.notes);
    this.element = element(
      "article",
      { class: "lens" },
      element("div", { class: "lens-head" }, this.chooser, this.closer),
      this.about,
      this.frame,
      this.readout,
      this.brush.element,
      element("div", { class: "lens-body" }, words, this.scores),
      this.slots,
      this.strip.element,
    );
  }

  /** Offer `models` ({name, summary}) with `chosen` among them; a lens that is alone cannot be closed. */
  offer(models, chosen, alone) {
    const names = models.map(({ name }) => name);
    if (names.join() !== this.offered) {
      this.offered = names.join(); // a list that somebody has open stays as it is
      this.chooser.replaceChildren(...options(names));
    }
    this.chooser.value = chosen;
    this.chooser.disabled = models.length < 2;
    this.closer.hidden = alone;
    this.about.textContent = this.about.title = models.find(({ name }) => name === chosen)?.summary ?? "";
  }

  /** Say `advice` on the scene, empty for none; `canFit`: there is a better one to show. */
  advise(advice, canFit) {
    if (this.advised.textContent !== advice) this.advised.textContent = advice; // read aloud when it changes
    this.advice.hidden = !advice;
    this.fitter.hidden = !canFit;
  }

  /** Show no answer but `why` there is none. */
  refuse(why) {
    Object.assign(this, { view: null, acts: [], evidence: null, shown: null });
    this.brush.refuse();
    this.answer.replaceChildren(element("span", { class: "sure", text: why }));
    for (const part of [this.said, this.fit, this.confidences, this.scores, this.notes]) part.replaceChildren();
  }

  /**
   * Take a new view; `masks` are those of all objects, where they are known, and `digits` what they are. `isLive`: the
   * model can be asked again, with edited attention too.
   */
  take({ view, evidence, masks, digits }, isLive = false) {
    Object.assign(this, { view, evidence, masks, digits, acts: actsOf(view), scored: undefined });
    this.brush.take(view, this.acts, isLive);
    const isSentence = view.kind === "sentence";
    const spoken = spokenIn(view) ?? [];
    const shares = [[view.answer, view.confidence ?? 0], ...view.alternatives].slice(0, ANSWERS_SHOWN);
    this.answer.replaceChildren(
      ...(view.question === null ? [] : [element("span", { class: "asked", text: `${view.question} → ` })]),
      isSentence && spoken.length
        ? element("strong", {}, ...this.#lighting(spoken))
        : element("strong", { text: view.answer }),
      element("span", { class: "sure", text: view.confidence === null ? "" : ` ${percent(view.confidence)} sure` }),
    );
    const ordered = shares.map(([label, value], rank) => ({ label, value, own: rank === 0 }));
    this.confidences.replaceChildren(...(view.alternatives.length ? [barList(ordered, "confidence")] : []));
    const warning = view.fit?.warning;
    this.fit.classList.toggle("unlike", Boolean(warning));
    this.fit.textContent = view.fit?.sentence ?? "not known whether this is like what the model learned from";
    const way = (view.on_the_way ?? []).map(([at, word, share]) => `${at} ${word} ${percent(share ?? 0)}`).join(", ");
    this.notes.textContent = [way, ...(view.notes ?? []).filter((note) => note !== warning)].filter(Boolean).join("; ");
    this.said.hidden = isSentence || spoken.length === 0;
    this.said.replaceChildren(...(isSentence ? [] : this.#lighting(spoken)));
  }

  /** `spoken` with spaces between; each lights its beat when hovered or focused. */
  #lighting(spoken) {
    return spoken.flatMap((word, beat) => {
      const show = () => this.#light(beat);
      const light = { class: "word", "data-beat": beat, onpointerenter: show, onfocus: show };
      return [...(beat ? [" "] : []), button(word, show, light)];
    });
  }

  /** Show this beat's act of the look that is shown now, or else the one that attends. */
  #light(beat) {
    const within = this.acts.filter((act) => act.beat === beat);
    const found = within.find(({ look }) => look === this.shown?.look) ?? within.find(({ role }) => role !== "input");
    if (within.length) this.on.act((found ?? within[0]).key);
  }

  /**
   * Paint what the page shows now: {picture (null: it read something else), act (key), style, outline, pointer …}.
   * `hasPanel`: looks over slots, and notes on what was read, are shown elsewhere.
   */
  paint(shown) {
    const act = this.acts.find(({ key }) => key === shown.act) ?? null;
    const cell = act?.map && shown.pointer ? cellAt(act.map, shown.pointer.x, shown.pointer.y) : null;
    const named = this.#named(act);
    this.shown = act;
    this.brush.shows(act);
    this.frame.hidden = this.strip.element.hidden = !shown.picture;
    if (shown.picture) {
      const ring = this.brush.ring(act, shown.pointer);
      this.stage.paint({ ...shown, act, cell, ring, evidence: shown.outline ? (named ?? this.evidence) : null });
      this.stage.describe(this.#described(act), shown.selection, this.brush.keys);
      this.strip.paint(shown, this.acts, this.view?.labels);
    }
    this.readout.hidden = this.notes.hidden = Boolean(shown.hasPanel);
    this.readout.textContent = this.#read(shown, act, cell);
    for (const word of this.element.querySelectorAll(".word"))
      word.setAttribute("aria-current", String(word.dataset.beat === String(act?.beat)));
    this.#score(act, named);
    const slots = shown.hasPanel ? [] : this.acts.filter((candidate) => candidate.slots);
    this.slots.replaceChildren(...(slots.length ? [slotTable(slots, shown.act, shown.style.palette)] : []));
  }

  /** The pixels of what the word or label of `act` names, as evidence; null where it names nothing that is known. */
  #named(act) {
    const mask = act?.said !== undefined && this.masks ? maskNamed(act.said, this.digits, this.masks) : null;
    return mask && { ...this.evidence, mask };
  }

  /** How much of the map lies on what is named, or else of the total on the evidence; made once for each act. */
  #score(act, named) {
    if (!this.view || this.scored === act) return;
    this.scored = act;
    const total = this.acts.find(({ key }) => key === TOTAL)?.map;
    let table = null;
    if (named && act.map) table = onTarget(act.map, named, this.masks, `Attention on “${act.said}”`);
    else if (total && this.evidence) table = onTarget(total, this.evidence, this.masks);
    if (!table) return this.scores.replaceChildren();
    const { title, rows } = table;
    if (this.view.edited) rows[0].label = "edited map";
    return this.scores.replaceChildren(element("h4", { text: title, "aria-level": 2 }), barList(rows, title));
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
    return [act.title, act.place, act.note, measuresOf(act)].filter(Boolean).join(" · ");
  }
}

/** A list of {label, value (0..1), own}; the own row stands out. */
function barList(rows, name) {
  const items = rows.map(({ label, value, own }) => {
    const fill = element("span", { class: "fill" });
    fill.style.inlineSize = `${100 * Math.min(1, Math.max(0, value))}%`;
    return element(
      "li",
      { class: own ? "own" : "" },
      element("span", { class: "label", text: label, title: label }),
      element("span", { class: "track" }, fill),
      element("span", { class: "number", text: percent(value) }),
    );
  });
  return element("ul", { class: "bar-list", "aria-label": name }, ...items);
}

/** The table of acts over the same slots of text: sentences down, hops across; `current` is the key of the chosen act. */
function slotTable(acts, current, palette) {
  const texts = acts[0].slots.texts;
  const head = element("tr", {}, element("th", { scope: "col", text: "" }));
  for (const act of acts) {
    head.append(element("th", { scope: "col", text: act.title, class: act.key === current ? "current" : "" }));
  }
  const row = (text, weightIn) => {
    const cells = acts.map((act) => {
      const cell = element("td");
      paintHeat(cell, weightIn(act.slots), act.slots.peak, palette);
      return cell;
    });
    return element("tr", {}, element("th", { scope: "row", text }), ...cells);
  };
  const filled = [...texts.keys()].filter((slot) => texts[slot]);
  const rows = filled.map((slot) => row(texts[slot], ({ values }) => values[slot]));
  const empty = texts.length - filled.length;
  if (acts.some(({ slots }) => emptyWeight(slots) > 0)) rows.push(row(`empty slots (${empty})`, emptyWeight));
  return element("table", { class: "slots" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

/** The weight on all slots without a text. */
function emptyWeight({ values, texts }) {
  return values.reduce((sum, value, slot) => (texts[slot] ? sum : sum + value), 0);
}
