// MemN2N inside a page: a story and a question in, the likeliest answers and the weights of every hop out.
//
// The equations are those of saccade.models.memn2n and saccade.attention.memory, for one story at a time.

import { tidy, wordsOf } from "./words.js";

const TOLD = 10; // answers that are told
const NAMED = 20; // unknown words, or sentences, that a note names

/** What the page calls with the weights of a model; see the Python module saccade.web.page. */
export function network(weights, tools) {
  if (weights.kind !== "memn2n") throw new Error(`this page cannot compute a model of kind '${weights.kind}'`);
  return new MemN2N(weights, tools);
}

class MemN2N {
  constructor({ model, answers, layers }, tools) {
    Object.assign(this, layers.config, { model, tools });
    this.vocabulary = answers;
    this.numbers = new Map(answers.map((word, number) => [word, number]).filter(([word]) => word));
    const read = (stored) => tools.matrix(stored);
    this.embed = layers.embed.map(read); // each words × dim
    this.time = layers.time.map(read); // each times × dim
    this.carry = layers.carry && read(layers.carry); // H, dim × dim
    this.output = layers.output ? read(layers.output) : this.embed.at(-1);
    for (const table of [...this.embed, this.output]) table.fill(0, 0, this.dim); // the empty word means nothing
  }

  /** `input` is a list of sentences; what of them gets into the memory is as in saccade.families.story.reading. */
  answer(input, question) {
    const texts = input.map(tidy);
    const told = texts.filter((text) => !isQuestion(text)).map((text) => this.#cut(text));
    const facts = told.filter(({ words }) => words.length);
    const slots = facts.filter(({ ids }) => ids.length).slice(-this.memory);
    const asked = this.#cut(question.trim());
    this.#check(facts, slots, asked);
    const { logits, hops } = this.#read(slots.map(({ ids }) => ids), asked.ids);
    const held = Array.from({ length: this.memory }, (_, slot) => slots[slot]?.text ?? "");
    return {
      question: asked.text,
      answers: this.#ranked(this.tools.softmax(logits)),
      looks: hops.map((weights) => ({ weights, slots: held })),
      notes: [...questionNotes(texts), ...notesOn(facts, slots, asked, this.memory)],
    };
  }

  /** The likeliest words with their shares, as saccade.families.story.reading tells them. */
  #ranked(shares) {
    const named = Array.from(shares, (share, word) => [this.vocabulary[word] || "(no word)", share]);
    return named.sort((first, second) => second[1] - first[1]).slice(0, TOLD);
  }

  /** A text with its words, the ids of those that are known, and the others. */
  #cut(text) {
    const words = wordsOf(text);
    const known = words.filter((word) => this.numbers.has(word));
    const unknown = words.filter((word) => !this.numbers.has(word));
    return { text, words, ids: known.map((word) => this.numbers.get(word)), unknown };
  }

  #check(told, slots, asked) {
    if (!told.length) throw new Error("story: no sentences; give at least one, such as: Mary took the apple.");
    if (!asked.ids.length) {
      const what = `'${this.model}' knows none of the words of the question '${asked.text}'`;
      throw new Error(`${what}; its card lists those it knows`);
    }
    if (slots.length) return;
    const some = told.slice(0, 2).map(({ text }) => text).join("; ");
    throw new Error(`story: the model knows none of its words (${some}); its card lists those it knows`);
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
    return { hops, logits: this.vocabulary.map((_, word) => dot(state, this.#row(this.output, word))) };
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

/** A question among the sentences is no fact. */
function isQuestion(text) {
  return text.endsWith("?");
}

function questionNotes(texts) {
  return texts
    .filter(isQuestion)
    .slice(0, NAMED)
    .map((text) => `story: left out a question: ${text}`);
}

/** What did not get into the memory, in the words of saccade.families.story.reading. */
function notesOn(told, slots, asked, size) {
  const empty = [...told.keys()].filter((place) => !told[place].ids.length).map((place) => place + 1);
  const held = told.length - empty.length;
  const last = told.indexOf(slots[0]);
  const dropped = `story: ${held} sentences, and the memory holds ${size}: sentences 1 to ${last} were dropped`;
  return [
    ...unknownNote("story", told.flatMap(({ unknown }) => unknown)),
    ...(empty.length ? [`story: left out sentence ${named(empty)}, of which the model knows no word`] : []),
    ...(held > size ? [dropped] : []),
    ...unknownNote("question", asked.unknown),
  ];
}

function unknownNote(where, words) {
  return words.length ? [`${where}: unknown words were left out: ${named([...new Set(words)])}`] : [];
}

function named(things) {
  const more = things.length > NAMED ? ` and ${things.length - NAMED} more` : "";
  return things.slice(0, NAMED).join(", ") + more;
}

function dot(first, second) {
  let sum = 0;
  for (let at = 0; at < first.length; at++) sum += first[at] * second[at];
  return sum;
}
