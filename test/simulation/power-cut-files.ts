import fs from 'node:fs';
import path from 'node:path';
import { type FileLayer, fileSystem, type WritableFile } from '../../src/apiserver/storage/disk/files.ts';

const sectorBytes = 512;

type Change = { readonly at: number; readonly bytes: Buffer } | { readonly truncate: number };

/** A file as the disk knows it, and what only the page cache knows. */
interface Inode {
  durable: Buffer;
  changes: Change[];
}

type Entry = { readonly name: string; readonly inode: Inode | undefined };

/**
 * Files whose unsynced changes may be lost: at the `operations`-th operation the power goes off, and from then on
 * every operation fails. {@link settle} then leaves in the directory what a disk could hold: of each file what was
 * synced and, sector by sector, some of what was not; of the directory what was synced and some of the creations,
 * renames and removals since.
 */
export class PowerCutFiles implements FileLayer {
  readonly #directory: string;
  readonly #random: () => number;
  #operations: number;
  readonly #durable = new Map<string, Inode>();
  readonly #present = new Map<string, Inode>();
  #entryChanges: Entry[][] = [];

  constructor(directory: string, operations: number, random: () => number) {
    this.#directory = directory;
    this.#operations = operations;
    this.#random = random;
    for (const name of fs.existsSync(directory) ? fs.readdirSync(directory) : []) {
      if (name.startsWith('lock')) continue;
      const inode: Inode = { durable: fs.readFileSync(path.join(directory, name)), changes: [] };
      this.#durable.set(name, inode);
      this.#present.set(name, inode);
    }
  }

  get off(): boolean {
    return this.#operations <= 0;
  }

  create(file: string): WritableFile {
    this.#step();
    fileSystem.create(file).close();
    const name = path.basename(file);
    const old = this.#present.get(name);
    if (old !== undefined) return this.#writable(this.#emptied(old));
    const inode: Inode = { durable: Buffer.alloc(0), changes: [] };
    this.#change([{ name, inode }]);
    return this.#writable(inode);
  }

  open(file: string): WritableFile {
    this.#step();
    const inode = this.#present.get(path.basename(file));
    if (inode === undefined) throw new Error(`${file} is not there`);
    return this.#writable(inode);
  }

  rename(from: string, to: string): void {
    this.#step();
    fileSystem.rename(from, to);
    const inode = this.#present.get(path.basename(from));
    this.#change([
      { name: path.basename(to), inode },
      { name: path.basename(from), inode: undefined },
    ]);
  }

  remove(file: string): void {
    this.#step();
    fileSystem.remove(file);
    this.#change([{ name: path.basename(file), inode: undefined }]);
  }

  syncDirectory(directory: string): void {
    this.#step();
    if (path.resolve(directory) !== path.resolve(this.#directory)) return;
    for (const change of this.#entryChanges.splice(0)) apply(this.#durable, change);
  }

  /** Writes what is left into the directory. */
  settle(): void {
    for (const change of this.#entryChanges.splice(0)) if (this.#random() < 0.5) apply(this.#durable, change);
    for (const name of fs.readdirSync(this.#directory)) {
      if (!name.startsWith('lock')) fs.rmSync(path.join(this.#directory, name));
    }
    for (const [name, inode] of this.#durable) {
      fs.writeFileSync(path.join(this.#directory, name), this.#remains(inode));
    }
  }

  #writable(inode: Inode): WritableFile {
    return {
      write: async (bytes, at) => {
        inode.changes.push({ at, bytes: Buffer.from(bytes) });
        this.#step();
        await Promise.resolve();
      },
      sync: async () => {
        this.#step();
        const seen = inode.changes.length;
        await new Promise(setImmediate);
        this.#step();
        const changes = inode.changes.splice(0, seen);
        inode.durable = changes.reduce((bytes, change) => changed(bytes, change), inode.durable);
      },
      truncate: (length) => {
        this.#step();
        inode.changes.push({ truncate: length });
      },
      close: () => undefined,
    };
  }

  #emptied(inode: Inode): Inode {
    inode.changes.push({ truncate: 0 });
    return inode;
  }

  /** What the disk holds of a file when the power was cut. */
  #remains(inode: Inode): Buffer {
    const luck = this.#random();
    let bytes = inode.durable;
    for (const change of inode.changes) {
      if ('truncate' in change) {
        if (luck > 0.3) bytes = changed(bytes, change);
        continue;
      }
      const end = change.at + change.bytes.length;
      for (let at = change.at; at < end;) {
        const next = Math.min(end, at - (at % sectorBytes) + sectorBytes);
        const part = { at, bytes: change.bytes.subarray(at - change.at, next - change.at) };
        if (luck > 0.8 || (luck > 0.2 && this.#random() < 0.5)) bytes = changed(bytes, part);
        at = next;
      }
    }
    return bytes;
  }

  #change(entries: Entry[]): void {
    apply(this.#present, entries);
    this.#entryChanges.push(entries);
  }

  #step(): void {
    if (this.off || --this.#operations <= 0) throw new Error('the power is off');
  }
}

function apply(entries: Map<string, Inode>, change: readonly Entry[]): void {
  for (const { name, inode } of change) {
    if (inode === undefined) entries.delete(name);
    else entries.set(name, inode);
  }
}

function changed(bytes: Buffer, change: Change): Buffer {
  const length =
    'truncate' in change ? change.truncate : Math.max(bytes.length, change.at + change.bytes.length);
  const result = Buffer.alloc(length);
  bytes.copy(result);
  if ('bytes' in change) change.bytes.copy(result, change.at);
  return result;
}
