// MemN2N inside a page: a story and a question in, shares of the answers and the weights of every hop out.
//
// The equations are those of saccade.models.memn2n and saccade.attention.memory, for one story at a time.

import { tidy, wordsOf } from "./words.js";

/** What the page calls with the weights of a model; see the Python module saccade.web.page. */
export function network(weights, tools) {
  if (weights.kind !== "memn2n") throw new Error(`this page cannot compute a model of kind '${weights.kind}'`);
  return new MemN2N(weights, tools);
}

class MemN2N {
  constructor({ model, answers, layers }, tools) {
    Object.assign(this, layers.config, { model, tools });
    this.numbers = new Map(answers.map((word, number) => [word, number]));
    const read = (stored) => tools.matrix(stored);
    this.embed = layers.embed.map(read); // each words × dim
    this.time = layers.time.map(read); // each times × dim
    this.carry = layers.carry && read(layers.carry); // H, dim × dim
    this.output = layers.output ? read(layers.output) : this.embed.at(-1);
    for (const table of [...this.embed, this.output]) table.fill(0, 0, this.dim); // the empty word means nothing
  }

  /** `input` is a list of sentences; of a longer story than the memory, the last are kept. */
  answer(input, question) {
    const told = input.map(tidy).filter(Boolean);
    const slots = told.slice(-this.memory);
    const asked = this.#ids(question);
    if (!asked.length) {
      throw new Error(`'${this.model}' knows none of the words of '${question}'; see its vocabulary in its card`);
    }
    const { logits, hops } = this.#read(slots.map((text) => this.#ids(text)), asked);
    const texts = [...slots, ...Array(this.memory - slots.length).fill("")];
    return {
      question: question.trim(),
      shares: this.tools.softmax(logits),
      looks: hops.map((weights) => ({ weights, slots: texts })),
      notes: [],
    };
  }

  /** Word ids; unknown words are left out. */
  #ids(text) {
    const known = wordsOf(text).filter((word) => this.numbers.has(word));
    return known.map((word) => this.numbers.get(word));
  }

  #read(sentences, asked) {
    const isAdjacent = this.tying === "adjacent";
    const memory = this.embed.map((_, table) => this.#remember(sentences, table)); // E × S × dim
    const present = Array.from({ length: this.memory }, (_, slot) => Boolean(sentences[slot]?.length));
    const hops = [];
    let state = this.#vector(asked, this.embed[0]); // u¹; B = A¹
    for (let hop = 0; hop < this.hops; hop++) {
      const key = isAdjacent ? hop : 0;
      const scores = memory[key].map((vector) => dot(state, vector));
      const weights = this.#weights(scores, present);
      hops.push(Float32Array.from(weights));
      const carried = isAdjacent ? state : state.map((_, row) => dot(state, this.#row(this.carry, row)));
      state = carried.map((value, k) => value + memory[key + 1].reduce((sum, c, slot) => sum + weights[slot] * c[k], 0));
    }
    const words = this.output.length / this.dim;
    return { hops, logits: Array.from({ length: words }, (_, word) => dot(state, this.#row(this.output, word))) };
  }

  /** Eq. (1): p = softmax(uᵀ m); empty slots take part unless the model masks them. */
  #weights(scores, present) {
    if (!this.mask) return this.tools.softmax(scores);
    if (!present.includes(true)) return scores.map(() => 0);
    return this.tools.softmax(scores.map((score, slot) => (present[slot] ? score : -Infinity)));
  }

  /** The vectors of all slots under one table: Σ l ∘ A x + T, and 0 where no word is known. */
  #remember(sentences, table) {
    const count = sentences.filter((words) => words.length).length;
    return Array.from({ length: this.memory }, (_, slot) => {
      const words = sentences[slot] ?? [];
      if (!words.length) return new Float64Array(this.dim);
      const back = Math.min(Math.max(count - slot, 1), this.times) - 1;
      const time = this.#row(this.time[table], back);
      return this.#vector(words, this.embed[table]).map((value, k) => value + time[k]);
    });
  }

  /** Σ_j l_kj A x_j with l_kj = a_j + s_k b_j, as SentenceCode has it. */
  #vector(words, table) {
    const vector = new Float64Array(this.dim);
    words.forEach((word, index) => {
      const [level, slope] = this.#code(index + 1, words.length);
      for (let k = 0; k < this.dim; k++) vector[k] += (level + this.#incline(k + 1) * slope) * table[word * this.dim + k];
    });
    return vector;
  }

  #code(place, length) {
    if (this.encoding === "bag") return [1, 0];
    if (this.encoding === "position") return [1 - place / length, (2 * place) / length - 1];
    return [1, (place - (this.longest + 1) / 2) / this.longest];
  }

  #incline(k) {
    return this.encoding === "position" ? k / this.dim : (4 * (k - (this.dim + 1) / 2)) / this.dim;
  }

  #row(table, row) {
    return table.subarray(row * this.dim, (row + 1) * this.dim);
  }
}

function dot(first, second) {
  let sum = 0;
  for (let at = 0; at < first.length; at++) sum += first[at] * second[at];
  return sum;
}
