import { isRecord, jsonEqual, type JsonRecord, listAt, textAt } from '../../objects/json.ts';
import { type KubeObject, keyOf, type ObjectKey, splitKey } from '../../objects/meta.ts';
import { renewedWithinMs } from '../../network/path/entry.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { RequestSettings } from '../../controllers/load-balancer/request.ts';
import { aboutKey, byAbout, type ClusterCaches } from '../caches.ts';
import { eventRow } from '../rows/events.ts';
import type { JournalEntry, JournalRow } from '../rows/rows.ts';
import { type Past, pastOf } from './past.ts';

/** Members of metadata that change with each write. */
const written: ReadonlySet<string> = new Set(['resourceVersion', 'generation', 'managedFields']);

/**
 * Where two states of an object differ, as paths of two names at most: `spec.selector`, `metadata.labels`, `endpoints`. A
 * write that only says that a node or an agent is alive changes nothing: these come every few seconds.
 */
export function modifiedFields(before: KubeObject, after: KubeObject): readonly string[] {
  const fields: string[] = [];
  for (const name of namesOf(before, after)) {
    const was: unknown = Reflect.get(before, name);
    const is: unknown = Reflect.get(after, name);
    if (was === is) continue;
    if (name !== 'metadata' && name !== 'spec' && name !== 'status') {
      if (!jsonEqual(was, is)) fields.push(name);
      continue;
    }
    const [parts, others] = [isRecord(was) ? was : {}, isRecord(is) ? is : {}];
    for (const part of namesOf(parts, others)) {
      const isKept = name !== 'metadata' || !written.has(part);
      if (isKept && !isSame(`${name}.${part}`, parts[part], others[part])) fields.push(`${name}.${part}`);
    }
  }
  return fields;
}

function namesOf(before: object, after: object): ReadonlySet<string> {
  return new Set([...Object.keys(before), ...Object.keys(after)]);
}

function isSame(path: string, was: unknown, is: unknown): boolean {
  if (was === is || jsonEqual(was, is)) return true;
  if (path === 'spec.renewTime' && typeof was === 'string' && typeof is === 'string') {
    // Renewed in time: it was alive between.
    return Date.parse(is) - Date.parse(was) <= renewedWithinMs;
  }
  if (path !== 'status.conditions' || !Array.isArray(was) || !Array.isArray(is)) return false;
  return jsonEqual(was.map(withoutHeartbeat), is.map(withoutHeartbeat));
}

function withoutHeartbeat(condition: unknown): unknown {
  if (!isRecord(condition)) return condition;
  const { lastHeartbeatTime: _, ...rest }: JsonRecord = condition;
  return rest;
}

/** What a change was, in few words: `ready`, `not ready`, `ready endpoints 2 → 1`, or the fields. */
export function modification(before: KubeObject, after: KubeObject, fields: readonly string[]): string {
  const words = [...wordsOfPod(before, after), ...wordsOfSlice(before, after)];
  return words.length > 0 ? words.join(', ') : fields.join(', ');
}

function wordsOfPod(before: KubeObject, after: KubeObject): readonly string[] {
  if (after.kind !== 'Pod') return [];
  const [was, is] = [readinessOf(before), readinessOf(after)];
  const [phaseBefore, phase] = [textAt(before, 'status', 'phase'), textAt(after, 'status', 'phase')];
  const isEnding =
    before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined;
  return [
    ...(isEnding ? ['is ending'] : []),
    ...(phase !== phaseBefore && phase !== '' ? [phase] : []),
    ...(is !== was && is !== undefined ? [is] : []),
  ];
}

function readinessOf(pod: KubeObject): 'ready' | 'not ready' | undefined {
  const condition = listAt(pod, 'status', 'conditions').find((each) => textAt(each, 'type') === 'Ready');
  return condition === undefined ? undefined : textAt(condition, 'status') === 'True' ? 'ready' : 'not ready';
}

function wordsOfSlice(before: KubeObject, after: KubeObject): readonly string[] {
  if (after.kind !== 'EndpointSlice') return [];
  const [was, is] = [readyEndpoints(before), readyEndpoints(after)];
  return was === is ? [] : [`ready endpoints ${was} → ${is}`];
}

function readyEndpoints(slice: KubeObject): number {
  return listAt(slice, 'endpoints').filter((endpoint) => {
    const conditions = isRecord(endpoint) ? endpoint['conditions'] : undefined;
    return !isRecord(conditions) || conditions['ready'] !== false;
  }).length;
}

