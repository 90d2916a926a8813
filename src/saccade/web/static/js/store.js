// What the page shows right now, what is asked next, and what went wrong.

import { part } from "./dom.js";

/** All that the page shows, in one object; whoever wants to know of changes subscribes. */
export class Store {
  #listeners = [];
  #pending = null;

  constructor(state) {
    this.state = state;
  }

  /** Call `listener(state, changedNames)` after changes, at most once a frame. */
  subscribe(listener) {
    this.#listeners.push(listener);
  }

  /** Take over the given values; several changes before the next frame are told together. */
  set(changes) {
    Object.assign(this.state, changes);
    if (this.#pending === null) {
      this.#pending = new Set();
      requestAnimationFrame(() => {
        const changed = this.#pending;
        this.#pending = null;
        for (const listener of this.#listeners) listener(this.state, changed);
      });
    }
    for (const name of Object.keys(changes)) this.#pending.add(name);
  }
}

/** Asking without piling up: while an answer is awaited, only the newest question waits behind it. */
export class Latest {
  #ask;
  #running = false;
  #next = null;

  /** `ask(job)` returns a promise; it is never called while its last promise is pending. */
  constructor(ask) {
    this.#ask = ask;
  }

  /** Ask `job` as soon as possible; whatever else was waiting is forgotten. */
  async push(job) {
    this.#next = { job };
    if (this.#running) return;
    this.#running = true;
    while (this.#next) {
      const next = this.#next.job;
      this.#next = null;
      await this.#ask(next);
    }
    this.#running = false;
  }
}

/** What went wrong, said once, where it is seen and read aloud. */
export class Notices {
  constructor(root) {
    this.bar = part(root, "notice");
    this.text = part(root, "notice-text");
    part(root, "notice-close").addEventListener("click", () => this.clear());
  }

  /** Say what is wrong; `about` names the matter, so that only its own success takes it back. */
  say(error, about = "") {
    this.about = about;
    const message = error instanceof Error ? error.message : String(error);
    const opensWithFile = /^\S*\.\w+\b/.test(message); // zero.png is not Zero.png
    this.text.textContent = opensWithFile ? message : message.charAt(0).toUpperCase() + message.slice(1);
    this.bar.hidden = false;
  }

  clear() {
    this.bar.hidden = true;
  }

  /** `about` is well again. */
  settled(about) {
    if (this.about === about) this.clear();
  }
}
