import type { KeptKind, RowChanges, StoredRow, Tables } from '../view/stored-rows.ts';
import type { RowTables } from '../view/row-tables.ts';
import type { EventRow, JournalRow, RowKind, RowOfKind } from '../view/rows/rows.ts';
import { formatTime } from '../objects/formats/time.ts';
import { joinKey } from '../objects/meta.ts';
import { runInSlices } from '../telemetry/time-slice.ts';
import type { PresentFlows } from './flow-watch.ts';
import { type ClusterInfo, type Follow, mostPods, rowsOfView, type Status } from './messages.ts';

/** Which rows a view shows. */
type Shows = { readonly [Kind in KeptKind]: (row: RowOfKind[Kind]) => boolean };

/** Kinds that come with each view. */
const always: readonly RowKind[] = ['problem', 'namespace'];

/** Kinds whose rows are not kept, but made for one tab. */
const madeForOne: ReadonlySet<RowKind> = new Set([
  ...(['serviceDetail', 'flow', 'flowGroup', 'flowWatch', 'journal'] as const),
]);

function isKept(kind: RowKind): kind is KeptKind {
  return !madeForOne.has(kind);
}

/** What a feed reads of a {@link Follower}. */
export interface Followed {
  readonly status: Status;
  readonly tables: Pick<RowTables, 'rows' | 'detailOf'>;
}

/** Rows of one step. */
const rowsOfStep = 256;

/** Rows that a tab does not get yet. */
type Held = 'nothing' | 'Pods' | 'everything';

/** The JSON of a message with rows, which are JSON already. */
function rowsText(rows: ReadonlyMap<string, readonly string[]>): string {
  return `{${[...rows].map(([kind, list]) => `"${kind}":[${list.join(',')}]`).join(',')}}`;
}

/**
 * The rows that a tab follows. Each message has one more in `seq` than the one before; of a row that changed several times
 * the tab gets the last.
 */
export class Feed {
  readonly #follow: Follow;
  readonly #follower: Followed;
  readonly #cluster: ClusterInfo;
  readonly #now: () => number;
  readonly #kinds: readonly KeptKind[];
  /** The keys of the rows that the tab has, and their JSON. */
  readonly #sent = new Map<RowKind, Map<string, string>>();
  #held: Held = 'nothing';
  /** Changes that came while the state was made; undefined: it is not being made. */
  #meanwhile: RowChanges[] | undefined;
  #seq: number;

  /** @param seq of the last message before. @param now milliseconds since 1970. */
  constructor(follow: Follow, follower: Followed, cluster: ClusterInfo, seq: number, now: () => number) {
    this.#follow = follow;
    this.#follower = follower;
    this.#cluster = cluster;
    this.#seq = seq;
    this.#now = now;
    const kinds: readonly RowKind[] = [...always, ...rowsOfView[follow.view]];
    this.#kinds = kinds.filter(isKept);
  }

  get seq(): number {
    return this.#seq;
  }

  /** Whether it is of the cluster as it was. */
  get isPast(): boolean {
    return this.#follow.at !== undefined;
  }

