// Copies a text to the clipboard; where the browser forbids it, selects the text.

/** Copies the text of a node or of a text field, and tells the outcome in `done`. */
export async function copyFrom(node, done) {
  const isField = "value" in node;
  try {
    await navigator.clipboard.writeText(isField ? node.value : node.textContent);
    done.textContent = "Copied.";
  } catch {
    // Browsers permit the clipboard only over https and from this machine.
    node.focus();
    if (isField) node.select();
    else getSelection().selectAllChildren(node);
    done.textContent = "Selected; press Ctrl+C to copy.";
  }
}