/** What is kept at most: this long, and as many bytes of JSON. */
const keptMs = 3_600_000;
const keptBytes = 32 * 1024 * 1024;
/** Of an entry, beside the object that it replaced. */
const entryBytes = 256;
/** Entries that are gone are cut off together. */
const cutAt = 1024;

/** Milliseconds of a bucket. */
const bucketMs = 30_000;
/** An Event belongs to a change that is as near. Times of Events are whole seconds. */
const causeMs = 1000;

interface Change {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly kind: string;
  readonly key: ObjectKey;
  readonly change: JournalEntry['change'];
  readonly text: string;
}

interface Undo<T extends KubeObject> extends Change {
  /** What it replaced; undefined: there was none of this name. */
  readonly before: T | undefined;
  readonly bytes: number;
}

interface Bucket {
  /** When it begins: milliseconds since 1970. */
  readonly atMs: number;
  changes: number;
  warnings: number;
}

/** The changes of one kind, oldest first. */
class Track<T extends KubeObject> {
  readonly informer: Informer<T>;
  #entries: Undo<T>[] = [];
  /** Those before are gone. */
  #first = 0;

  /** @param changed called for each change that is kept. */
  constructor(informer: Informer<T>, now: () => number, changed: (entry: Undo<T>) => void) {
    this.informer = informer;
    const add = (object: T, before: T | undefined, change: JournalEntry['change'], text: string): void => {
      if (!informer.hasSynced) return;
      const bytes = entryBytes + (before === undefined ? 0 : JSON.stringify(before).length);
      const { kind } = informer.resource;
      const entry = { atMs: now(), kind, key: keyOf(object), change, text, before, bytes };
      this.#entries.push(entry);
      changed(entry);
    };
    informer.addHandler({
      added: (object, isInitial) => {
        if (!isInitial) add(object, undefined, 'added', '');
      },
      updated: (object, old) => {
        const fields = modifiedFields(old, object);
        if (fields.length > 0) add(object, old, 'modified', modification(old, object, fields));
      },
      deleted: (object) => add(object, object, 'deleted', ''),
    });
  }

  get oldest(): Undo<T> | undefined {
    return this.#entries[this.#first];
  }

