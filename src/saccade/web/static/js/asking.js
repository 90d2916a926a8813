// How a model is asked, as it says itself: one question of its list, any text, or nothing.

/** "choice", "text" or "none"; a model that does not say it has a list of questions or takes none. */
export function asksOf(model) {
  return model?.asks ?? (model?.queries?.length ? "choice" : "none");
}

/** What is sent to `model` when `question` is asked on the page; null where it takes no question. */
export function askedOf(model, question) {
  return asksOf(model) === "none" ? null : question;
}

export const PICTURE = "picture";

/** What `model` is shown on the page: pictures, or the thing it reads where its family's panel makes that. */
export function shownTo(model) {
  return model?.takes === "json" && model.panel ? model.reads : PICTURE;
}

/** Why `model` cannot be asked `question` about what the page shows it; null where it can. */
export function refusalOf(model, question) {
  if (model.size === null && shownTo(model) === PICTURE) return `This model does not read pictures; it reads: ${model.reads}. Ask it with “saccade look”.`;
  if (asksOf(model) === "text" && !question) return "Ask it something.";
  if (asksOf(model) !== "choice" || model.queries.includes(question)) return null;
  return `This model cannot be asked “${question}”. It can be asked: ${model.queries.slice(0, 10).join(", ")}.`;
}
