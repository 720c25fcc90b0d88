// The token, kept in the page's memory, and in the tab's storage if the user chooses it. It is never in a URL.

import { show } from "./api.js";
import { byId, onSubmit, showNotice } from "./dom.js";

const KEPT = "snowmint-token";
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** The tab's storage; empty if the browser denies access to it. */
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

/** Starts with the token in storage, and calls `changed` for each other token. */
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
    if (keep.checked && !done)
      showNotice(notice, "The browser denies storage to this page: the token is in memory only.");
    field.value = "";
    tried = text !== "";
    changed();
  };
  onSubmit(byId("token-form"), () => use(field.value.trim()));
  byId("token-forget").addEventListener("click", () => {
    keep.checked = false;
    use("");
  });
}

/** Whether the server required a token at the last refresh. */
let wanted = false;
/** Whether the user has signed in since, so that a rejected token is worth a notice. */
let tried = false;

/**
 * Shows the sign-in alone, or the caller's identity above the parts. `about` is the response of `GET /v1/server`,
 * `loadError` its error.
 */
export function known(about, loadError) {
  const required = loadError?.status === 401;
  document.body.classList.toggle("signed-out", required);
  byId("sign-in").hidden = !required;
  // Otherwise each refresh would count as a failed login.
  if (required) {
    show("");
    kept.write("");
  }
  if (required && tried)
    showNotice(byId("token-notice"), "The server rejects this token: it is unknown, expired or revoked.");
  if (required && !wanted) byId("token").focus();
  wanted = required;
  tried = false;
  byId("account").hidden = required || about?.tokens_required !== true;
  byId("token-status").textContent = about?.token ? `Signed in as ${about.token.name}` : "";
}