  /** What a tab is told when the cluster stands otherwise: of what was, only that it cannot be reached. */
  statusAfter(status: Status): Status {
    const { disconnected } = status;
    if (!this.isPast) return status;
    return { ...this.#follower.status, ...(disconnected === undefined ? {} : { disconnected }) };
  }

  /**
   * The message with all that the view shows, as an object of JSON: made in slices, during which there is no other message.
   * Those of {@link changedMeanwhile} have to come next.
   */
  async state(): Promise<string> {
    this.#meanwhile = [];
    return await runInSlices(this.#stateSteps());
  }

  /** What has changed while the state was made. */
  changedMeanwhile(): readonly RowChanges[] {
    const changes = this.#meanwhile ?? [];
    this.#meanwhile = undefined;
    return changes;
  }

  *#stateSteps(): Generator<undefined, string, undefined> {
    this.#sent.clear();
    this.#held = this.#heldBack();
    const rows = new Map<string, readonly string[]>();
    const shows = this.#shows();
    for (const kind of this.#kinds) rows.set(kind, yield* this.#presentSteps(kind, shows));
    const detail = this.#detail();
    if (detail !== undefined) rows.set('serviceDetail', [detail]);
    this.#seq++;
    const head = { follow: this.#follow, cluster: this.#cluster, status: this.#follower.status };
    return `${JSON.stringify(head).slice(0, -1)},"rows":${rowsText(rows)},${this.#stamp()}}`;
  }

  /** The message about changes; undefined where the view shows none of them. */
  changes(changed: RowChanges): string | undefined {
    if (this.#meanwhile !== undefined) {
      this.#meanwhile.push(changed);
      return undefined;
    }
    const rows = new Map<string, readonly string[]>();
    const gone = new Map<string, readonly string[]>();
    const held = this.#held;
    // What was sent once is not held back later.
    if (held !== 'nothing') this.#held = this.#heldBack();
    const isWhole = this.#follow.view === 'service' || this.#held !== held;
    const shows = this.#shows();
    for (const kind of this.#kinds) {
      const sent = this.#sentOf(kind);
      // Which rows belong to a Service may be others although these rows are as before.
      const { now, left } = isWhole ? this.#difference(kind, shows) : this.#among(kind, changed, shows);
      for (const key of left) sent.delete(key);
      if (now.length > 0) rows.set(kind, now);
      if (left.length > 0) gone.set(kind, left);
    }
    const before = this.#sentOf('serviceDetail').get('');
    const detail = this.#detail();
    if (detail !== before && detail !== undefined) rows.set('serviceDetail', [detail]);
    return this.#message(rows, gone);
  }

  /** The message about flows that are others now; undefined where none are. */
  flows({ watch, groups, flows }: PresentFlows): string | undefined {
    return this.#made([
      ['flowWatch', [watch]],
      ['flowGroup', groups],
      ['flow', flows],
    ]);
  }

  /** The message about what has changed of late. */
  journal(row: JournalRow): string | undefined {
    return this.#made([['journal', [row]]]);
  }

  /** All rows of some kinds, as they are now. */
  #made(kinds: readonly (readonly [RowKind, readonly { readonly key: string }[]])[]): string | undefined {
    if (this.#meanwhile !== undefined) return undefined;
    const changed = new Map<string, readonly string[]>();
    const gone = new Map<string, readonly string[]>();
    for (const [kind, rows] of kinds) {
      const sent = this.#sentOf(kind);
      const present = new Map(rows.map((row) => [row.key, JSON.stringify(row)]));
      const now = [...present].flatMap(([key, json]) => (sent.get(key) === json ? [] : [json]));
      const left = [...sent.keys()].filter((key) => !present.has(key));
      for (const key of left) sent.delete(key);
      for (const [key, json] of present) sent.set(key, json);
      if (now.length > 0) changed.set(kind, now);
      if (left.length > 0) gone.set(kind, left);
    }
    return this.#message(changed, gone);
  }

  #among<Kind extends KeptKind>(
    kind: Kind,
    changed: Pick<RowChanges, Kind>,
    shows: Pick<Shows, Kind>,
  ): { readonly now: readonly string[]; readonly left: readonly string[] } {
    const sent = this.#sentOf(kind);
    const now: string[] = [];
    const left: string[] = [];
    for (const [key, stored] of changed[kind]) {
      if (stored !== undefined && shows[kind](stored.row)) {
        sent.set(key, '');
        now.push(stored.json);
      } else if (sent.has(key)) left.push(key);
    }
    return { now, left };
  }

