import type { Changes, ClusterInfo, Follow, State, Status } from '../../messages.ts';
import type { RowKind, RowOfKind } from '../../../view/rows/rows.ts';

type Tables = { [Kind in RowKind]: Map<string, RowOfKind[Kind]> };

/** The rows of what is followed, by kind and key. A row that did not change stays the same object. */
export class RowStore {
  #tables: Tables = emptyTables();
  #changed: ReadonlySet<string> = new Set();
  #seq = 0;
  #version = 0;
  /** What the rows are of; undefined: none are there yet. */
  follow: Follow | undefined;
  cluster: ClusterInfo | undefined;
  status: Status = { loading: [], forbidden: [] };
  /** RFC 3339: when the cluster was as the rows are. */
  at = '';

  /** Another number after each change of a row. */
  get version(): number {
    return this.#version;
  }

  /** Keys of rows that the last message changed or brought. */
  get changed(): ReadonlySet<string> {
    return this.#changed;
  }

  /** In the order in which they came. */
  all<Kind extends RowKind>(kind: Kind): readonly RowOfKind[Kind][] {
    return [...this.#tables[kind].values()];
  }

  get<Kind extends RowKind>(kind: Kind, key: string): RowOfKind[Kind] | undefined {
    return this.#tables[kind].get(key);
  }

  /** Takes the place of all rows. */
  take({ follow, cluster, rows, status, at, seq }: State): void {
    this.#tables = emptyTables();
    for (const kind of kindsOf(rows)) this.#put(kind, rows[kind] ?? []);
    this.#changed = new Set();
    this.follow = follow;
    this.cluster = cluster;
    this.status = status;
    this.at = at;
    this.#seq = seq;
    this.#version++;
  }

  /** @returns false where messages are missing before it: a new state has to be asked for. */
  change({ rows, gone, at, seq }: Changes): boolean {
    if (seq !== this.#seq + 1) return false;
    this.#seq = seq;
    this.at = at;
    for (const kind of kindsOf(gone)) {
      for (const key of gone[kind] ?? []) this.#tables[kind].delete(key);
    }
    const changed = new Set<string>();
    for (const kind of kindsOf(rows)) {
      const more = rows[kind] ?? [];
      for (const { key } of more) changed.add(key);
      this.#put(kind, more);
    }
    this.#changed = changed;
    this.#version++;
    return true;
  }

  #put<Kind extends RowKind>(kind: Kind, rows: readonly RowOfKind[Kind][]): void {
    for (const row of rows) this.#tables[kind].set(row.key, row);
  }
}

function emptyTables(): Tables {
  return {
    ...{
      service: new Map(),
      serviceDetail: new Map(),
      slice: new Map(),
      pod: new Map(),
      workload: new Map(),
    },
    ...{
      node: new Map(),
      policy: new Map(),
      namespace: new Map(),
      httpRule: new Map(),
      pool: new Map(),
      address: new Map(),
    },
    ...{
      waiting: new Map(),
      announcer: new Map(),
      egressAddress: new Map(),
      event: new Map(),
      problem: new Map(),
    },
    ...{ flow: new Map(), flowGroup: new Map(), flowWatch: new Map(), journal: new Map() },
  };
}

/** Kinds that are not known, of a server of another version, are left out. */
function kindsOf(rows: object): readonly RowKind[] {
  const known = emptyTables();
  return Object.keys(rows).filter((kind): kind is RowKind => Object.hasOwn(known, kind));
}
