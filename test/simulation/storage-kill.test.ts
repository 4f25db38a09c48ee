import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { openDiskStorage } from '../../src/apiserver/storage/disk/disk-storage.ts';

/** How often the writer is killed. */
const rounds = Number(process.env['SERVICENET_KILL_ROUNDS'] ?? 12);
/** Every third writer is killed after so many milliseconds at most, often while it opens the store. */
const maxMs = 120;
/** The others are killed when they have said that so many commits are acknowledged, whatever time that takes. */
const acknowledgements = (round: number): number => 1 + ((round * 37) % 60);
const script = fileURLToPath(new URL('storage-writer.ts', import.meta.url));

/** Undefined: not there. */
interface State {
  readonly value: string | undefined;
  /** The revision that was acknowledged; undefined when it was not. */
  readonly revision: number | undefined;
}

interface Attempt {
  readonly writes: readonly (readonly [key: string, value: string | null])[];
  readonly revisions?: readonly number[];
}

/** A writing process. It starts up and waits, so that the next one is ready when the present one is dead. */
class Writer {
  readonly #child;
  #output = '';
  readonly #ready: Promise<unknown>;
  readonly #closed: Promise<unknown>;

  constructor(directory: string, seed: number) {
    this.#child = spawn(process.execPath, [script, directory, String(seed)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child.stdin.on('error', () => undefined);
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    this.#ready = once(this.#child.stdout, 'data');
    this.#closed = once(this.#child, 'close');
  }

  /** Lets it write until then, kills it, and returns what it said. */
  async runAndKill(until: { milliseconds: number } | { acknowledged: number }): Promise<string> {
    await this.#ready;
    this.#child.stdin.write('go\n');
    if ('milliseconds' in until) await sleep(until.milliseconds);
    else {
      const enough = (): boolean => this.#output.split('\nack ').length > until.acknowledged;
      while (!enough() && this.#child.exitCode === null) await sleep(1);
    }
    expect(this.#child.exitCode).toBeNull();
    await this.kill();
    return this.#output;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#closed;
  }
}

/** What the writer said, by attempt. A last line may be cut off. */
function attempts(output: string): Attempt[] {
  const found = new Map<string, Attempt>();
  for (const line of output.split('\n').slice(0, -1)) {
    const [word, id = '', json = ''] = line.split(' ');
    if (word === 'try') found.set(id, { writes: parseList(json, isWrite) });
    const attempt = found.get(id);
    if (word === 'ack' && attempt !== undefined) {
      found.set(id, { ...attempt, revisions: parseList(json, (item) => typeof item === 'number') });
    }
  }
  return [...found.values()];
}

function parseList<T>(json: string, is: (item: unknown) => item is T): T[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) throw new TypeError(json);
  return list.filter(is);
}

function isWrite(item: unknown): item is [string, string | null] {
  return (
    Array.isArray(item) && typeof item[0] === 'string' && (item[1] === null || typeof item[1] === 'string')
  );
}

it(
  `loses no acknowledged write in ${rounds} kills`,
  async () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-kill-'));
    const known = new Map<string, State>();
    let revision = 1;
    let acknowledged = 0;
    let snapshots = 0;
    let torn = 0;
    let spare = new Writer(directory, 1);
    try {
      for (let round = 1; round <= rounds; round++) {
        const writer = spare;
        spare = new Writer(directory, round + 1);
        const output = await writer.runAndKill(
          round % 3 === 0
            ? { milliseconds: Math.random() * maxMs }
            : { acknowledged: acknowledgements(round) },
        );

        const open = attempts(output);
        const maybe = new Map<string, string | null>();
        for (const { writes, revisions } of open) {
          for (const [i, [key, value]] of writes.entries()) {
            if (revisions === undefined) {
              maybe.set(key, value);
              continue;
            }
            acknowledged++;
            revision = Math.max(revision, revisions[i] ?? 0);
            known.set(key, { value: value ?? undefined, revision: revisions[i] });
          }
        }

        const storage = await openDiskStorage(directory, {
          encode: (object) => JSON.stringify(object),
          retain: { revisions: 500, milliseconds: 300_000 },
          clock: Date.now,
          onListenerError: (error) => {
            throw error;
          },
          log: { warn: () => torn++ },
        });
        expect(storage.revision).toBeGreaterThanOrEqual(revision);
        revision = storage.revision;
        const actual = new Map(storage.list('core/configmaps/').items.map((item) => [item.key, item]));
        for (const key of new Set([...known.keys(), ...maybe.keys(), ...actual.keys()])) {
          const item = actual.get(key);
          const value = item?.object.metadata.annotations?.['value'];
          const before = known.get(key);
          if (maybe.has(key) && value === (maybe.get(key) ?? undefined)) {
            // Durable, but the process died before it could say so.
            known.set(key, { value, revision: item?.revision });
            continue;
          }
          expect(value, `${key} in round ${round}`).toBe(before?.value);
          if (value !== undefined) expect(item?.revision).toBe(before?.revision);
        }
        for (const { writes, revisions } of open) {
          // All of a commit is there or none of it. Only what nothing has overwritten can be looked at.
          if (revisions !== undefined) continue;
          const there = writes.map(([key, value]) => (known.get(key)?.value ?? null) === value);
          const deletes = writes.some(([, value]) => value === null);
          if (!deletes) expect(new Set(there).size, `half a commit in round ${round}`).toBe(1);
        }
        const replayed: number[] = [];
        const after = storage.compactedRevision;
        storage.watch('core/configmaps/', after, (event) => replayed.push(event.revision));
        expect(replayed).toEqual(Array.from({ length: revision - after }, (_, i) => after + 1 + i));
        await storage.close();
        snapshots += fs.readdirSync(directory).filter((name) => name.startsWith('snapshot-')).length;
      }
    } finally {
      await spare.kill();
      fs.rmSync(directory, { recursive: true });
    }
    // Else the test has not tested what it says.
    expect(acknowledged).toBeGreaterThan(rounds * 10);
    if (rounds >= 20) expect(snapshots).toBeGreaterThan(0);
    console.log(`${rounds} kills: ${acknowledged} writes acknowledged, ${torn} torn tails, 0 lost`);
  },
  rounds * 10_000,
);
