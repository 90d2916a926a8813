// The weights beside the sentences: a column for each hop of each model, and a row for what lies on empty slots.

export class Hops {
  #columns = new Map(); // name of a model → its acts over slots
  #act = null;

  /** `page` is what the page gives to a panel. */
  constructor(page) {
    this.page = page;
    this.head = page.element("thead");
    this.empty = page.element("tr", { class: "story-empty", hidden: true });
    this.foot = page.element("tfoot", {}, this.empty);
  }

  /** Keep columns for these models only, in this order. */
  order(models) {
    this.#columns = new Map(models.map(({ name }) => [name, this.#columns.get(name) ?? []]));
  }

  /** Take an answer; false where it is about another story than `sentences`. */
  take(view, sentences) {
    const acts = this.page.acts(view).filter(({ slots }) => slots);
    const kept = acts[0]?.slots.texts.filter(Boolean) ?? [];
    const isOfThese = kept.every((text, at) => text === sentences.at(at - kept.length));
    if (acts.length && (!isOfThese || (!kept.length && sentences.length))) return false;
    this.#columns.set(view.model, acts);
    return true;
  }

  /** A model that did not answer has no weights. */
  forget(name) {
    if (this.#columns.has(name)) this.#columns.set(name, []);
  }

  choose(act) {
    this.#act = act;
    for (const cell of this.head.querySelectorAll("[data-act]"))
      cell.classList.toggle("story-current", cell.dataset.act === act);
  }

  /** Paint everything beside `rows`, of which those with `isTold` hold a sentence. */
  paint(rows, isTold) {
    const columns = [...this.#columns.values()].flat();
    this.#paintHead(columns);
    const told = rows.filter(isTold);
    for (const row of rows) this.#fit(row, columns.length);
    for (const row of rows) {
      const place = isTold(row) ? told.indexOf(row) - told.length : 0; // from the end, as in memory
      columns.forEach(({ slots }, number) => {
        const at = keptIn(slots) + place;
        const cell = row.cells[number];
        if (place && at >= 0) this.#heat(cell, slots.values[at], slots.peak);
        else bare(cell, place ? "–" : "");
      });
      row.element.classList.toggle("story-dropped", columns.length > 0 && this.kept() + place < 0);
    }
    this.#paintEmpty(columns);
  }

  /** How many sentences are in the memory of some model; without a model that has answered, any number. */
  kept() {
    const kept = [...this.#columns.values()].flat().map(({ slots }) => keptIn(slots));
    return kept.length ? Math.max(...kept) : Infinity;
  }

  /** Two digits are enough to watch weights move; the rest is in the title. */
  #heat(cell, weight, peak) {
    this.page.heat(cell, weight, peak);
    cell.title = cell.textContent;
    cell.textContent = shown(weight);
  }

  #fit({ cells, end }, count) {
    while (cells.length > count) cells.pop().remove();
    while (cells.length < count) {
      const cell = this.page.element("td", { class: "story-hop" });
      cells.push(cell);
      end.before(cell);
    }
  }

  #paintHead(columns) {
    const { element } = this.page;
    const many = [...this.#columns].filter(([, acts]) => acts.length);
    const names = many.map(([name, acts]) => {
      const cell = element("th", { scope: "colgroup", colspan: acts.length, class: "story-model", text: name });
      cell.style.flexGrow = acts.length; // where there is no room for a table
      return cell;
    });
    const titles = columns.map(({ title, key }) =>
      element("th", { scope: "col", class: "story-hop", "data-act": key, text: title }),
    );
    const line = (...cells) => {
      const start = [element("td", { class: "story-grip" }), element("td", { class: "story-text" })];
      return element("tr", {}, ...start, ...cells, element("td", { class: "story-does" }));
    };
    this.head.replaceChildren(...(many.length > 1 ? [line(...names)] : []), line(...titles));
    this.choose(this.#act);
  }

  /** Weight on slots without a sentence: how much of a look went nowhere. */
  #paintEmpty(columns) {
    const { element } = this.page;
    const weights = columns.map(({ slots }) =>
      slots.values.reduce((sum, value, at) => (slots.texts[at] ? sum : sum + value), 0),
    );
    const slots = columns.map(({ slots: { texts } }) => texts.filter((text) => !text).length);
    const words = new Set(slots).size === 1 ? `empty slots (${slots[0]})` : "empty slots";
    const cells = weights.map((weight, number) => {
      const cell = element("td", { class: "story-hop" });
      this.#heat(cell, weight, columns[number].slots.peak);
      return cell;
    });
    this.empty.hidden = !weights.some((weight) => shown(weight) > 0);
    this.empty.replaceChildren(
      element("td", { class: "story-grip" }),
      element("th", { scope: "row", class: "story-text", text: words }),
      ...cells,
      element("td", { class: "story-does" }),
    );
  }
}

function keptIn({ texts }) {
  return texts.filter(Boolean).length;
}

function shown(weight) {
  return weight.toFixed(2);
}

function bare(cell, text) {
  cell.textContent = text;
  cell.title = "";
  cell.style.backgroundColor = cell.style.color = "";
}
