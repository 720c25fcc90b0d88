// The bits of an ID, independent of the page.

const FIELDS = ["time", "clock", "worker", "sequence"];

/**
 * Returns the fields of a full layout, from the highest bit to the lowest. A worker field that the layout splits is
 * several fields. `shift` is the distance of a field's lowest bit from the ID's lowest bit.
 */
export function fieldsOf(layout) {
  const fields = [];
  for (const item of layout.split(",")) {
    const [field, value = ""] = item.split("=");
    if (!FIELDS.includes(field)) continue;
    const parts = value.split("+").map(Number);
    parts.forEach((bits, index) => {
      fields.push({ field, name: parts.length > 1 ? `${field} ${index + 1}` : field, bits });
    });
  }
  let shift = 0;
  for (const field of fields.toReversed()) {
    field.shift = shift;
    shift += field.bits;
  }
  return fields;
}

/** Returns the fields, each with its value in this ID and its bits as text. IDs have up to 64 bits, thus BigInt. */
export function split(id, fields) {
  const number = BigInt(id);
  return fields.map((field) => {
    const value = (number >> BigInt(field.shift)) & ((1n << BigInt(field.bits)) - 1n);
    return { ...field, value, digits: value.toString(2).padStart(field.bits, "0") };
  });
}

/** Returns the fields as text. */
export function described(fields) {
  return fields.map(({ name, bits }) => `${name} ${bits} ${bits === 1 ? "bit" : "bits"}`).join(", ");
}
