/**
 * Text as bytes and back.
 *
 * Both globals are in every runtime, but their types are only in those of
 * browsers and of Node, which the kernel does without.
 */
declare const TextDecoder: new(
  label: "utf-8",
  options: { readonly fatal: true; readonly ignoreBOM: true }
) => { readonly decode: (bytes: Uint8Array) => string }
declare const TextEncoder: new() => { readonly encode: (text: string) => Uint8Array }

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** The text, with a byte order mark where there is one; `undefined` where the bytes are not UTF-8. */
export const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** Half a surrogate pair becomes U+FFFD; JSON text has none, since `JSON.stringify` escapes them. */
export const bytesOf = (text: string): Uint8Array => encoder.encode(text)
