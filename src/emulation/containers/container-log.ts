import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { EventEmitter, once } from 'node:events';
import { type FileHandle, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogLine, LogRequest } from '../../controllers/kubelet/container-runtime.ts';

/** Bytes of a file before the next one is begun, and files that are kept (`--container-log-max-size`, smaller: it is memory). */
const fileSize = 4 * 1024 * 1024;
const filesKept = 3;

/** Bytes of a line in one entry (the container runtime interface). */
const maxLineBytes = 16 * 1024;

type Stream = LogLine['stream'];

/** Gets what a program writes. The promise, which never rejects, resolves when there is room for more. */
type Attached = (stream: Stream, chunk: Buffer) => Promise<void> | undefined;

/** Options of a read. */
type Reading = Omit<LogRequest, 'previous'>;

/** A position in the files of a log. */
interface Place {
  /** The number of the file. */
  readonly file: number;
  /** Bytes from its beginning. */
  readonly position: number;
}

const nothing = Buffer.alloc(0);

/**
 * The output of one attempt of a container: files of lines `TIME STREAM F|P TEXT` in a folder of its own, as the
 * container runtime interface has them.
 */
export class ContainerLog {
  readonly folder: string;
  /** The text without a line end so far. */
  readonly #rest: Record<Stream, string> = { stdout: '', stderr: '' };
  readonly #changes = new EventEmitter();
  readonly #attached = new Set<Attached>();
  /** The bytes that wait for attached clients. */
  readonly #waiting = new Set<Promise<void>>();
  #file = 0;
  #descriptor: number | undefined;
  #size = 0;
  #isClosed = false;

  constructor(folder: string) {
    this.folder = folder;
    this.#changes.setMaxListeners(0);
  }

  /** @throws the system's error. */
  async open(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    this.#descriptor = openSync(this.#path(0), 'a');
  }

  /** Calls back with what is written from now on, as it was written. Returns what ends that. */
  onWrite(attached: Attached): () => void {
    this.#attached.add(attached);
    return () => void this.#attached.delete(attached);
  }

  /**
   * Resolves when all who are attached have room for more; undefined: they have. Until then a program is not to be read:
   * it waits for them, as with containerd.
   */
  room(): Promise<unknown> | undefined {
    return this.#waiting.size === 0 ? undefined : Promise.all(this.#waiting);
  }