  dropOldest(): void {
    this.#first++;
    if (this.#first < cutAt && this.#first < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }

  /** The objects as they were at a time: those of now, with what has changed since undone. */
  objectsAt(atMs: number): readonly T[] {
    const objects = new Map(
      [...this.informer.cache.keys()].map((key) => [key, this.informer.cache.get(key)]),
    );
    for (let i = this.#entries.length - 1; i >= this.#first; i--) {
      const entry = this.#entries[i];
      if (entry === undefined || entry.atMs <= atMs) break;
      objects.set(entry.key, entry.before);
    }
    return [...objects.values()].filter((object) => object !== undefined);
  }

  /** The newest changes up to a time, or the oldest ones after it; the newest first, or the oldest. */
  near(atMs: number, side: 'before' | 'after', most: number): readonly Change[] {
    const entries = this.#entries;
    // The first one after it.
    let [low, high] = [this.#first, entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((entries[middle]?.atMs ?? 0) <= atMs) low = middle + 1;
      else high = middle;
    }
    return side === 'after'
      ? entries.slice(low, low + most)
      : entries.slice(Math.max(this.#first, low - most), low).toReversed();
  }
}

/**
 * The changes of the last hour of all that is watched, so that the cluster can be seen as it was. Events are kept
 * too, but `near` leaves them out: they have rows of their own.
 */
export class Journal {
  readonly #caches: ClusterCaches;
  readonly #settings: RequestSettings;
  readonly #now: () => number;
  /** None, before it begins. */
  #tracks: readonly Track<KubeObject>[] = [];
  readonly #buckets: Bucket[] = [];
  #bytes = 0;
  #beginMs: number | undefined;

  /** @param now milliseconds since 1970. */
  constructor(caches: ClusterCaches, settings: RequestSettings, now: () => number) {
    this.#caches = caches;
    this.#settings = settings;
    this.#now = now;
  }

  /** All kinds have been read: from now on it is known what was. Call once. */
  begin(): void {
    this.#beginMs = this.#now();
    this.#tracks = this.#caches.informers.map((informer) => {
      const changed = (entry: Undo<KubeObject>): void => this.#add(entry, informer.cache.get(entry.key));
      return new Track(informer, this.#now, changed);
    });
  }

  /** Since when it is known what was: milliseconds since 1970. Undefined: not yet. */
  get beginMs(): number | undefined {
    this.#trim();
    return this.#beginMs;
  }

  /** When what happened, for the time bar. */
  get row(): JournalRow {
    this.#trim();
    const since = this.#beginMs;
    return {
      key: 'journal',
      ...(since === undefined ? {} : { knownSince: timeText(since) }),
      buckets: this.#buckets.map(({ atMs, ...counts }) => ({ time: formatTime(atMs), ...counts })),
    };
  }

  /** The newest changes up to a time, newest first; or the first ones after it, oldest first. Without Events. */
  near(atMs: number, side: 'before' | 'after', most: number): readonly JournalEntry[] {
    const found = this.#tracks.flatMap((track) =>
      track.informer.resource.kind === 'Event' ? [] : track.near(atMs, side, most),
    );
    const sign = side === 'before' ? -1 : 1;
    const nearest = found.sort((a, b) => sign * (a.atMs - b.atMs)).slice(0, most);
    return nearest.map((change) => this.#entryOf(change));
  }

  #entryOf({ atMs, kind, key, change, text }: Change): JournalEntry {
    const secondMs = atMs - (atMs % 1000);
    const [cause] = this.#caches.events.cache
      .byIndex(byAbout, aboutKey(kind, key))
      .map(eventRow)
      .filter(({ time }) => Math.abs(Date.parse(time) - secondMs) <= causeMs)
      .sort((a, b) => (a.time < b.time ? 1 : -1));
    return {
      ...{ time: timeText(atMs), kind, ...splitKey(key), change, text },
      ...(cause === undefined ? {} : { cause: { reason: cause.reason, message: cause.message } }),
    };
  }

  /** The cluster as it was at a time that is not before {@link beginMs}. */
  async past(atMs: number): Promise<Past> {
    // All at once: what changes while it is made does not belong to it.
    const objects = this.#tracks.map((track) => ({ of: track.informer, objects: track.objectsAt(atMs) }));
    return await pastOf(objects, atMs, this.#caches.isWhole, this.#settings);
  }

  #add(entry: Undo<KubeObject>, object: KubeObject | undefined): void {
    this.#bytes += entry.bytes;
    const isEvent = entry.kind === 'Event';
    const isWarning = isEvent && entry.change !== 'deleted' && textAt(object, 'type') === 'Warning';
    if (!isEvent || isWarning) {
      const atMs = entry.atMs - (entry.atMs % bucketMs);
      let bucket = this.#buckets.at(-1);
      if (bucket === undefined || bucket.atMs < atMs) {
        bucket = { atMs, changes: 0, warnings: 0 };
        this.#buckets.push(bucket);
      }
      if (isWarning) bucket.warnings++;
      else bucket.changes++;
    }
    this.#trim();
  }

  #trim(): void {
    const oldestMs = this.#now() - keptMs;
    for (;;) {
      const oldest = this.#oldestTrack();
      const entry = oldest?.oldest;
      if (entry === undefined || (entry.atMs >= oldestMs && this.#bytes <= keptBytes)) break;
      this.#bytes -= entry.bytes;
      oldest?.dropOldest();
      this.#notKnownBefore(entry.atMs);
    }
    if (this.#beginMs !== undefined) this.#notKnownBefore(oldestMs);
    const isGone = ({ atMs }: Bucket): boolean => atMs + bucketMs <= (this.#beginMs ?? 0);
    while (this.#buckets[0] !== undefined && isGone(this.#buckets[0])) this.#buckets.shift();
  }

  #notKnownBefore(atMs: number): void {
    if (this.#beginMs !== undefined) this.#beginMs = Math.max(this.#beginMs, atMs);
  }

  #oldestTrack(): Track<KubeObject> | undefined {
    let oldest: Track<KubeObject> | undefined;
    for (const track of this.#tracks) {
      if (track.oldest === undefined) continue;
      if (oldest?.oldest === undefined || track.oldest.atMs < oldest.oldest.atMs) oldest = track;
    }
    return oldest;
  }
}

/** RFC 3339, to the millisecond. */
function timeText(atMs: number): string {
  return new Date(atMs).toISOString();
}
