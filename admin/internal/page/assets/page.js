// What is live on a page, and small comforts. Every page can be read and used without it.
"use strict";

(() => {
  // Live parts: one stream for all elements with data-live. Hidden pages let go of it, since browsers allow few streams.
  const parts = [...document.querySelectorAll("[data-live]")];
  let stream = null;

  const mark = (element, state) => element.setAttribute("data-live-state", state);

  // replace puts new content into a part, and keeps what the reader has opened, scrolled and focused.
  const replace = (element, html) => {
    const opened = new Set([...element.querySelectorAll("details[id][open]")].map((d) => d.id));
    const closed = new Set([...element.querySelectorAll("details[id]:not([open])")].map((d) => d.id));
    const scrolled = [...element.querySelectorAll("[id]")].filter((e) => e.scrollTop || e.scrollLeft).map((e) => [e.id, e.scrollLeft, e.scrollTop]);
    const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
    element.innerHTML = html;
    for (const d of element.querySelectorAll("details[id]")) {
      if (opened.has(d.id)) d.open = true;
      if (closed.has(d.id)) d.open = false;
    }
    for (const [id, left, top] of scrolled) {
      const e = document.getElementById(id);
      if (e) e.scrollTo(left, top);
    }
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    comfort(element);
  };

  const listen = () => {
    if (stream || document.hidden || !parts.length) return;
    const query = new URLSearchParams(parts.map((e) => ["part", e.dataset.live]));
    stream = new EventSource("/live?" + query);
    parts.forEach((element, i) => {
      stream.addEventListener("part" + i, (event) => {
        mark(element, "live");
        replace(element, event.data);
      });
    });
    stream.addEventListener("over", (event) => {
      stream.close();
      stream = null;
      parts.forEach((e) => mark(e, "old"));
      if (event.data === "refused") location.reload();
      else parts.length = 0;
    });
    stream.onerror = () => parts.forEach((e) => mark(e, "old"));
  };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return listen();
    stream?.close();
    stream = null;
  });
  addEventListener("pagehide", () => { stream?.close(); stream = null; });
  addEventListener("pageshow", listen);

  for (const log of document.querySelectorAll("[data-tail]")) log.scrollTop = log.scrollHeight;

  // A log that is followed: pieces of HTML are added at the end. The reader who has scrolled up stays there.
  for (const log of document.querySelectorAll("[data-follow]")) {
    const follow = new EventSource(log.dataset.follow);
    mark(log, "live");
    let bytes = 0;
    follow.addEventListener("more", (event) => {
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      log.insertAdjacentHTML("beforeend", event.data);
      bytes += event.data.length;
      while (bytes > 4e6 && log.firstChild) {
        bytes -= (log.firstChild.textContent || "").length + 1;
        log.firstChild.remove();
      }
      if (atEnd) log.scrollTop = log.scrollHeight;
    });
    follow.addEventListener("over", (event) => {
      follow.close();
      mark(log, "ended");
      if (event.data === "refused") location.reload();
    });
    follow.onerror = () => { follow.close(); mark(log, "old"); };
    addEventListener("pagehide", () => follow.close());
  }

  // comfort adds the reader's own time to times.
  const comfort = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) time.title = (time.title ? time.title + ", " : "UTC; ") + at.toLocaleString() + " here";
    }
    for (const table of root.querySelectorAll("form[data-all]")) {
      const boxes = [...table.querySelectorAll("tbody input[type=checkbox]")];
      const all = table.querySelector("thead input[type=checkbox]");
      if (!all) continue;
      all.hidden = false;
      all.onchange = () => boxes.forEach((b) => { b.checked = all.checked; });
    }
  };
  comfort(document);
  listen();

  // A search that has not filled its page goes on by itself: the link's next answer is fetched and its rows are appended, until the page is full,
  // everything was searched, the reader stops it, or it took 20 seconds. The link stays, and goes on where the search is.
  const goOn = async (further) => {
    const link = further.querySelector("a"), stop = further.querySelector("button"), say = further.querySelector("[role=status]");
    const rows = document.getElementById("found"), searched = document.getElementById("searched"), why = document.getElementById("why");
    const count = () => rows.querySelectorAll("tr[data-job]").length;
    const ending = new AbortController();
    const began = Date.now();
    stop.hidden = false;
    stop.onclick = () => ending.abort();
    addEventListener("pagehide", () => ending.abort());
    let end = "stopped";
    try {
      while (!ending.signal.aborted) {
        say.textContent = `searching: ${count()} found, back to ${searched.textContent}`;
        const answer = await fetch(link.href, { signal: ending.signal });
        if (!answer.ok) throw new Error("no answer: " + answer.status);
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        const more = [...next.querySelectorAll("#found tr[data-job]")].map((row) => document.importNode(row, true));
        if (more.length) rows.querySelector("tr:not([data-job])")?.remove();
        for (const row of more) {
          rows.append(row);
          comfort(row);
        }
        for (const id of ["searched", "why", "pages"]) document.getElementById(id).replaceChildren(...next.getElementById(id).childNodes);
        const onward = next.querySelector("#further a");
        if (!onward) {
          further.remove();
          const none = rows.querySelector("tr:not([data-job]) td");
          if (none) none.textContent = "No job found.";
          return;
        }
        link.href = onward.getAttribute("href");
        if (count() >= 50) { end = "the page is full"; break; }
        if (Date.now() - began > 20000) { end = "the time was up"; break; }
      }
    } catch (fault) {
      if (fault.name !== "AbortError") end = fault.message;
    }
    stop.hidden = true;
    why.textContent = "; " + end;
    say.textContent = end;
  };
  const further = document.getElementById("further");
  if (further) goOn(further);
})();
