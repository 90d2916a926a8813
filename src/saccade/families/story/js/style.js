// How the story editor looks; colours are those of the page.

export const STYLE = `
.saccade .story-editor {
  border-collapse: separate;
  border-spacing: 3px;
  width: 100%;
  table-layout: auto;
}
.saccade .story-editor :is(td, th) {
  padding: 0;
  border: 0;
  font-weight: 400;
  vertical-align: middle;
}
.saccade .story-grip {
  width: 22px;
  text-align: center;
  color: var(--soft);
}
.saccade tbody .story-grip {
  background: radial-gradient(circle, var(--bar) 1.6px, transparent 2px) center / 7px 7px space content-box;
  padding: 9px 4px;
  background-clip: content-box;
  cursor: grab;
  touch-action: none;
  user-select: none;
}
.saccade .story-dragged {
  background: var(--tint);
}
.saccade .story-editor th.story-text {
  padding: 4px 8px;
  font-size: 13px;
  text-align: start;
  color: var(--soft);
}
.saccade .story-field {
  display: grid;
  min-width: 0;
  flex: 1;
}
.saccade .story-field > * {
  grid-area: 1 / 1;
  min-width: 0;
  width: 100%;
  font: inherit;
  font-size: 15px;
  line-height: 1.4;
  padding: 5px 8px;
  border: 1px solid var(--rule);
  border-radius: 8px;
}
.saccade .story-field input {
  background: none;
  color: var(--ink);
}
.saccade .story-copy {
  overflow: hidden;
  white-space: pre;
  color: transparent;
  background: var(--raised);
}
.saccade .story-copy u {
  text-decoration: underline wavy var(--danger) 1px;
  text-underline-offset: 3px;
}
.saccade .story-dropped .story-field input {
  color: var(--soft);
  opacity: 0.65;
}
.saccade .story-dropped .story-copy {
  background: var(--wash);
}
.saccade .story-hop {
  width: 60px;
  min-width: 44px;
  font-size: 13px;
  text-align: center;
  border-radius: 6px;
  font-variant-numeric: tabular-nums;
}
.saccade :is(th.story-hop, .story-model) {
  color: var(--soft);
  white-space: nowrap;
  overflow: hidden;
  text-overflow: ellipsis;
}
.saccade .story-model {
  font-size: 13px;
  max-width: 1px;
}
.saccade th.story-current {
  color: var(--ink);
  font-weight: 650;
}
.saccade .story-does {
  width: 108px;
  white-space: nowrap;
  text-align: end;
}
.saccade .story-does .icon {
  width: 32px;
  min-height: 32px;
  margin-inline-start: 3px;
}
.saccade .story-does .icon::before {
  content: "";
  display: block;
  width: 10px;
  height: 10px;
  margin: auto;
  background: currentcolor;
  clip-path: polygon(50% 10%, 100% 62%, 88% 74%, 50% 35%, 12% 74%, 0% 62%);
}
.saccade .story-does .story-down::before {
  transform: scaleY(-1);
}
.saccade .story-does .story-away::before {
  clip-path: polygon(
    10% 0, 50% 40%, 90% 0, 100% 10%, 60% 50%, 100% 90%, 90% 100%, 50% 60%, 10% 100%, 0 90%, 40% 50%, 0 10%
  );
}
.saccade .story-stale .story-hop {
  opacity: 0.45;
}
.saccade .story-question {
  display: flex;
  align-items: center;
  gap: 10px;
}
.saccade .story-question .story-field > * {
  font-size: 16px;
}
.saccade .story-notes:empty {
  display: none;
}
@container (max-width: 639px) {
  .saccade .story-editor :is(tr, thead, tbody, tfoot) {
    display: flex;
    flex-wrap: wrap;
    gap: 3px;
    width: 100%;
  }
  .saccade .story-editor {
    display: block;
  }
  .saccade .story-editor :is(td, th) {
    display: block;
  }
  .saccade .story-editor tbody tr {
    padding-bottom: 6px;
  }
  .saccade .story-editor .story-text {
    flex: 1 0 calc(100% - 28px);
  }
  .saccade .story-editor tbody .story-grip {
    line-height: 34px;
  }
  .saccade .story-editor :is(thead :is(.story-grip, .story-text), tfoot .story-grip) {
    display: none;
  }
  .saccade .story-editor tfoot .story-text {
    flex-basis: 100%;
  }
  .saccade .story-editor .story-hop {
    flex: 1 1 34px;
    line-height: 32px;
  }
  .saccade .story-editor .story-model {
    flex: 1 1 0;
    max-width: none;
  }
  .saccade .story-editor .story-does {
    flex: none;
  }
}
`;