  #difference(
    kind: KeptKind,
    shows: Shows,
  ): { readonly now: readonly string[]; readonly left: readonly string[] } {
    const before = new Map(this.#sentOf(kind));
    const present = this.#present(kind, shows);
    return {
      now: [...present].flatMap(([key, json]) => (before.get(key) === json ? [] : [json])),
      left: [...before.keys()].filter((key) => !present.has(key)),
    };
  }

  /** The rows that are shown, by their keys; the tab has them by then. */
  #present<Kind extends KeptKind>(kind: Kind, shows: Pick<Shows, Kind>): ReadonlyMap<string, string> {
    const sent = this.#sentOf(kind);
    const found = new Map<string, string>();
    const table: ReadonlyMap<string, StoredRow<RowOfKind[Kind]>> = this.#follower.tables.rows[kind];
    for (const [key, { row, json }] of table) {
      if (!shows[kind](row)) continue;
      found.set(key, json);
      sent.set(key, json);
    }
    return found;
  }

  /** The JSON of the rows that are shown, in steps; the tab has them by then. */
  *#presentSteps<Kind extends KeptKind>(
    kind: Kind,
    shows: Pick<Shows, Kind>,
  ): Generator<undefined, readonly string[], undefined> {
    const sent = this.#sentOf(kind);
    const found: string[] = [];
    const table: ReadonlyMap<string, StoredRow<RowOfKind[Kind]>> = this.#follower.tables.rows[kind];
    let looked = 0;
    for (const [key, { row, json }] of table) {
      if (++looked % rowsOfStep === 0) yield;
      if (!shows[kind](row)) continue;
      found.push(json);
      sent.set(key, json);
    }
    return found;
  }

  #detail(): string | undefined {
    const { view, namespace = '', name = '' } = this.#follow;
    if (view !== 'service') return undefined;
    const detail = this.#follower.tables.detailOf(joinKey(namespace, name));
    const json = detail === undefined ? undefined : JSON.stringify(detail);
    if (json === undefined) this.#sentOf('serviceDetail').delete('');
    else this.#sentOf('serviceDetail').set('', json);
    return json;
  }

  #sentOf(kind: RowKind): Map<string, string> {
    let sent = this.#sent.get(kind);
    if (sent === undefined) {
      sent = new Map();
      this.#sent.set(kind, sent);
    }
    return sent;
  }

  #shows(): Shows {
    const { view, namespace, name = '' } = this.#follow;
    if (this.#held === 'everything') return { ...showsNothing, namespace: all, problem: all };
    const shows =
      view === 'service'
        ? showsOfService(joinKey(namespace ?? '', name), this.#follower.tables.rows)
        : showsOfNamespace(namespace, view === 'addresses');
    return this.#held === 'Pods' ? { ...shows, pod: none, slice: none } : shows;
  }

  /**
   * Of all namespaces: how many Pods there are is known once they are read, and whether a namespace has to be chosen for the
   * Map. A form needs no Pods by the ten thousand.
   */
  #heldBack(): Held {
    const { view, namespace, all: isAll = false } = this.#follow;
    if ((view !== 'map' && view !== 'way') || namespace !== undefined || isAll) return 'nothing';
    if (this.#follower.status.loading.some(({ kind }) => kind === 'Pod')) return 'Pods';
    let pods = 0;
    for (const { row } of this.#follower.tables.rows.namespace.values()) pods += row.pods;
    return pods <= mostPods ? 'nothing' : view === 'map' ? 'everything' : 'Pods';
  }

  #message(
    rows: ReadonlyMap<string, readonly string[]>,
    gone: ReadonlyMap<string, readonly string[]>,
  ): string | undefined {
    if (rows.size === 0 && gone.size === 0) return undefined;
    this.#seq++;
    return `{"rows":${rowsText(rows)},"gone":${JSON.stringify(Object.fromEntries(gone))},${this.#stamp()}}`;
  }

  #stamp(): string {
    return `"at":"${formatTime(this.#now())}","seq":${this.#seq}`;
  }
}

const all = (): boolean => true;
const none = (): boolean => false;

const showsNothing: Shows = {
  ...{ service: none, slice: none, pod: none, workload: none, node: none, policy: none, namespace: none },
  ...{ httpRule: none, pool: none, address: none, waiting: none, announcer: none, egressAddress: none },
  ...{ event: none, problem: none },
};

/** @param namespace undefined: all. */
function showsOfNamespace(namespace: string | undefined, onlyBalanced: boolean): Shows {
  const isWithin = (row: { readonly namespace: string }): boolean =>
    namespace === undefined || row.namespace === namespace;
  return {
    service: (row) => (onlyBalanced ? row.type === 'LoadBalancer' : isWithin(row)),
    ...{ slice: isWithin, pod: isWithin, workload: isWithin, node: all, policy: isWithin },
    namespace: all,
    httpRule: ({ source }) => isWithin(source),
    ...{ pool: all, address: all, waiting: all, announcer: all, egressAddress: all },
    event: ({ about }) => isWithin(about),
    problem: ({ about }) => about.namespace === '' || isWithin(about),
  };
}

/** All about one Service: its slices, the Pods that it has or selects, what leads to it, and Events about these. */
function showsOfService(key: string, tables: Tables): Shows {
  const service = tables.service.get(key)?.row;
  const wanted = Object.entries(service?.selector ?? {});
  const isOfIt = ({ services, namespace, labels }: RowOfKind['pod']): boolean =>
    services.includes(key) ||
    (wanted.length > 0 &&
      namespace === service?.namespace &&
      wanted.every(([name, value]) => labels[name] === value));
  const isAboutIt = ({ about: { kind, namespace, name } }: EventRow): boolean => {
    const about = joinKey(namespace, name);
    if (kind === 'Service' || kind === 'Endpoints') return about === key;
    if (kind === 'EndpointSlice') return tables.slice.get(about)?.row.service === key;
    const pod = kind === 'Pod' ? tables.pod.get(about)?.row : undefined;
    return pod !== undefined && isOfIt(pod);
  };
  return {
    ...showsNothing,
    service: (row) => row.key === key,
    slice: (row) => row.service === key,
    pod: isOfIt,
    ...{ node: all, namespace: all, event: isAboutIt },
    httpRule: ({ backends }) => backends.some((backend) => backend.service === key),
    problem: all,
  };
}
