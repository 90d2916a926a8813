// Controls that a model's family brings along, from a module of its own; see the Python module saccade.web.page.

import { element, part } from "./dom.js";
import { PICTURE, shownTo } from "./questions.js";

export class Panels {
  #opened = new Map(); // address of a module → {place, models, hooks: a promise of what its function returned, found}

  /** `given(address)` is what a panel gets from the page; `wrong(error)` is told what fails in one. */
  constructor(root, { given, wrong }) {
    Object.assign(this, { given, wrong });
    this.list = part(root, "family-panels");
    this.inputs = part(root, "inputs");
  }

  /** Open the panels of `models`, those on the page, and close all others; models of one module share its panel. */
  show(models) {
    const wanted = Map.groupBy(models.filter((model) => model?.panel), ({ panel }) => panel);
    for (const [address, { place, hooks }] of this.#opened) {
      if (wanted.has(address)) continue;
      this.#opened.delete(address);
      place.remove();
      this.#call(hooks, "closed");
    }
    for (const [address, shown] of wanted) {
      if (!this.#opened.has(address)) this.#opened.set(address, this.#open(shown[0]));
      const panel = this.#opened.get(address);
      const names = shown.map(({ name }) => name).join("\n");
      if (panel.names === names) continue;
      panel.names = names;
      this.#call(panel.hooks, "models", shown);
    }
  }

  /** Tell the panel of `model` what happened: "answered" with a view, "unanswered" with its name, "act" with a key. */
  tell(model, what, ...given) {
    const panel = this.#opened.get(model?.panel);
    if (panel) this.#call(panel.hooks, what, ...given);
  }

  /** Whether the panel of `model` shows looks over slots itself. */
  showsLooks(model) {
    return Boolean(this.#opened.get(model?.panel)?.found?.showsLooks);
  }

  #open(model) {
    const place = element("div", { class: "group", "data-panel": model.name });
    (shownTo(model) === PICTURE ? this.list : this.inputs).append(place);
    if (model.panel_style && !isCarried(model.panel) && !document.querySelector(`link[href="${model.panel_style}"]`))
      document.head.append(element("link", { rel: "stylesheet", href: model.panel_style }));
    const page = { model, element, ...this.given(model.panel) };
    const panel = { place, hooks: moduleAt(model.panel).then((module) => module.panel(place, page)) };
    panel.hooks.then(
      (found) => (panel.found = found),
      (error) => this.wrong(new Error(`the panel of ${model.name} failed: ${error.message}`)),
    );
    return panel;
  }

  async #call(hooks, name, ...given) {
    const found = await hooks.catch(() => null); // why it failed was told when it was opened
    try {
      await found?.[name]?.(...given);
    } catch (error) {
      this.wrong(error);
    }
  }
}

/** Whether a page without a server carries the module, and its style sheet, inside. */
function isCarried(address) {
  return Boolean(globalThis.saccadeModules?.[address]);
}

/** What the module exports. */
async function moduleAt(address) {
  return isCarried(address) ? globalThis.saccadeModules[address] : import(new URL(address, document.baseURI).href);
}
