/**
 * A process that is killed: it waits for a line on its standard input, opens the store in the directory given and
 * writes at random until it dies. Before each commit it says what it tries, and when the commit is acknowledged
 * it says so; each line is written before the next step is taken. See storage-kill.test.ts.
 *
 *     try <id> [[key, value | null], …]        ack <id> [revision, …]
 */
import fs from 'node:fs';
import { openDiskStorage } from '../../src/apiserver/storage/disk/disk-storage.ts';

/** Small, so that logs are begun and snapshots written all the time. */
const snapshotAfterBytes = 60_000;
const writers = 6;
const keysPerWriter = 8;

function say(line: string): void {
  const bytes = Buffer.from(`${line}\n`);
  for (let done = 0; done < bytes.length;) {
    try {
      done += fs.writeSync(1, bytes, done);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
    }
  }
}

const [, , directory = '', seed = '0'] = process.argv;
let random = Number(seed) || 1;
/** Marsaglia's xorshift: the seed in the failure message plays the same choices again. */
function below(bound: number): number {
  random ^= random << 13;
  random ^= random >>> 17;
  random ^= random << 5;
  return (random >>> 0) % bound;
}

say('ready');
await new Promise((resolve) => process.stdin.once('data', resolve));
const storage = await openDiskStorage(directory, {
  encode: (object) => JSON.stringify(object),
  retain: { revisions: 500, milliseconds: 300_000 },
  clock: Date.now,
  onListenerError: (error) => {
    throw error;
  },
  log: { warn: (_details, message) => say(`warn ${message}`) },
  snapshotAfter: snapshotAfterBytes,
});
say(`open ${storage.revision}`);

let attempts = 0;
/** Writes keys of its own, so that at most one attempt per key is on its way. */
async function write(writer: number): Promise<never> {
  for (;;) {
    const id = attempts++;
    const first = below(keysPerWriter);
    const keys = below(3) === 0 ? [first, (first + 1) % keysPerWriter] : [first];
    const writes = keys.map((n) => {
      const key = `core/configmaps/default/w${writer}-${n}`;
      const remove = below(4) === 0 && storage.getForUpdate(key) !== undefined;
      return { key, value: remove ? null : `${seed}-${id}-${'x'.repeat(below(1500))}` };
    });
    say(`try ${id} ${JSON.stringify(writes.map(({ key, value }) => [key, value]))}`);
    const stored = await storage.commit(
      writes.map(({ key, value }) => ({
        key,
        expect: 'any',
        object:
          value === null
            ? undefined
            : { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: key, annotations: { value } } },
      })),
    );
    say(`ack ${id} ${JSON.stringify(stored.map(({ revision }) => revision))}`);
  }
}
await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
