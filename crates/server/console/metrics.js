// The parser of /metrics (text for Prometheus), independent of the page.

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Returns the samples of a page. */
export function samplesOf(page) {
  const samples = [];
  for (const line of page.split("\n")) {
    const found = line.startsWith("#") ? null : SAMPLE.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(LABEL)) {
      labels[name] = value.replace(/\\(.)/g, (_, sign) => (sign === "n" ? "\n" : sign));
    }
    samples.push({ name: found[1], labels, value: Number(found[3]) });
  }
  return samples;
}

/** Returns the value of a sample without labels; undefined if the page has none. */
export function single(samples, name) {
  return samples.find((sample) => sample.name === name)?.value;
}

/** Returns the samples of a name, summed by one label. */
export function sums(samples, name, label) {
  const sums = new Map();
  for (const { labels, value } of samples.filter((sample) => sample.name === name)) {
    sums.set(labels[label], (sums.get(labels[label]) ?? 0) + value);
  }
  return sums;
}

/**
 * Returns the rise of a count per second; undefined without an earlier count, after a restart of the count, and if the
 * earlier one is older than `elapsedMaxMs`: a rate over a long absence is not that of now.
 */
export function risesBy(before, after, elapsedMs, elapsedMaxMs) {
  if (before === undefined || after < before || elapsedMs <= 0 || elapsedMs > elapsedMaxMs) return undefined;
  return ((after - before) * 1_000) / elapsedMs;
}
