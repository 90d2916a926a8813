// The page's end of the engine: `load` weights, then `look` at pixels, or what else a model reads.

export class Engine {
  /** `worker` runs worker.js: `new Worker(url, { type: "module" })`, or one made from a blob where no server is. */
  constructor(worker) {
    this.worker = worker;
    this.calls = new Map(); // id → what settles it
    this.last = 0;
    this.broken = null; // why nothing can be computed any more
    worker.onmessage = ({ data }) => this.settle(data);
    worker.onerror = (event) => this.fail(event.message || "the worker of the engine could not start");
  }

  /** Take in page weights, parsed or as text; resolves to the facts: model, queries, answers, size, looks … */
  async load(weights) {
    return this.call({ verb: "load", weights: typeof weights === "string" ? JSON.parse(weights) : weights });
  }

  /**
   * Ask a loaded model, by default the one loaded last, about `input`: RGB pixels 0..1 (Float32Array, row by row), or
   * JSON. Resolves to view JSON.
   */
  look(input, question, model) {
    return this.call({ verb: "look", input, question, model });
  }

  /** Stop the worker; whatever is under way fails. */
  close() {
    this.worker.terminate();
    this.fail("the engine was closed");
  }

  call(message) {
    if (this.broken) return Promise.reject(new Error(this.broken));
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...message });
    });
  }

  settle({ id, result, error }) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (error === undefined) call?.resolve(result);
    else call?.reject(new Error(error));
  }

  /** Nothing more will come: whatever is under way or waits is refused, and so is what comes later. */
  fail(message) {
    this.broken = message;
    for (const { reject } of this.calls.values()) reject(new Error(message));
    this.calls.clear();
  }
}
