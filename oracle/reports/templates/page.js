"use strict";
// A closed case is text in a noscript element until it is opened. Drawings that an earlier case has are copied.
const fill = (box) => {
  for (const held of box.querySelectorAll("noscript")) held.outerHTML = held.textContent;
  for (const held of box.querySelectorAll("[data-as]")) {
    const id = held.dataset.as;
    fill(document.getElementById(id.split("-")[0]));
    const figure = document.getElementById(id).cloneNode(true);
    figure.removeAttribute("id");
    held.replaceWith(figure);
  }
};
const openAll = (open) => {
  if (open) fill(document);
  for (const each of document.querySelectorAll("main details")) each.open = open;
};
const reveal = () => {
  const id = decodeURIComponent(location.hash.slice(1));
  const box = document.getElementById(id.split("-")[0]);
  if (box?.matches(".case")) fill(box);
  const target = document.getElementById(id);
  for (let each = target; each; each = each.parentElement) {
    if (each.matches("details")) each.open = true;
    const fold = each.matches("tbody") && each.previousElementSibling?.querySelector(".fold details");
    if (fold) fold.open = true;
  }
  target?.scrollIntoView({ block: target.matches("tr") ? "center" : "start" });
};
let closed = [];
addEventListener("toggle", ({ target }) => { if (target.open && target.matches(".case")) fill(target); }, true);
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => { fill(document); closed = [...document.querySelectorAll("details:not([open])")]; for (const each of closed) each.open = true; });
addEventListener("afterprint", () => { for (const each of closed) each.open = false; });
for (const button of document.querySelectorAll("[data-open]")) button.onclick = () => openAll(!!button.dataset.open);
if (location.hash) reveal();
