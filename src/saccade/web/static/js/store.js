// What the page shows right now, in one object; whoever wants to know of changes subscribes.

export class Store {
  #state;
  #listeners = [];
  #pending = null;

  constructor(state) {
    this.#state = state;
  }

  get state() {
    return this.#state;
  }

  /** Call `listener(state, changedNames)` after changes, at most once a frame. */
  subscribe(listener) {
    this.#listeners.push(listener);
  }

  /** Take over the given values; several changes before the next frame are told together. */
  set(changes) {
    Object.assign(this.#state, changes);
    if (this.#pending === null) {
      this.#pending = new Set();
      requestAnimationFrame(() => {
        const changed = this.#pending;
        this.#pending = null;
        for (const listener of this.#listeners) listener(this.#state, changed);
      });
    }
    for (const name of Object.keys(changes)) this.#pending.add(name);
  }
}
