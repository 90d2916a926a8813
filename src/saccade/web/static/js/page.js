// The page: one store, one or more lenses, and the source of answers, tied together.

import { actsOf, TOTAL } from "./acts.js";
import { paintHeat } from "./colours.js";
import { Composer } from "./composer.js";
import { Controls, listenForKeys, Player } from "./controls.js";
import { options, part } from "./dom.js";
import { adviceOn, FIRST } from "./examples.js";
import { hasExample, isReplaceable, listenForFiles, openWith } from "./opening.js";
import { Panels } from "./panels.js";
import { answerOf, answerOfRecord, PICTURE, Questions, refusalOf, shownTo, subjectOf } from "./questions.js";
import { savePage, savePng, saveRecord } from "./share.js";
import { Latest, Notices, Store } from "./store.js";
import { Lens } from "./view.js";

const MOST_LENSES = 4;
const ASKS_AGAIN = ["scene", "question", "mode", "picture", "models"];
const INPUT_ASKS_AGAIN = ["inputs", "mode", "models"];

export class Page {
  entries = []; // {lens, model, picture, latest}, one for each card

  /** `source` answers (null: a viewer of records only); `glyphs` draws digits; `shell(views)` makes a page of views. */
  constructor(root, { source, glyphs, shell }) {
    Object.assign(this, { root, source, glyphs });
    this.store = new Store({
      mode: "record",
      models: [],
      scene: FIRST.scene,
      isOwn: false, // whether somebody composed the scene
      selected: 0,
      question: FIRST.question,
      picture: null,
      reads: PICTURE, // what the models on the page are shown
      inputs: {}, // address of a panel → {input, question}, what it made
      views: [],
      act: TOTAL,
      pointer: null,
      palette: "saccade",
      opacity: 0.65,
      outline: true,
      cells: false,
    });
    this.notices = new Notices(root);
    this.player = new Player(root, this.store);
    this.composer = new Composer(root, this.store);
    this.questions = new Questions(root, this.store);
    this.controls = new Controls(root, this.store);
    this.panels = new Panels(root, {
      given: (address) => this.#givenTo(address),
      wrong: (error) => this.notices.say(error),
    });
    this.lastModels = new Map(); // what models read → those that were shown last
    this.lenses = part(root, "lenses");
    this.adder = part(root, "compare");
    this.adder.addEventListener("change", () => this.#setModels([...this.store.state.models, this.adder.value]));
    this.#listenForSaving(shell);
    listenForFiles(root, {
      picture: (picture) =>
        this.#modelsThatRead(PICTURE).length
          ? this.store.set({ picture, mode: "picture" })
          : this.notices.say("this page has no model to show a picture to; open a record"),
      views: (views) => this.showViews(views),
      wrong: (error) => this.notices.say(error),
    });
    listenForKeys(root, {
      composer: this.composer,
      player: this.player,
      ask: (question) => this.store.set({ question }),
      toggle: (name) => this.controls.toggle(name),
    });
    this.store.subscribe((state, changes) => this.#update(state, changes));
  }

  /** Show the models called `models`, side by side, what the first of them opens with. */
  start(models) {
    part(this.root, "where").textContent = `Models run ${this.source.label}`;
    this.composer.offer(this.source.backgrounds);
    const things = new Set(this.source.models.map(shownTo));
    this.root.dataset.pictures = String(things.has(PICTURE));
    this.controls.offer([...things].filter((thing) => thing !== PICTURE));
    const first = this.#model(models[0]);
    this.store.set({ mode: hasExample(this.source, first) ? "picture" : "scene", models });
    openWith(first, this);
  }

  /** Show saved views; no source is asked. */
  showViews(views) {
    this.notices.clear();
    this.store.set({ views, mode: "record", act: TOTAL });
  }

  #listenForSaving(shell) {
    const keep = {
      "save-png": (all) => savePng(all, this.#style()),
      "save-record": saveRecord,
      "save-page": (all) => savePage(all, shell),
    };
    for (const [name, save] of Object.entries(keep)) {
      part(this.root, name).addEventListener("click", async () => {
        try {
          await save(this.#answered());
        } catch (error) {
          this.notices.say(error);
        }
      });
    }
  }

  #answered() {
    const answered = this.entries.filter(({ lens }) => lens.view);
    if (!answered.length) throw new Error("there is nothing to save before a model has answered");
    return answered;
  }

  // ------------------------------------------------------------ lenses

  /** One lens for each name; those that are there already stay. */
  #showLenses(names) {
    while (this.entries.length > names.length) this.entries.pop().lens.element.remove();
    names.forEach((name, number) => {
      if (number === this.entries.length) this.entries.push(this.#newEntry(number));
      const entry = this.entries[number];
      if (entry.model !== name) entry.lens.refuse("waiting for the model …"); // what another one said is not its answer
      entry.model = name;
    });
  }

  #newEntry(number) {
    const lens = new Lens({
      model: (name) => this.#choose(number, name),
      close: () => this.#setModels(this.store.state.models.toSpliced(number, 1)),
      act: (act) => this.store.set({ act }),
      fit: () => this.composer.fit(this.#model(this.entries[number].model).scenes),
      hover: (pointer) => this.store.set({ pointer }),
      edit: (attention) => entry.latest.push({ ...entry.job, attention }),
    });
    const entry = { lens, model: null, picture: null, job: null };
    entry.latest = new Latest((job) => this.#ask(entry, job));
    this.composer.attach(lens.stage);
    this.lenses.append(lens.element);
    return entry;
  }

  /**
   * A model by itself gets what it opens with, unless somebody composed the scene or opened the picture that is there.
   * One that reads something else than the others takes the page for itself.
   */
  #choose(number, name) {
    const { models, reads } = this.store.state;
    const model = this.#model(name);
    this.#setModels(shownTo(model) === reads ? models.with(number, name) : [name]);
    if (models.length === 1 && isReplaceable(this.store.state)) openWith(model, this);
  }

  #modelsThatRead(thing) {
    return (this.source?.models ?? []).filter((model) => shownTo(model) === thing).map(({ name }) => name);
  }

  /** All models on the page read the same: choosing models decides what they are shown, choosing a tab decides who is. */
  #settle(state, changes) {
    if (!this.source || state.mode === "record" || !state.models.length) return;
    const current = shownTo(this.#model(state.models[0]));
    const wanted = state.mode === "input" ? state.reads : PICTURE;
    if (!changes.has("models") && wanted !== current && this.#modelsThatRead(wanted).length) {
      state.models = this.lastModels.get(wanted) ?? this.#modelsThatRead(wanted).slice(0, 1);
      state.reads = wanted;
    } else {
      state.reads = current;
      if (current !== PICTURE) state.mode = "input";
      else if (state.mode === "input") state.mode = "scene";
    }
    this.lastModels.set(state.reads, state.models);
  }

  /** What a panel gets from the page; see the Python module saccade.web.page. */
  #givenTo(address) {
    const { store } = this;
    return {
      acts: actsOf,
      ask: (question) => store.set({ question: String(question) }),
      show: (input, question, problem = null) =>
        store.set({ inputs: { ...store.state.inputs, [address]: { input, question, problem } } }),
      shown: store.state.inputs[address] ?? null,
      heat: (cell, value, peak) => paintHeat(cell, value, peak, store.state.palette),
    };
  }

