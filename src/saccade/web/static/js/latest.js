// Asking without piling up: while an answer is awaited, only the newest question waits behind it.

export class Latest {
  #ask;
  #running = false;
  #next = null;

  /** `ask(job)` returns a promise; it is never called while its last promise is pending. */
  constructor(ask) {
    this.#ask = ask;
  }

  /** Ask `job` as soon as possible; whatever else was waiting is forgotten. */
  push(job) {
    this.#next = { job };
    if (!this.#running) this.#drain();
  }

  async #drain() {
    this.#running = true;
    while (this.#next) {
      const { job } = this.#next;
      this.#next = null;
      await this.#ask(job);
    }
    this.#running = false;
  }
}
