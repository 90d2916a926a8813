// The weights beside the sentences: a column for each hop of each model, and rows for what lies on no sentence.

export class Hops {
  #columns = new Map(); // name of a model → its acts over slots: {title, key, slots, slotOf: row → slot}
  #act = null;

  /** `page` is what the page gives to a panel. */
  constructor(page) {
    this.page = page;
    this.head = page.element("thead");
    this.foot = page.element("tfoot");
  }

  /** Keep columns for these models only, in this order. */
  order(models) {
    this.#columns = new Map(models.map(({ name }) => [name, this.#columns.get(name) ?? []]));
  }

  /** Take an answer; `told` are {row, text} of all sentences. False where it is about another story. */
  take(view, told) {
    const acts = this.page.acts(view).filter(({ slots }) => slots);
    const slotOf = acts.length ? matched(keptIn(acts[0].slots), told) : new Map();
    if (!slotOf) return false;
    this.#columns.set(view.model, acts.map((act) => ({ ...act, slotOf })));
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

  /** Paint everything beside `rows`. */
  paint(rows) {
    const columns = [...this.#columns.values()].flat();
    this.#paintHead(columns);
    for (const row of rows) {
      this.#fit(row, columns.length);
      columns.forEach(({ slots, slotOf }, number) => {
        const slot = slotOf.get(row); // null: not in memory, undefined: not told when it was asked
        if (slot === null || slot === undefined) bare(row.cells[number], slot === null ? "–" : "");
        else this.#heat(row.cells[number], slots.values[slot], slots.peak);
      });
      const isDropped = columns.length > 0 && columns.every(({ slotOf }) => slotOf.get(row) === null);
      row.element.classList.toggle("story-dropped", isDropped);
    }
    this.#paintFoot(columns);
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

  /** Weight on slots without a sentence: a model's own, and empty ones, where there is any. */
  #paintFoot(columns) {
    const { element } = this.page;
    const own = new Map(); // text of a slot → its weight in each column, undefined where there is no such slot
    columns.forEach(({ slots }, number) => {
      const first = keptIn(slots).length;
      slots.texts.slice(first, first + slots.own).forEach((text, at) => {
        if (!own.has(text)) own.set(text, []);
        own.get(text)[number] = slots.values[first + at];
      });
    });
    const empty = columns.map(({ slots }) => slots.values.reduce((sum, value, at) => (slots.texts[at] ? sum : sum + value), 0));
    const count = new Set(columns.map(({ slots: { texts } }) => texts.filter((text) => !text).length));
    const name = count.size === 1 ? `empty slots (${[...count][0]})` : "empty slots";
    const lines = [...own, ...(empty.some((weight) => shown(weight) > 0) ? [[name, empty]] : [])];
    const rows = lines.map(([text, weights]) => {
      const cells = columns.map(({ slots }, number) => {
        const cell = element("td", { class: "story-hop" });
        if (weights[number] !== undefined) this.#heat(cell, weights[number], slots.peak);
        return cell;
      });
      const label = element("th", { scope: "row", class: "story-text", text });
      const [grip, end] = ["story-grip", "story-does"].map((kind) => element("td", { class: kind }));
      return element("tr", {}, grip, label, ...cells, end);
    });
    this.foot.replaceChildren(...rows);
  }
}

/** The sentences in memory; behind them come slots of the model's own, then empty ones. */
function keptIn({ texts, own }) {
  const filled = texts.filter(Boolean);
  return filled.slice(0, filled.length - own);
}

/** Row → slot for all that was told, null for what is not in memory; null altogether where other texts were told. */
function matched(kept, told) {
  const slotOf = new Map();
  let slot = kept.length - 1;
  for (const { row, text } of told.toReversed()) {
    slotOf.set(row, text === kept[slot] ? slot : null);
    if (text === kept[slot]) slot -= 1;
  }
  return slot < 0 ? slotOf : null;
}

function shown(weight) {
  return weight.toFixed(2);
}

function bare(cell, text) {
  cell.textContent = text;
  cell.title = "";
  cell.style.backgroundColor = cell.style.color = "";
}
