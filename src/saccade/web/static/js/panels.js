// Controls that a model's family brings along, from a module of its own; see the Python module saccade.web.page.

import { element, part } from "./dom.js";

export class Panels {
  #opened = new Map(); // name of a model → {place, hooks: a promise of what its module returned}

  /** `ask(question)` asks it; `wrong(error)` is told what fails in a panel. */
  constructor(root, { ask, wrong }) {
    Object.assign(this, { ask, wrong });
    this.list = part(root, "family-panels");
  }

  /** Open the panels of `models`, those on the page, and close all others. */
  show(models) {
    const wanted = new Map(models.filter((model) => model?.panel).map((model) => [model.name, model]));
    for (const [name, { place, hooks }] of this.#opened) {
      if (wanted.has(name)) continue;
      this.#opened.delete(name);
      place.remove();
      this.#call(hooks, "closed");
    }
    for (const [name, model] of wanted) if (!this.#opened.has(name)) this.#opened.set(name, this.#open(model));
  }

  /** Tell the panel of the model of `view` what was answered. */
  answered(view) {
    const panel = this.#opened.get(view.model);
    if (panel) this.#call(panel.hooks, "answered", view);
  }

  #open(model) {
    const place = element("div", { class: "group", "data-panel": model.name });
    this.list.append(place);
    const hooks = moduleAt(model.panel).then((module) => module.panel(place, { model, element, ask: this.ask }));
    hooks.catch((error) => this.wrong(new Error(`the panel of ${model.name} failed: ${error.message}`)));
    return { place, hooks };
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

/** What the module exports: carried inside a page that has no server, otherwise loaded from there. */
async function moduleAt(address) {
  return globalThis.saccadeModules?.[address] ?? import(new URL(address, document.baseURI).href);
}
