// Where the page starts: it finds out what it is (served, self-contained, or a viewer) and opens the right source.

import { Page } from "./page.js";
import { checkedViews, VIEWS } from "./records.js";
import { loadGlyphs } from "./scene.js";
import { OfflineSource } from "./source_offline.js";
import { ServerSource } from "./source_server.js";
import { Notices } from "./store.js";

async function start() {
  const root = document.getElementById("saccade");
  const markup = root.outerHTML; // before any script touches it
  if (root.parentElement === document.body) landmarks(root); // a report has its own
  // {weights, worker, glyphs, views, document}: what a self-contained page carries; null in a page that is served
  const data = JSON.parse(document.getElementById("saccade-data")?.textContent ?? "null");
  try {
    const source = await openSource(data);
    const glyphs = source && (await loadGlyphs(data?.glyphs ?? "glyphs.png"));
    const shell = data ? (views) => pageOfOwnParts(data.document, markup, views) : pageOfServer;
    const page = new Page(root, { source, glyphs, shell });
    root.dataset.source = source ? "live" : "none";
    if (source) page.start(firstModels(source.models));
    if (data?.views?.length) page.showViews(checkedViews({ schema: VIEWS, views: data.views }, "this page"));
  } catch (error) {
    new Notices(root).say(error);
  }
}

/** Say to screen readers that the page is all of the document, and what it is called. */
function landmarks(root) {
  root.setAttribute("role", "main");
  const name = root.querySelector(".name");
  name.setAttribute("role", "heading");
  name.setAttribute("aria-level", "1");
}

async function openSource(data) {
  if (!data) return new ServerSource().open();
  return data.weights.length ? new OfflineSource(data.weights, data.worker).open() : null;
}

/** The models that a page opens with: the first, and the next of another architecture that is asked about such scenes. */
function firstModels(models) {
  const [first, ...others] = models;
  const about = ({ queries, scenes }) => JSON.stringify([queries, scenes]);
  const isRival = (other) => other.architecture !== first.architecture && about(other) === about(first);
  return [first, first?.scenes && others.find(isRival)].filter(Boolean).map(({ name }) => name);
}

/** The text of a page that shows `views`: the empty document that this page carries, filled with its own parts. */
function pageOfOwnParts(empty, markup, views) {
  const [style, script] = ["saccade-style", "saccade-script"].map((id) => document.getElementById(id).textContent);
  const data = asData({ weights: [], worker: null, glyphs: null, document: empty, views });
  const parts = { style, markup, data, script };
  return empty.replace(/%(style|markup|data|script)%/g, (_, name) => parts[name]);
}

/** The text of a served viewer page with `views` put into its empty data block. */
async function pageOfServer(views) {
  const response = await fetch("viewer.html");
  if (!response.ok) throw new Error(`the server has no viewer page to save (${response.status})`);
  const [, before, data, after] = (await response.text()).match(/^(.*?id="saccade-data">)(.*?)(<\/script>.*)$/s);
  return before + asData({ ...JSON.parse(data), views }) + after;
}

/** JSON that can stand inside a script element whatever it says. */
function asData(value) {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

start();
