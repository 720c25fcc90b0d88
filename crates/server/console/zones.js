// Times in a zone that the user chooses, independent of the page.

/** Returns the names of all zones that the browser knows. */
export const names = () => ["UTC", ...Intl.supportedValuesOf("timeZone").filter((name) => name !== "UTC")];

/** Returns the zone of this machine. */
export const local = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Returns whether the browser knows the zone. */
export function isKnown(zone) {
  try {
    return Boolean(new Intl.DateTimeFormat("en", { timeZone: zone }));
  } catch {
    return false;
  }
}

/** Returns year, month and day of a time in a zone; in UTC, if the browser does not know the zone. */
export function dayIn(ms, zone) {
  const [date] = inZone(new Date(ms).toISOString(), isKnown(zone) ? zone : "UTC").split(" ");
  return date.split("-").map(Number);
}

/** Returns an RFC 3339 time of UTC in a zone, with its offset; unchanged if it is beyond what the browser can read. */
export function inZone(time, zone) {
  const ms = Date.parse(time);
  if (Number.isNaN(ms)) return time;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    timeZoneName: "longOffset",
  });
  const part = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  const offset = ["GMT", "GMT+00:00"].includes(part.timeZoneName) ? "UTC" : part.timeZoneName.replace("GMT", "");
  return `${part.year.padStart(4, "0")}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second}.${part.fractionalSecond} ${offset}`;
}
