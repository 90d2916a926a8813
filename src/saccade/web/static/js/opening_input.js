// What a model is shown first: the example picture of its data, or else a scene like those of its training.

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
