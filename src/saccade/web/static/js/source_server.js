// Models behind the server of `saccade serve`, asked over its HTTP interface.

import { asPng, pictureOfFile } from "./pictures.js";

export class ServerSource {
  label = "on this machine's server";
  drawsHere = false; // the server's renderer is the one that counts
  canEdit = true;
  #encodings = new WeakMap();

  async open() {
    const [{ models }, { backgrounds }] = await Promise.all([request("api/models"), request("api/scene")]);
    return Object.assign(this, { models, backgrounds });
  }

  /** A picture that ships with saccade, such as a model is shown first. */
  async example(name) {
    const response = await fetched(`api/examples/${encodeURIComponent(name)}`);
    if (!response.ok) throw explained(response, await replyOf(response));
    return { ...(await pictureOfFile(await response.blob())), name, isExample: true };
  }

  /** The view of what `model` says about `subject`: {scene}, {picture} or {input}; perhaps with edited `attention`. */
  async look(model, subject, question, attention) {
    const asked = { model: model.name, question, ...(await this.#about(model, subject)) };
    return attention ? request("api/edit", { ...asked, attention }) : request("api/ask", asked);
  }

  async #about(model, { scene, picture, input }) {
    if (input !== undefined) return { input };
    return scene ? { scene } : { encoding: await this.#encode(model, picture) };
  }

  /** A picture is sent once for each model; later questions name it. */
  async #encode(model, picture) {
    if (!this.#encodings.has(picture)) this.#encodings.set(picture, new Map());
    const known = this.#encodings.get(picture);
    if (!known.has(model.name)) {
      const reply = await request("api/encode", { model: model.name, picture: await asPng(picture) });
      known.set(model.name, reply.encoding);
    }
    return known.get(model.name);
  }
}

/** A JSON reply; an error that the server explains is thrown with its own words. */
async function request(path, body) {
  const options = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetched(path, options);
  const reply = await replyOf(response);
  if (response.ok && reply !== null) return reply;
  throw explained(response, reply);
}

/** What a response says in JSON; null: nothing that can be read. */
function replyOf(response) {
  return response.json().catch(() => null);
}

/** The error of a response, in the words of its reply. */
function explained(response, reply) {
  return new Error(reply?.error?.message ?? `the server answered ${response.status} without an explanation`);
}

async function fetched(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error("the server does not answer; is `saccade serve` still running?");
  }
}
