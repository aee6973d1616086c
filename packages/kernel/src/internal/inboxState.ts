/**
 * What an inbox amounts to: its records, and what of them waits.
 *
 * Claims are told to it, since they are events of the log. Nothing here waits or
 * fails by itself: whoever owns the inbox does one thing at a time.
 */
import type { InboxEntry } from "@turnpike/contract"
import type * as SessionStore from "../SessionStore.ts"

type Received = Extract<InboxEntry.InboxEntry, { readonly type: "received" }>

export interface InboxState {
  readonly entries: Array<InboxEntry.InboxEntry>
  /** All that was ever received, by id. */
  readonly receipts: Map<InboxEntry.ReceiptId, InboxEntry.Receipt>
  readonly keys: Map<string, InboxEntry.Receipt>
  /** Where each receipt stands in the order of the inbox. One that repeats another stands in its place. */
  readonly places: Map<InboxEntry.ReceiptId, number>
  readonly waiting: Map<InboxEntry.ReceiptId, InboxEntry.Receipt>
  readonly requests: Map<InboxEntry.ReceiptId, string>
}

export const make = (): InboxState => ({
  entries: [],
  receipts: new Map(),
  keys: new Map(),
  places: new Map(),
  waiting: new Map(),
  requests: new Map()
})

const receiptOf = ({ seq: _, sum: __, type: ___, ...receipt }: Received): InboxEntry.Receipt => receipt

const forget = (self: InboxState, id: InboxEntry.ReceiptId) => {
  self.waiting.delete(id)
  self.requests.delete(id)
}

/** Takes the next record in, or says as a sentence why it cannot be that. */
export const add = (self: InboxState, entry: InboxEntry.InboxEntry): string | undefined => {
  if (entry.seq !== self.entries.length) return `its seq is ${entry.seq}; ${self.entries.length} was due`
  switch (entry.type) {
    case "received": {
      const receipt = receiptOf(entry)
      if (self.receipts.has(receipt.id)) return "its receipt is there already"
      if (receipt.key !== undefined && self.keys.has(receipt.key)) return "its idempotency key is there already"
      self.receipts.set(receipt.id, receipt)
      if (receipt.key !== undefined) self.keys.set(receipt.key, receipt)
      const place = receipt.retry_of === undefined ? undefined : self.places.get(receipt.retry_of)
      self.places.set(receipt.id, place ?? entry.seq)
      self.waiting.set(receipt.id, receipt)
      break
    }
    case "discarded":
      for (const id of entry.ids) forget(self, id)
      break
    case "discard_requested":
      for (const id of entry.ids) {
        if (self.waiting.has(id) && !self.requests.has(id)) self.requests.set(id, entry.by)
      }
  }
  self.entries.push(entry)
  return undefined
}

/** Receives a message; `undefined` where its key was used with other content. */
export const receive = (self: InboxState, message: SessionStore.Message, time: number): SessionStore.Received | undefined => {
  const earlier = message.key === undefined ? undefined : self.keys.get(message.key)
  if (earlier !== undefined) {
    return earlier.kind === message.kind && earlier.text === message.text && earlier.source === message.source
      ? { receipt: earlier, isNew: false }
      : undefined
  }
  const seq = self.entries.length
  // As many records as there are no receipt can have its number yet, unless it was restored with another's ids.
  let id = `r-${seq + 1}`
  for (let again = 1; self.receipts.has(id); again++) id = `r-${seq + 1}-${again}`
  const entry: Received = { seq, time, type: "received", id, ...message }
  add(self, entry)
  return { receipt: receiptOf(entry), isNew: true }
}

/** The first of the receipts that does not wait. */
export const missing = (self: InboxState, ids: ReadonlyArray<InboxEntry.ReceiptId>): InboxEntry.ReceiptId | undefined => {
  const seen = new Set<string>()
  return ids.find((id) => {
    const isMissing = !self.waiting.has(id) || seen.has(id)
    seen.add(id)
    return isMissing
  })
}

export const claim = (self: InboxState, ids: ReadonlyArray<InboxEntry.ReceiptId>): void => {
  for (const id of ids) forget(self, id)
}

/** Discards those that wait, and answers them in their order. Writes nothing where none does. */
export const discard = (
  self: InboxState,
  ids: ReadonlyArray<InboxEntry.ReceiptId>,
  cause: InboxEntry.DiscardCause,
  by: string,
  time: number
): ReadonlyArray<InboxEntry.Receipt> => {
  const asked = new Set(ids)
  const found = inOrder(self).filter(({ id }) => asked.has(id))
  if (found.length > 0) add(self, { seq: self.entries.length, time, type: "discarded", ids: found.map(({ id }) => id), cause, by })
  return found
}

/** Notes who asks for a discard of those that wait; answers whether any does. */
export const requestDiscard = (self: InboxState, ids: ReadonlyArray<InboxEntry.ReceiptId>, by: string, time: number): boolean => {
  const found = [...new Set(ids)].filter((id) => self.waiting.has(id))
  if (found.length > 0) add(self, { seq: self.entries.length, time, type: "discard_requested", ids: found, by })
  return found.length > 0
}

const inOrder = (self: InboxState): ReadonlyArray<InboxEntry.Receipt> => {
  const place = ({ id }: InboxEntry.Receipt) => self.places.get(id) ?? 0
  return [...self.waiting.values()].sort((one, other) => place(one) - place(other))
}

export const pending = (self: InboxState): SessionStore.Pending => {
  const receipts = inOrder(self)
  return {
    version: self.entries.length,
    nextTurn: receipts.filter(({ kind }) => kind === "followup"),
    nextStep: receipts.filter(({ kind }) => kind !== "followup"),
    discardRequests: [...self.requests].map(([id, by]) => ({ id, by }))
  }
}
