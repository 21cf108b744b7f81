// The picture of a flow: fetched once, coloured by the statuses that come by and by, moved and zoomed.
"use strict";

(() => {
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // draw makes a figure live.
  const draw = async (figure) => {
    const view = figure.querySelector(".view");
    const bar = figure.querySelector(".row");
    const say = figure.querySelector("[data-say]");
    const waiting = figure.querySelector("[data-drawing]");
    waiting.hidden = false;
    let svg;
    try {
      const answer = await fetch(figure.dataset.graph);
      if (!answer.ok) throw new Error("the picture did not come: " + answer.status);
      svg = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
      if (svg.nodeName !== "svg") throw new Error("the picture cannot be read");
    } catch (fault) {
      waiting.textContent = fault.message;
      return;
    }
    svg = document.importNode(svg, true);
    const whole = { w: svg.viewBox.baseVal.width, h: svg.viewBox.baseVal.height };
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    svg.setAttribute("preserveAspectRatio", "xMidYMin meet");
    waiting.remove();
    view.append(svg);
    bar.hidden = false;

    // Where we look: the upper left corner, and how large a pixel of the picture is.
    const at = { x: 0, y: 0, scale: 1 };
    const size = () => ({ w: view.clientWidth || 1, h: view.clientHeight || 1 });
    const show = () => {
      const { w, h } = size();
      const shown = { w: w / at.scale, h: h / at.scale };
      at.x = shown.w >= whole.w ? (whole.w - shown.w) / 2 : clamp(at.x, -40, whole.w - shown.w + 40);
      at.y = shown.h >= whole.h ? 0 : clamp(at.y, -40, whole.h - shown.h + 40);
      svg.setAttribute("viewBox", [at.x, at.y, shown.w, shown.h].join(" "));
      view.classList.toggle("tall", shown.h < whole.h); // else a finger that goes up or down scrolls the page
    };
    const zoom = (factor, x = size().w / 2, y = size().h / 2) => {
      const scale = clamp(at.scale * factor, 0.02, 4);
      at.x += x / at.scale - x / scale;
      at.y += y / at.scale - y / scale;
      at.scale = scale;
      show();
    };
    const fit = (all) => {
      const { w, h } = size();
      at.scale = Math.min(1, w / whole.w, all ? h / whole.h : 1);
      if (!all) at.scale = Math.max(at.scale, 0.35); // smaller than that nobody reads it
      at.x = (whole.w - w / at.scale) / 2;
      at.y = 0;
      show();
    };
    // A picture that nobody has moved fits its box again when that changes: a telephone is turned.
    let touched = false, width = 0;
    for (const part of [view, bar]) {
      for (const touch of ["pointerdown", "keydown", "wheel"]) part.addEventListener(touch, () => { touched = true; }, { passive: true });
    }
    const settle = () => {
      if (touched || view.clientWidth === width) return show();
      width = view.clientWidth;
      view.style.height = Math.round(clamp(whole.h * Math.min(1, size().w / whole.w) + 8, 160, innerHeight * 0.65)) + "px";
      fit(false);
    };
    settle();
    addEventListener("resize", settle);

    bar.addEventListener("click", (event) => {
      const what = event.target.dataset.zoom;
      if (what === "in") zoom(1.4);
      if (what === "out") zoom(1 / 1.4);
      if (what === "width") fit(false);
      if (what === "all") fit(true);
    });
    view.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = 60 / at.scale;
      const keys = {
        ArrowLeft: () => { at.x -= step; show(); }, ArrowRight: () => { at.x += step; show(); },
        ArrowUp: () => { at.y -= step; show(); }, ArrowDown: () => { at.y += step; show(); },
        "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(false), 9: () => fit(true),
        Enter: () => { if (chosen) go(chosen); },
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      const box = view.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });

    // A drag moves, two fingers zoom, a click goes to the node.
    const fingers = new Map(); // where the pointers are that are down
    let moved = false; // since the first of them
    const hold = () => {
      const all = [...fingers.values()];
      const x = all.reduce((sum, f) => sum + f.x, 0) / all.length, y = all.reduce((sum, f) => sum + f.y, 0) / all.length;
      return { x, y, spread: Math.hypot(all[0].x - x, all[0].y - y) };
    };
    view.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      if (!fingers.size) moved = false;
      fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    });
    view.addEventListener("pointermove", (event) => {
      const finger = fingers.get(event.pointerId);
      if (!finger || !moved && Math.hypot(event.clientX - finger.x, event.clientY - finger.y) < 5) return;
      if (!moved) for (const id of fingers.keys()) view.setPointerCapture(id);
      moved = true;
      const before = hold();
      finger.x = event.clientX;
      finger.y = event.clientY;
      const after = hold();
      at.x -= (after.x - before.x) / at.scale;
      at.y -= (after.y - before.y) / at.scale;
      const box = view.getBoundingClientRect();
      if (fingers.size > 1 && before.spread > 0) zoom(after.spread / before.spread, after.x - box.left, after.y - box.top);
      else show();
    });
    for (const end of ["pointerup", "pointercancel"]) view.addEventListener(end, (event) => fingers.delete(event.pointerId));
    const nodeOf = (element) => element.closest?.("g.node, g.box");
    const go = (node) => { location.href = figure.dataset.node + node.id.slice(1) + (figure.dataset.node.includes("?") ? "#node" : ""); };
    svg.addEventListener("click", (event) => {
      const node = nodeOf(event.target);
      if (node && !moved) go(node);
    });

    // Finding a node by its name; Enter goes on to the next, and from the picture to its page.
    const nodes = [...svg.querySelectorAll("g.node, g.box")];
    const names = new Map(nodes.map((g) => [g, g.firstElementChild.textContent]));
    let chosen = null;
    const choose = (node) => {
      chosen?.classList.remove("found");
      chosen = node;
      if (!node) return;
      node.classList.add("found");
      const box = node.querySelector("rect").getBBox();
      if (at.scale < 0.5) at.scale = 0.8;
      const { w, h } = size();
      at.x = box.x + box.width / 2 - w / at.scale / 2;
      at.y = box.y + Math.min(box.height, h / at.scale) / 2 - h / at.scale / 2;
      show();
    };
    const input = bar.querySelector("[data-find]");
    const find = (next) => {
      const wanted = input.value.trim().toLowerCase();
      const found = wanted ? nodes.filter((g) => names.get(g).toLowerCase().includes(wanted)) : [];
      const i = next ? (found.indexOf(chosen) + 1) % found.length : 0;
      say.textContent = !wanted ? "" : found.length ? `${i + 1} of ${found.length}: ${names.get(found[i]).split("\n")[0]}` : "no such node";
      choose(found[i] ?? null);
    };
    input.addEventListener("input", () => find(false));
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      if (event.shiftKey && chosen) go(chosen);
      else find(true);
    });

    // Statuses: a letter for each node, in order. Only what has changed is touched.
    const source = document.getElementById("statuses");
    if (!source) return;
    const words = JSON.parse(source.dataset.words);
    let last = "";
    const colour = () => {
      const letters = source.textContent.trim();
      for (let i = 0; i < letters.length; i++) {
        if (letters[i] === last[i]) continue;
        const group = svg.getElementById("n" + i);
        const word = words[letters[i]];
        if (!group || !word) continue;
        const [status, kind, sign] = word;
        group.setAttribute("class", [group.getAttribute("class").split(" ")[0], kind, group === chosen ? "found" : ""].join(" ").trim());
        group.setAttribute("data-status", status);
        const [first, ...more] = names.get(group).split("\n");
        group.querySelector("title").textContent = [first + ": " + status, ...more].join("\n");
        group.querySelector("tspan").textContent = sign && sign + " ";
      }
      last = letters;
    };
    colour();
    new MutationObserver(colour).observe(source, { childList: true, characterData: true, subtree: true });
  };
  for (const figure of document.querySelectorAll("figure[data-graph]")) draw(figure);
})();