  #setModels(models) {
    this.store.set({ models: models.filter(Boolean).slice(0, MOST_LENSES) });
  }

  async #showRecord(views) {
    this.#showLenses(views.map(({ model }) => model));
    for (const [number, view] of views.entries()) this.#take(this.entries[number], await answerOfRecord(view));
    this.#paint();
  }

  // ------------------------------------------------------------ asking

  #askAll(state) {
    if (state.mode === "picture" && !state.picture) return;
    this.#showLenses(state.models);
    state.question = this.questions.known(this.#firstModel(), state.question, presentIn(state));
    const subject = subjectOf(state, this.glyphs);
    // What a server draws behind the digits is not known here: its picture comes with the answer.
    const isKnown = !subject.scene || this.source.drawsHere || subject.scene.background === "black";
    for (const entry of this.entries) {
      if (isKnown || !entry.picture) entry.picture = subject.picture;
      this.#push(entry, { subject, question: state.question });
    }
  }

  /** Ask something new: what was edited is forgotten. */
  #push(entry, job) {
    entry.job = job;
    entry.lens.brush.clear();
    entry.latest.push(job);
  }

  /** Ask about what the models' panel made; it may not have made anything yet. */
  #askInputs(state) {
    this.#showLenses(state.models);
    for (const entry of this.entries) {
      entry.picture = null;
      const made = state.inputs[this.#model(entry.model).panel];
      if (made) this.#push(entry, { subject: { input: made.input }, question: made.question, problem: made.problem });
    }
  }

  async #ask(entry, { subject, question, problem, attention }) {
    const model = this.#model(entry.model);
    const refusal = problem ?? refusalOf(model, question);
    if (refusal) {
      entry.lens.refuse(refusal);
      this.panels.tell(model, "unanswered", model.name);
      this.notices.settled(entry);
      return this.#paint();
    }
    entry.lens.element.setAttribute("aria-busy", "true");
    try {
      const answer = await answerOf(this.source, model, subject, question, attention);
      if (this.store.state.mode === "record" || entry.model !== model.name) return;
      this.#take(entry, answer);
      this.notices.settled(entry);
    } catch (error) {
      if (!entry.lens.view || subject.input !== undefined) entry.lens.refuse("no answer");
      this.panels.tell(model, "unanswered", model.name);
      this.notices.say(error, entry);
    } finally {
      entry.lens.element.removeAttribute("aria-busy");
    }
    return this.#paint();
  }

  #firstModel() {
    return this.#model(this.store.state.models[0]);
  }

  #model(wanted) {
    return this.source.models.find(({ name }) => name === wanted);
  }

  #take(entry, answer) {
    entry.picture = answer.picture;
    entry.lens.take(answer, this.store.state.mode !== "record" && Boolean(this.source?.canEdit));
    if (this.store.state.mode !== "record") this.panels.tell(this.#model(entry.model), "answered", answer.view);
  }

  // ------------------------------------------------------------ showing

  #update(state, changes) {
    this.#settle(state, changes);
    this.root.dataset.mode = state.mode;
    const isRecord = state.mode === "record";
    if (isRecord && changes.has("views")) this.#showRecord(state.views).catch((error) => this.notices.say(error));
    if (changes.has("question") && !changes.has("scene")) this.composer.select(state.question);
    const isInput = state.mode === "input";
    const asksAgain = isInput ? INPUT_ASKS_AGAIN : ASKS_AGAIN;
    if (!isRecord && asksAgain.some((name) => changes.has(name))) isInput ? this.#askInputs(state) : this.#askAll(state);
    this.#paint();
    if (changes.has("palette") && isInput) this.#tellAgain();
  }

  /** Panels show weights in the page's colours. */
  #tellAgain() {
    for (const { lens, model } of this.entries)
      if (lens.view) this.panels.tell(this.#model(model), "answered", lens.view);
  }

  #style() {
    const { palette, opacity, cells, outline } = this.store.state;
    return { style: { palette, opacity, cells }, outline };
  }

  #paint() {
    const { state } = this.store;
    const titles = Player.merged(this.entries.map(({ lens }) => lens));
    if (titles.size && !titles.has(state.act)) state.act = titles.has(TOTAL) ? TOTAL : [...titles.keys()].at(-1);
    this.player.show(titles, state.act);
    this.controls.show();
    this.lenses.dataset.count = String(this.entries.length);
    const offered = state.mode === "record" ? null : this.source.models;
    const selection = state.mode === "scene" ? this.composer.selected : null;
    for (const { lens, model, picture } of this.entries) {
      lens.offer(offered ?? [{ name: model }], model, this.entries.length === 1 || !offered);
      this.#advise(lens, model, state);
      const hasPanel = Boolean(offered) && this.panels.showsLooks(this.#model(model));
      const shown = { picture, act: state.act, pointer: state.pointer, selection, hasPanel, ...this.#style() };
      if (picture || lens.view || state.mode === "input") lens.paint(shown);
    }
    const models = offered ? this.entries.map(({ model }) => this.#model(model)) : [];
    this.panels.show(models);
    for (const model of new Set(models)) this.panels.tell(model, "act", state.act);
    if (offered) this.#paintPanel(state);
  }

  #advise(lens, name, { mode, scene }) {
    const trained = mode === "scene" ? this.#model(name)?.scenes : null;
    lens.advise(adviceOn(trained, scene), this.composer.hasFitting(trained));
  }

  #paintPanel(state) {
    this.composer.show(this.#firstModel()?.scenes);
    this.questions.show(this.#firstModel(), presentIn(state));
    const names = ["", ...this.#modelsThatRead(state.reads)];
    const isNew = this.offered?.join() !== names.join(); // a list that somebody has open stays
    if (isNew) this.adder.replaceChildren(...options(names, { "": "Compare with …" }));
    this.offered = names;
    this.adder.value = "";
    this.adder.disabled = state.models.length >= MOST_LENSES;
  }
}

/** The digits of a composed scene; null where what is on the picture is not known. */
function presentIn({ mode, scene }) {
  return mode === "scene" ? scene.digits.map(({ digit }) => String(digit)) : null;
}
