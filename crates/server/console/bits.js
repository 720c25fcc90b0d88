// The bits of an ID. Nothing here knows the page.

const FIELDS = ["time", "clock", "worker", "sequence"];

/**
 * The fields of a layout written out in full, from the highest bit to the lowest. A worker that the layout
 * splits is several. `shift` is how far a field's lowest bit is from the ID's.
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

/** The fields, each with its value in this ID and its bits as text. IDs have up to 64 bits: BigInt. */
export function split(id, fields) {
  const number = BigInt(id);
  return fields.map((field) => {
    const value = (number >> BigInt(field.shift)) & ((1n << BigInt(field.bits)) - 1n);
    return { ...field, value, digits: value.toString(2).padStart(field.bits, "0") };
  });
}

/** Fields in words. */
export function described(fields) {
  return fields.map(({ name, bits }) => `${name} ${bits} ${bits === 1 ? "bit" : "bits"}`).join(", ");
}
