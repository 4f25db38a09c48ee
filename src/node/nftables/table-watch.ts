import type { Logger } from 'pino';
import type { Clock, Timer } from '../../client/clock.ts';
import { type Host, ProgramMissingError } from '../../host/host.ts';
import { errorMessage } from '../../objects/status.ts';

/** What one transaction did to a table. */
interface TableChange {
  /** A rule has taken the place of another one, which no count of them shows. */
  readonly replacesRules: boolean;
}

/** Hears of transactions, each with the tables that it has changed, as `ip servicenet`. */
interface MonitorListener {
  transaction(changes: ReadonlyMap<string, TableChange>): void;
  /** Transactions may have been missed. */
  missed(): void;
}

/** Until a monitor that has ended is started again, doubling. Milliseconds. */
const restartMs = { first: 1000, last: 60_000 } as const;

/** `nft monitor`, one for all agents of a machine: it runs while somebody listens. */
class NftMonitor {
  static readonly #ofHosts = new WeakMap<Host, NftMonitor>();

  static of(host: Host, clock: Clock, log: Logger): NftMonitor {
    let monitor = NftMonitor.#ofHosts.get(host);
    if (monitor === undefined) NftMonitor.#ofHosts.set(host, (monitor = new NftMonitor(host, clock, log)));
    return monitor;
  }

  readonly #host: Host;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #listeners = new Set<MonitorListener>();
  #stop: AbortController | undefined;

  private constructor(host: Host, clock: Clock, log: Logger) {
    this.#host = host;
    this.#clock = clock;
    this.#log = log;
  }

  /** @returns what ends it. */
  listen(listener: MonitorListener): () => void {
    this.#listeners.add(listener);
    if (this.#stop === undefined) {
      this.#stop = new AbortController();
      void this.#run(this.#stop.signal);
    } else listener.missed();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#stop?.abort();
      this.#stop = undefined;
    };
  }

  /** Never rejects. */
  async #run(signal: AbortSignal): Promise<void> {
    const isOver = (): boolean => signal.aborted;
    for (let waitMs: number = restartMs.first; !isOver(); waitMs = Math.min(2 * waitMs, restartMs.last)) {
      for (const listener of this.#listeners) listener.missed();
      const reader = new MonitorReader(this.#listeners);
      try {
        const output = (text: string): void => reader.read(text);
        const { exitCode, stderr } = await this.#host.exec('nft', ['monitor'], { output, signal });
        throw new Error(`nft monitor has ended with ${exitCode}: ${stderr.trim().slice(0, 200)}`);
      } catch (error) {
        if (isOver() || error instanceof ProgramMissingError) return;
        this.#log.warn(
          { reason: 'NftMonitorEnded', error: errorMessage(error) },
          'cannot see what others change in the tables of nft, will retry',
        );
      }
      await this.#clock.sleep(waitMs, signal);
    }
  }
}

/** Reads what `nft monitor` prints: a line for each change, and one at the end of a transaction. */
export class MonitorReader {
  readonly #listeners: Iterable<MonitorListener>;
  #rest = '';
  readonly #changes = new Map<string, { addsRules: boolean; deletesRules: boolean }>();

  constructor(listeners: Iterable<MonitorListener>) {
    this.#listeners = listeners;
  }

  /** Takes the next piece of the text. */
  read(piece: string): void {
    const lines = `${this.#rest}${piece}`.split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#readLine(line);
  }

  #readLine(line: string): void {
    if (line.startsWith('# new generation')) {
      const changes = new Map<string, TableChange>();
      for (const [table, { addsRules, deletesRules }] of this.#changes) {
        changes.set(table, { replacesRules: addsRules && deletesRules });
      }
      this.#changes.clear();
      for (const listener of this.#listeners) listener.transaction(changes);
      return;
    }
    // As if events were lost: the buffer of its socket was full.
    if (line.startsWith('#')) for (const listener of this.#listeners) listener.missed();
    const [, verb, kind, table] = /^(\w+) (\w+) (\w+ servicenet[\w-]*)/.exec(line) ?? [];
    if (table === undefined) return;
    let change = this.#changes.get(table);
    if (change === undefined) this.#changes.set(table, (change = { addsRules: false, deletesRules: false }));
    if (kind !== 'rule') return;
    if (verb === 'delete') change.deletesRules = true;
    else change.addsRules = true;
  }
}

/** `rules`: one has been replaced, which a count of them does not show. `perhaps`: transactions may have been missed. */
export type ForeignChange = 'perhaps' | 'something' | 'rules';

/** What others change is put right after this time, so that who keeps changing it does not keep an agent busy. */
export const repairMs = 500;

const severity: Record<ForeignChange, number> = { perhaps: 0, something: 1, rules: 2 };

/** The one of two changes that asks for more. */
export function worse(former: ForeignChange | undefined, change: ForeignChange): ForeignChange {
  return former !== undefined && severity[former] > severity[change] ? former : change;
}

export interface TableWatchOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /** As `ip servicenet`. */
  readonly tables: readonly string[];
  /** Somebody else has changed a table, or may have. */
  readonly changed: (change: ForeignChange) => void;
}

/** Own transactions that the monitor does not tell of in this time, it has missed. Milliseconds. */
const missedAfterMs = 5000;

/**
 * Notices what others do to tables of ours. Transactions of this process are told from those of others by their number:
 * the kernel tells of each once, and names processes by numbers of another namespace.
 */
export class TableWatch {
  readonly #options: TableWatchOptions;
  #end: (() => void) | undefined;
  #writing = 0;
  /** Seen while this process writes. */
  #seen = 0;
  /** Own transactions that have not been seen yet. */
  #due = 0;
  #timer: Timer | undefined;

  constructor(options: TableWatchOptions) {
    this.#options = options;
  }

  /** Does nothing where it watches already. The first thing that is heard is that something may have changed. */
  start(): void {
    if (this.#end !== undefined) return;
    const { host, clock, log, tables, changed } = this.#options;
    this.#end = NftMonitor.of(host, clock, log).listen({
      transaction: (changes) => {
        const ours = tables.flatMap((table) => changes.get(table) ?? []);
        if (ours.length > 0) this.#saw(ours.some(({ replacesRules }) => replacesRules));
      },
      missed: () => {
        this.#settle();
        changed('perhaps');
      },
    });
  }

  stop(): void {
    this.#end?.();
    this.#end = undefined;
    this.#settle();
  }

  /** @param write returns how many transactions of its own were done. */
  async own(write: () => Promise<number>): Promise<number> {
    this.#writing++;
    let written: number | undefined;
    try {
      return (written = await write());
    } finally {
      this.#writing--;
      this.#wrote(written);
    }
  }

  /** @param count undefined: it failed, and whoever wrote looks at the table again. */
  #wrote(count: number | undefined): void {
    if (this.#end === undefined) return;
    if (count === undefined) {
      this.#settle();
      return;
    }
    this.#due += count;
    if (this.#writing > 0) return;
    this.#due -= this.#seen;
    this.#seen = 0;
    const { clock, changed } = this.#options;
    if (this.#due < 0) changed('something');
    if (this.#due <= 0) {
      this.#settle();
      return;
    }
    this.#timer?.cancel();
    this.#timer = clock.after(missedAfterMs, () => {
      this.#settle();
      changed('perhaps');
    });
  }

  #saw(replacesRules: boolean): void {
    if (this.#writing > 0) this.#seen++;
    else if (this.#due > 0) {
      if (--this.#due === 0) this.#settle();
    } else this.#options.changed(replacesRules ? 'rules' : 'something');
  }

  #settle(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#due = 0;
    this.#seen = 0;
  }
}
