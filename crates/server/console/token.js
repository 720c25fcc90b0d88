// The token: in this page's memory, and in this tab's storage if that is chosen. Never in an address.

import { show } from "./api.js";
import { byId, onSubmit, tell } from "./dom.js";

const KEPT = "snowmint-token";
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Storage that a browser refuses is storage that is empty. */
const kept = {
  read() {
    try {
      return sessionStorage.getItem(KEPT) ?? "";
    } catch {
      return "";
    }
  },
  write(secret) {
    try {
      if (secret) sessionStorage.setItem(KEPT, secret);
      else sessionStorage.removeItem(KEPT);
      return true;
    } catch {
      return false;
    }
  },
};

/** Begins with the token that was kept. `changed` is called when there is another. */
export function begin(changed) {
  const field = byId("token");
  const keep = byId("token-keep");
  const notice = byId("token-notice");
  const secret = kept.read();
  keep.checked = secret !== "";
  show(secret);
  byId("token-plain").hidden = location.protocol === "https:" || LOOPBACK.test(location.hostname);
  const use = (text) => {
    show(text);
    const done = kept.write(keep.checked ? text : "");
    notice.hidden = true;
    if (keep.checked && !done) tell(notice, "The browser does not let this page keep it: it is in memory only.");
    field.value = "";
    changed();
  };
  onSubmit(byId("token-form"), () => use(field.value.trim()));
  byId("token-forget").addEventListener("click", () => {
    keep.checked = false;
    use("");
  });
}

/** Whether the server has asked for a token at the last look. */
let wanted = false;

/** How the server knows whoever asks. `about` is its answer, `refusal` what it said instead. */
export function known(about, refusal) {
  const box = byId("token-box");
  const asked = refusal?.status === 401;
  // Opened once, when it is wanted, and closed when it has served: in between it is the person's.
  if (asked !== wanted) box.open = asked;
  wanted = asked;
  box.hidden = !asked && about?.asks_for_tokens !== true;
  byId("token-status").textContent = asked ? "asked for" : (about?.token?.name ?? "");
}
