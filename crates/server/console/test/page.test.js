// Missing names and ids, which a browser reports only when a script runs.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

const folder = new URL("../", import.meta.url);
const read = (name) => readFileSync(new URL(name, folder), "utf8");
const scripts = new Map(readdirSync(folder).filter((name) => name.endsWith(".js")).map((name) => [name, read(name)]));
const page = read("index.html");

const exported = (text) =>
  new Set([...text.matchAll(/^export (?:async )?(?:function|const|let|class) (\w+)/gm)].map(([, name]) => name));

test("every imported name is exported", () => {
  let found = 0;
  for (const [name, text] of scripts) {
    for (const [, names, from] of text.matchAll(/^import \{([^}]*)\} from "\.\/([\w.]+)";$/gm)) {
      for (const wanted of names.split(",").map((one) => one.trim()).filter(Boolean)) {
        assert.ok(exported(scripts.get(from)).has(wanted), `${name} imports ${wanted} from ${from}`);
        found += 1;
      }
    }
    for (const [, as, from] of text.matchAll(/^import \* as (\w+) from "\.\/([\w.]+)";$/gm)) {
      for (const [, wanted] of text.matchAll(new RegExp(`\\b(?<!\\.)${as}\\.(\\w+)\\(`, "g"))) {
        assert.ok(exported(scripts.get(from)).has(wanted), `${name} imports ${wanted} from ${from}`);
        found += 1;
      }
    }
  }
  assert.ok(found > 60, String(found));
});

test("every id that a script uses is on the page once", () => {
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  assert.equal(new Set(ids).size, ids.length);
  let wanted = 0;
  for (const [name, text] of scripts) {
    for (const [, id] of text.matchAll(/byId\("([^"]+)"\)/g)) {
      assert.ok(ids.includes(id), `${name} uses the id ${id}`);
      wanted += 1;
    }
  }
  assert.ok(wanted > 80, String(wanted));
});

test("every input has a label, and every reference a target", () => {
  for (const [whole, tag, attributes] of page.matchAll(/<(input|select|textarea)\b([^>]*)>/g)) {
    const before = page.slice(0, page.indexOf(whole));
    const within = before.lastIndexOf("<label") > before.lastIndexOf("</label>");
    assert.ok(within, `${tag}${attributes} has no label`);
  }
  for (const [, id] of page.matchAll(/ (?:aria-labelledby|list)="([^"]+)"/g)) assert.ok(page.includes(` id="${id}"`), id);
  for (const [, part] of page.matchAll(/<li><a href="#(\w+)"/g)) assert.ok(page.includes(`<section id="${part}"`), part);
});

test("no placeholder looks like a value", () => {
  const texts = [...page.matchAll(/ placeholder="([^"]*)"/g)].map(([, text]) => text);
  assert.ok(texts.length >= 4);
  for (const text of texts) assert.match(text, /^such as /);
});

test("no count of a script has a plural noun that one thing lacks", () => {
  const nouns = ["server", "worker", "section", "journal", "number", "ID", "digit"];
  const counts = new RegExp(`grouped\\([^{}]*\\)\\} (${nouns.join("|")})s\\b`);
  for (const [name, text] of scripts) assert.equal(counts.exec(text)?.[0], undefined, name);
});
