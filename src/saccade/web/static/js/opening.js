// Bringing something in: a picture or a record, chosen, dropped or pasted.

import { part } from "./dom.js";
import { pictureOfFile } from "./pictures.js";
import { openRecord } from "./records.js";

/** `on` says what to do: picture(picture), views(views), wrong(error). */
export function listenForFiles(root, on) {
  const open = async (files) => {
    try {
      const record = files.find(({ name }) => name.endsWith(".json"));
      if (record) on.views(await openRecord(record, files));
      else if (files.length) on.picture(await pictureOfFile(files[0]));
    } catch (error) {
      on.wrong(error);
    }
  };
  for (const name of ["picture-file", "record-file"]) {
    const field = part(root, name);
    field.addEventListener("change", () => {
      open([...field.files]);
      field.value = ""; // so that the same file can be chosen again
    });
  }
  const dropping = (isSo) => root.toggleAttribute("data-dropping", isSo);
  root.addEventListener("dragover", (event) => {
    event.preventDefault();
    dropping(event.dataTransfer?.types.includes("Files") ?? false);
  });
  root.addEventListener("dragleave", (event) => dropping(root.contains(event.relatedTarget)));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    dropping(false);
    open([...event.dataTransfer.files]);
  });
  document.addEventListener("paste", (event) => {
    open([...(event.clipboardData?.files ?? [])]);
  });
}

export function hasExample(source, model) {
  return Boolean(model.example && source.example);
}

/** Whether nobody composed the scene, or opened the picture, that is on the page: another may take its place. */
export function isReplaceable({ mode, isOwn, picture }) {
  return mode === "scene" ? !isOwn : mode === "picture" && (!picture || picture.isExample);
}

/** Show `model` what it opens with, unless the page has gone on before the picture is here. */
export async function openWith(model, { source, store, composer, notices }) {
  const { mode, picture: before, scene } = store.state;
  if (hasExample(source, model)) {
    let picture, problem;
    try {
      picture = await source.example(model.example);
    } catch (error) {
      problem = error;
    }
    const { state } = store;
    const isAwaited = state.mode === mode && state.picture === before && state.scene === scene;
    if (!isAwaited || state.models[0] !== model.name) return;
    if (picture) {
      store.set({ picture, mode: "picture" });
      return;
    }
    notices.say(problem);
  }
  if (store.state.mode === "picture") store.set({ mode: "scene" });
  composer.fit(model.scenes);
}
