// Where the page starts: it finds out what it is (served, self-contained, or a viewer) and opens the right source.

import { embedded, pageOfOwnParts, pageOfServer, pristine } from "./embedded.js";
import { loadGlyphs } from "./glyphs.js";
import { Notices } from "./notices.js";
import { Page } from "./page.js";
import { checkedViews, VIEWS } from "./records.js";
import { OfflineSource } from "./source_offline.js";
import { ServerSource } from "./source_server.js";

/** The models that a page opens with: the first, and the next of another architecture that is asked about such scenes. */
function firstModels(models) {
  const [first, ...others] = models;
  const about = ({ queries, scenes }) => JSON.stringify([queries, scenes]);
  const isRival = (other) => other.architecture !== first.architecture && about(other) === about(first);
  return [first, first?.scenes && others.find(isRival)].filter(Boolean).map(({ name }) => name);
}

async function start() {
  const root = document.getElementById("saccade");
  const markup = pristine(root);
  if (root.parentElement === document.body) landmarks(root); // a report has its own
  const data = embedded();
  try {
    const source = await openSource(data);
    const glyphs = source && (await loadGlyphs(data?.glyphs ?? "glyphs.png"));
    const shell = data ? (views) => pageOfOwnParts(data, markup, views) : pageOfServer;
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
  return data.weights?.length ? new OfflineSource(data.weights, data.worker).open() : null;
}

start();
