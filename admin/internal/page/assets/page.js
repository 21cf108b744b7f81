// What is live on a page, and small comforts. Every page can be read and used without it.
"use strict";

(() => {
  // Live parts: one stream for all elements with data-live. Hidden pages let go of it, since browsers allow few streams.
  let parts = [...document.querySelectorAll("[data-live]")];
  let stream = null;

  const mark = (element, state) => element.setAttribute("data-live-state", state);

  // connect reads events from an address, which is asked for each time: on has what is done with each kind of them, and state is told "live" and "lost".
  // A connection that breaks, or is silent for longer than the server ever is, is made anew: at first soon, then every 15 seconds.
  const silence = 40000;
  const connections = new Set();
  const connect = (address, on, state) => {
    let source = null, timer = 0, tries = 0;
    const shut = () => {
      clearTimeout(timer);
      source?.close();
      source = null;
    };
    const awake = () => {
      clearTimeout(timer);
      timer = setTimeout(again, silence);
    };
    const again = async () => {
      const refused = source?.readyState === EventSource.CLOSED; // or a proxy that has no server
      shut();
      state("lost");
      timer = setTimeout(connection.open, Math.min(500 * 2 ** tries++, 15000) * (0.5 + Math.random() / 2));
      if (!refused) return;
      const asking = new AbortController();
      const answer = await fetch(address(), { headers: { Accept: "text/event-stream" }, signal: asking.signal }).catch(() => null);
      asking.abort();
      if (connections.has(connection) && [401, 403, 404].includes(answer?.status)) location.reload();
    };
    const connection = {
      open() {
        if (source || document.hidden) return;
        source = new EventSource(address());
        awake();
        source.onopen = () => { awake(); state("live"); };
        source.onerror = again;
        source.addEventListener("beat", awake);
        for (const [name, take] of Object.entries(on)) {
          source.addEventListener(name, (event) => {
            tries = 0;
            awake();
            take(event);
          });
        }
      },
      shut,
      end() {
        connections.delete(connection);
        shut();
      },
    };
    connections.add(connection);
    connection.open();
    return connection;
  };
  const resume = () => connections.forEach((c) => c.open());
  const pause = () => connections.forEach((c) => c.shut());
  document.addEventListener("visibilitychange", () => document.hidden ? pause() : resume());
  addEventListener("pagehide", pause);
  addEventListener("pageshow", resume);

  // alike are the elements of a part that look like one of it: links to the same page, fields of the same name.
  const alike = (root, { localName, href, name, className }) =>
    [...root.querySelectorAll(localName)].filter((e) => e.href === href && e.name === name && e.className === className);

  // replace puts new content into a part, and keeps what the reader has opened, scrolled and focused.
  const replace = (element, html) => {
    const opened = new Set([...element.querySelectorAll("details[id][open]")].map((d) => d.id));
    const closed = new Set([...element.querySelectorAll("details[id]:not([open])")].map((d) => d.id));
    const scrolled = [...element.querySelectorAll("[id]")].filter((e) => e.scrollTop || e.scrollLeft).map((e) => [e.id, e.scrollLeft, e.scrollTop]);
    const focused = element !== document.activeElement && element.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && alike(element, focused).indexOf(focused);
    const logs = new Map([...element.querySelectorAll("[data-log]")].map((log) => [log.dataset.log, log]));
    element.innerHTML = html;
    for (const log of element.querySelectorAll("[data-log]")) { // one that is shown already goes on as it is
      const old = logs.get(log.dataset.log);
      if (old) log.replaceWith(old);
      else follow(log);
    }
    for (const d of element.querySelectorAll("details[id]")) {
      if (opened.has(d.id)) d.open = true;
      if (closed.has(d.id)) d.open = false;
    }
    for (const [id, left, top] of scrolled) {
      const e = document.getElementById(id);
      if (e) e.scrollTo(left, top);
    }
    if (focused && !document.contains(focused)) {
      const again = focused.id ? document.getElementById(focused.id) : alike(element, focused)[place];
      again?.focus({ preventScroll: true });
    }
    comfort(element);
  };

  // A part says by data-now in which state its thing is. What depends on that, but cannot be in a part that all see (buttons, forms, logs), is in
  // elements with data-renew and an id: when the state is another than that which they were made for, they are taken from the page as it is now.
  // Not from under somebody's hands: who types or has ticked something there is waited for.
  const now = (root) => root?.querySelector("[data-now]")?.dataset.now;
  const made = new Map(parts.map((e) => [e.id, now(e)]));
  let renewing = false;
  const inUse = (element) => element.querySelector("input[type=checkbox]:checked") !== null
    || element.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox]), select, textarea");

  const renew = async () => {
    if (renewing || parts.every((e) => now(e) === made.get(e.id))) return;
    renewing = true;
    let pause = 500;
    try {
      const shown = [...document.querySelectorAll("[data-renew]")];
      if (shown.some(inUse)) return;
      const answer = await fetch(location.href);
      if (answer.status >= 500) throw new Error("no answer: " + answer.status);
      if (!answer.ok || answer.redirected) return location.reload();
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (shown.some(inUse)) return;
      for (const element of shown) {
        const fresh = page.getElementById(element.id);
        if (!fresh) continue;
        for (const name of element.getAttributeNames()) if (!fresh.hasAttribute(name)) element.removeAttribute(name);
        for (const name of fresh.getAttributeNames()) element.setAttribute(name, fresh.getAttribute(name));
        replace(element, fresh.innerHTML);
      }
      for (const element of parts) {
        const fresh = page.getElementById(element.id);
        if (!fresh) continue;
        made.set(element.id, now(fresh));
        if (document.contains(element) && !element.closest("[data-renew]")) replace(element, fresh.innerHTML);
      }
      const live = [...document.querySelectorAll("[data-live]")];
      const others = live.length !== parts.length || live.some((e, i) => e !== parts[i] || e.dataset.live !== sources[i]);
      parts = live;
      if (others) {
        stream?.end();
        listen();
      }
    } catch {
      pause = 2000; // the server is away
    } finally {
      renewing = false;
      setTimeout(renew, pause);
    }
  };

  // What the reader has selected in a part is not taken from under the pointer: new content waits for the end of the selection.
  const selected = (element) => {
    const selection = getSelection();
    return !selection.isCollapsed && selection.containsNode(element, true);
  };
  const waiting = new Map();
  const put = (element, html) => {
    if (selected(element)) {
      waiting.set(element, html);
      element.dataset.waits = "";
      return;
    }
    waiting.delete(element);
    delete element.dataset.waits;
    replace(element, html);
    renew();
  };
  document.addEventListener("selectionchange", () => { for (const [element, html] of waiting) put(element, html); });

  let sources = []; // of the stream's parts
  const listen = () => {
    if (!parts.length) return;
    sources = parts.map((e) => e.dataset.live);
    const query = new URLSearchParams(sources.map((path) => ["part", path]));
    const on = {
      over(event) {
        stream.end();
        parts.forEach((e) => mark(e, "old"));
        if (event.data === "refused") location.reload();
        else parts = [];
      },
    };
    parts.forEach((element, i) => {
      on["part" + i] = (event) => {
        mark(element, "live");
        put(element, event.data);
      };
    });
    stream = connect(() => "/live?" + query, on, (state) => { if (state === "lost") parts.forEach((e) => mark(e, state)); });
  };

  // A log that is followed: pieces of HTML are added at the end. The reader who has scrolled up stays there.
  const follow = (log) => {
    if (log.dataset.tail !== undefined) log.scrollTop = log.scrollHeight;
    if (!log.dataset.follow) return;
    const from = new URL(log.dataset.follow, location.href);
    let bytes = 0;
    const connection = connect(() => from, {
      more(event) {
        from.searchParams.set("after", event.lastEventId); // where a new connection goes on
        const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
        log.insertAdjacentHTML("beforeend", event.data);
        bytes += event.data.length;
        while (bytes > 4e6 && log.firstChild) {
          bytes -= (log.firstChild.textContent || "").length + 1;
          log.firstChild.remove();
        }
        if (atEnd) log.scrollTop = log.scrollHeight;
      },
      over(event) {
        connection.end();
        mark(log, "ended");
        if (event.data === "refused") location.reload();
      },
    }, (state) => mark(log, state));
    new MutationObserver((_, observer) => { // another log has taken its place
      if (document.contains(log)) return;
      connection.end();
      observer.disconnect();
    }).observe(document.getElementById("main"), { childList: true, subtree: true });
  };
  for (const log of document.querySelectorAll(".log")) follow(log);

  // comfort adds the reader's own time to times.
  const comfort = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) time.title = (time.title ? time.title + ", " : "UTC; ") + at.toLocaleString() + " here";
    }
    for (const table of root.querySelectorAll("form[data-all]")) {
      table.onkeypress = (event) => { // Enter ticks, as the space bar does: it would press the first button, which acts on all that is ticked
        if (event.key !== "Enter" || event.target.type !== "checkbox") return;
        event.preventDefault();
        event.target.click();
      };
      const all = table.querySelector("thead input[type=checkbox]");
      if (!all) continue;
      all.hidden = false;
      all.onchange = () => table.querySelectorAll("tbody input[type=checkbox]").forEach((b) => { b.checked = all.checked; });
    }
  };
  comfort(document);
  listen();

  // Of fields that belong to a choice (data-of: its name and value), those of what is chosen are shown.
  const chosen = () => document.querySelectorAll("[data-of]").forEach((field) => {
    const [name, value] = field.dataset.of.split(" ");
    field.hidden = field.closest("form").elements[name].value !== value;
  });
  document.addEventListener("change", chosen);
  addEventListener("pageshow", chosen); // also where the browser has filled in what was there
  chosen();

  // A search that has not filled its page goes on by itself: the link's next answer is fetched and what it found is appended, until the page is full,
  // everything was searched, the reader stops it, or it took 20 seconds. The link stays, and goes on where the search is.
  const goOn = async (further) => {
    const link = further.querySelector("a"), stop = further.querySelector("button"), say = further.querySelector("[role=status]");
    const found = document.getElementById("found"), searched = document.getElementById("searched"), why = document.getElementById("why");
    const shown = document.getElementById("count");
    const count = () => found.querySelectorAll("[data-found]").length;
    const ending = new AbortController();
    const began = Date.now();
    stop.hidden = false;
    stop.onclick = () => ending.abort();
    addEventListener("pagehide", () => ending.abort());
    let end = "stopped";
    try {
      while (!ending.signal.aborted) {
        say.textContent = `searching: ${count()} found, ${further.dataset.way} ${searched.textContent}`;
        const answer = await fetch(link.href, { signal: ending.signal });
        if (!answer.ok) throw new Error("no answer: " + answer.status);
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        const more = [...next.querySelectorAll("#found [data-found]")].map((one) => document.importNode(one, true));
        if (more.length) found.querySelector("[data-none]")?.remove();
        for (const one of more) {
          found.append(one);
          comfort(one);
        }
        for (const id of ["searched", "why", "left", "pages"]) document.getElementById(id)?.replaceChildren(...next.getElementById(id).childNodes);
        if (shown) shown.textContent = count().toLocaleString("en");
        const onward = next.querySelector("#further a");
        if (!onward) {
          further.remove();
          const none = found.querySelector("[data-none]");
          if (none) (none.firstElementChild ?? none).textContent = none.textContent.replace(" so far", "");
          return;
        }
        link.href = onward.getAttribute("href");
        if (count() >= Number(further.dataset.full)) { end = "the page is full"; break; }
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
