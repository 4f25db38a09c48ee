import {
  type Command,
  type ElementChange,
  hasRanges,
  keyExpression,
  type NftFamily,
  type SetName,
  setNames,
  tableName,
  valueExpression,
} from './elements.ts';

/** Changes as transactions of a size that the kernel takes, in the JSON of nft. Pure. */

/**
 * Bytes of JSON for the elements of one transaction. Without NET_ADMIN in the initial namespace the kernel takes no
 * message larger than the default buffer of a socket (net.core.wmem_max, 212,992 bytes); the message for an element
 * is smaller than its JSON. Texts above 128 KiB are large objects to V8, which are freed only by a full collection.
 */
const transactionLimit = 100_000;

/** The same for rules: what is sent for one is up to three times as large as its JSON. */
const rulesLimit = 50_000;

/**
 * Turns changes into commands of nft, each text one transaction; one is enough for most. Otherwise the changes of
 * one Service stay together; of a Service that is too large for one, endpoints come first, then what refers to
 * them. Endpoints without references are removed last.
 */
export class Transactions {
  readonly #family: NftFamily;
  readonly #recordsDrops: boolean;
  #batch: Batch;
  #unused: ElementChange[] = [];

  /** @param recordsDrops whether the table records what it drops. */
  constructor(family: NftFamily, recordsDrops = false) {
    this.#family = family;
    this.#recordsDrops = recordsDrops;
    this.#batch = new Batch(family);
  }

  /**
   * Adds changes; those of one Service must come in one call, so that they share a transaction. Yields each transaction
   * that is full.
   */
  *push(changes: readonly ElementChange[]): Generator<string> {
    const byService = new Map<string, ElementChange[]>();
    for (const change of changes) {
      const { set, service = '' } = change.element;
      const group = byService.get(service);
      if (change.kind === 'delete' && /-endpoint(s|-marks)$/.test(set)) this.#unused.push(change);
      else if (group === undefined) byService.set(service, [change]);
      else group.push(change);
    }
    for (const group of byService.values()) yield* this.#addGroup(group.sort((a, b) => rank(a) - rank(b)));
  }

  /** Yields the rest: endpoints that nothing refers to any more are deleted last. */
  *flush(): Generator<string> {
    const unused = this.#unused;
    this.#unused = [];
    for (const change of unused) yield* this.#addGroup([change]);
    if (!this.#batch.isEmpty) yield this.#take();
  }

  *#addGroup(changes: readonly ElementChange[]): Generator<string> {
    const entries = changes.map((change) => entryOf(change, this.#recordsDrops));
    if (!this.#batch.hasRoomFor(sizeOf(entries))) yield this.#take();
    for (const entry of entries) {
      if (!this.#batch.hasRoomFor(entry.size)) yield this.#take();
      this.#batch.add(entry);
    }
  }

  #take(): string {
    const text = this.#batch.text();
    this.#batch = new Batch(this.#family);
    return text;
  }
}

/** The commands in their order, as transactions of a size that the kernel takes. */
export function splitTransactions(commands: readonly Command[]): readonly string[] {
  const texts: string[] = [];
  let current: string[] = [];
  let size = 0;
  const cut = (): void => {
    if (current.length > 0) texts.push(`{"nftables":[${current.join(',')}]}`);
    current = [];
    size = 0;
  };
  for (const command of commands) {
    const text = JSON.stringify(command);
    if (size + text.length > rulesLimit) cut();
    current.push(text);
    size += text.length;
  }
  cut();
  return texts;
}

/** A change with what nft reads of its element. */
interface Entry {
  readonly set: SetName;
  /** The key, where it is deleted or replaced. */
  readonly deleted: string | undefined;
  /** Key and value, where it is added or replaced. */
  readonly added: string | undefined;
  readonly size: number;
}

const order = new Map(setNames.map((name, index) => [name, index]));

/**
 * References are added after their target, and removed before it. Ranges are removed before others that they may
 * overlap are added.
 */
function rank({ kind, element: { set } }: ElementChange): number {
  const position = order.get(set) ?? 0;
  if (kind !== 'delete') return position;
  return hasRanges(set) ? position - 0.5 : 2 * setNames.length - position;
}

function entryOf({ kind, element: { set, key, value } }: ElementChange, recordsDrops: boolean): Entry {
  const keyJson = JSON.stringify(keyExpression(key));
  const deleted = kind === 'add' ? undefined : keyJson;
  const added =
    kind === 'delete'
      ? undefined
      : value === undefined
        ? keyJson
        : `[${keyJson},${JSON.stringify(valueExpression(value, recordsDrops))}]`;
  return { set, deleted, added, size: (deleted?.length ?? 0) + (added?.length ?? 0) + 2 };
}

function sizeOf(group: readonly Entry[]): number {
  return group.reduce((sum, { size }) => sum + size, 0);
}

/** One transaction: first all deletions, then all additions, endpoints before what leads to them. */
class Batch {
  readonly #family: NftFamily;
  readonly #entries = new Map<SetName, { deleted: string[]; added: string[] }>();
  #size = 0;

  constructor(family: NftFamily) {
    this.#family = family;
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** An empty one takes anything. */
  hasRoomFor(size: number): boolean {
    return this.isEmpty || this.#size + size <= transactionLimit;
  }

  add({ set, deleted, added, size }: Entry): void {
    let entries = this.#entries.get(set);
    if (entries === undefined) this.#entries.set(set, (entries = { deleted: [], added: [] }));
    if (deleted !== undefined) entries.deleted.push(deleted);
    if (added !== undefined) entries.added.push(added);
    this.#size += size;
  }

  text(): string {
    const of = (verb: 'add' | 'delete', side: 'added' | 'deleted'): readonly string[] =>
      setNames.flatMap((name) => {
        const elements = this.#entries.get(name)?.[side] ?? [];
        if (elements.length === 0) return [];
        const head = `{"${verb}":{"element":{"family":"${this.#family}","table":"${tableName}","name":"${name}"`;
        return [`${head},"elem":[${elements.join(',')}]}}}`];
      });
    return `{"nftables":[${[...of('delete', 'deleted'), ...of('add', 'added')].join(',')}]}`;
  }
}