  /** Adds output of a program; the part that does not fit is dropped. @returns the bytes that the log has more. */
  write(stream: Stream, chunk: Buffer): number {
    for (const attached of this.#attached) {
      const waiting = attached(stream, chunk);
      if (waiting === undefined) continue;
      this.#waiting.add(waiting);
      void waiting.finally(() => this.#waiting.delete(waiting));
    }
    if (this.#descriptor === undefined) return 0;
    const { entries, rest } = entriesOf(entryBegin(stream), this.#rest[stream] + chunk.toString(bytesAsText));
    this.#rest[stream] = rest;
    if (entries !== '') this.#append(Buffer.from(entries, bytesAsText));
    return entries.length;
  }

  /** The container has ended: nothing follows. A line without an end stays one, as containerd leaves it. */
  close(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      const rest = this.#rest[stream];
      if (rest !== '') this.#append(Buffer.from(`${entryBegin(stream)} P ${rest}\n`, bytesAsText));
    }
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
    this.#isClosed = true;
    this.#changes.emit('change');
  }

  /**
   * The lines, oldest first, as many at once as are read at once.
   *
   * @param reading `follow` goes on until the log is closed or the signal aborts; without it, what is there now is read:
   *   a program may write faster than it is read.
   */
  async *lines({ follow = false, tailLines, signal }: Reading = {}): AsyncGenerator<readonly LogLine[]> {
    const now: Place = { file: this.#file, position: this.#size };
    const reader = new FileReader();
    try {
      let { file, position } = await this.#begin(reader, tailLines, now);
      let rest: Buffer = nothing;
      for (;;) {
        const wasClosed = this.#isClosed;
        const newest = this.#file;
        const change =
          follow && !wasClosed
            ? once(this.#changes, 'change', signal === undefined ? {} : { signal })
            : undefined;
        change?.catch(() => undefined);
        const bytes = await reader.read(position, follow || file < now.file ? Infinity : now.position);
        position += bytes.length;
        const lines: LogLine[] = [];
        rest = linesOf(rest.length === 0 ? bytes : Buffer.concat([rest, bytes]), lines);
        if (lines.length > 0) yield lines;
        if (signal?.aborted === true) return;
        if (bytes.length > 0) continue;
        if (file < newest) {
          const [oldest = newest] = await this.#files();
          file = Math.max(file + 1, oldest);
          if (!follow && file > now.file) return;
          await reader.open(this.#path(file));
          position = 0;
          rest = nothing;
          continue;
        }
        if (change === undefined) return;
        try {
          await change;
        } catch {
          return;
        }
      }
    } finally {
      await reader.close();
    }
  }

  /**
   * Opens the file in which a reader begins.
   *
   * @param lines entries before an end; a line in parts has several (kubelet `tail.FindTailLineStartIndex`). Undefined:
   *   all.
   */
  async #begin(reader: FileReader, lines: number | undefined, last: Place): Promise<Place> {
    const files = await this.#files();
    let left = lines ?? Infinity;
    for (const file of left === Infinity ? [] : files.filter((each) => each <= last.file).toReversed()) {
      await reader.open(this.#path(file));
      let end = file === last.file ? last.position : await reader.size();
      while (end > 0) {
        const start = Math.max(0, end - pieceSize);
        const bytes = await reader.read(start, end);
        for (let at = bytes.lastIndexOf(10); at !== -1; at = lastLineEnd(bytes, at)) {
          // It ends the entry before the first wanted one.
          if (left-- === 0) return { file, position: start + at + 1 };
        }
        end = start;
      }
    }
    const file = files[0] ?? 0;
    await reader.open(this.#path(file));
    return { file, position: 0 };
  }

  #append(bytes: Buffer): void {
    try {
      if (this.#size + bytes.length > fileSize && this.#size > 0) this.#rotate();
      if (this.#descriptor !== undefined) this.#size += writeSync(this.#descriptor, bytes);
    } catch (error) {
      // A full disk loses lines, as it does on a node.
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
    }
    this.#changes.emit('change');
  }

  #rotate(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#file++;
    this.#size = 0;
    rmSync(this.#path(this.#file - filesKept), { force: true });
    this.#descriptor = openSync(this.#path(this.#file), 'a');
  }

  #path(number: number): string {
    return join(this.folder, String(number));
  }

  async #files(): Promise<number[]> {
    return (await readdir(this.folder)).map(Number).sort((a, b) => a - b);
  }
}

/** Has one character for each byte: many short texts are made faster of strings than of buffers. */
const bytesAsText = 'latin1';

function entryBegin(stream: Stream): string {
  return `${new Date().toISOString().replace('Z', '000000Z')} ${stream}`;
}

/** The entries of the lines of a text, and what is left of it without an end. @param begin of each entry. */
function entriesOf(begin: string, text: string): { entries: string; rest: string } {
  const entries: string[] = [];
  let at = 0;
  for (;;) {
    const end = text.indexOf('\n', at);
    const length = (end === -1 ? text.length : end) - at;
    if (length > maxLineBytes) {
      entries.push(`${begin} P ${text.slice(at, at + maxLineBytes)}\n`);
      at += maxLineBytes;
    } else if (end === -1) break;
    else {
      entries.push(`${begin} F ${text.slice(at, end + 1)}`);
      at = end + 1;
    }
  }
  return { entries: entries.join(''), rest: text.slice(at) };
}

/** Bytes that are read at once. */
const pieceSize = 256 * 1024;

/** Reads one file at a time, which is there to its end whenever rotation deletes it. */
class FileReader {
  #file: FileHandle | undefined;

  /** Opens a file in the place of the last one; one that is gone already is empty. @throws the system's error. */
  async open(path: string): Promise<void> {
    await this.close();
    try {
      this.#file = await open(path, 'r');
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
  }

  /** Bytes. */
  async size(): Promise<number> {
    return (await this.#file?.stat())?.size ?? 0;
  }

  /** What is there from a position on, in pieces, and at most to an end; nothing: there is no more. */
  async read(position: number, end: number): Promise<Buffer> {
    const length = Math.min(pieceSize, end - position);
    if (this.#file === undefined || length <= 0) return nothing;
    const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(length), 0, length, position);
    return buffer.subarray(0, bytesRead);
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }
}

/** The last line end before one; -1: there is none. */
function lastLineEnd(bytes: Buffer, before: number): number {
  return before === 0 ? -1 : bytes.lastIndexOf(10, before - 1);
}

/** Reads entries into lines. @returns what is left without an end. */
function linesOf(bytes: Buffer, lines: LogLine[]): Buffer {
  let at = 0;
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, at)) {
    const line = parseLine(bytes.subarray(at, end));
    if (line !== undefined) lines.push(line);
    at = end + 1;
  }
  return bytes.subarray(at);
}

function parseLine(line: Buffer): LogLine | undefined {
  const [, time, stream, tag] = /^(\S+) (stdout|stderr) ([FP]) /.exec(line.toString('latin1', 0, 64)) ?? [];
  if (time === undefined || (stream !== 'stdout' && stream !== 'stderr')) return undefined;
  const text = line.subarray(time.length + stream.length + 4);
  return { time, stream, isWhole: tag === 'F', text };
}
