import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { EventEmitter, once } from 'node:events';
import { mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogLine } from '../../controllers/kubelet/container-runtime.ts';

/** Bytes of a file before the next one is begun, and files that are kept (`--container-log-max-size`, smaller: it is memory). */
const fileSize = 4 * 1024 * 1024;
const filesKept = 3;

/** Bytes of a line in one entry (the container runtime interface). */
const maxLineBytes = 16 * 1024;

type Stream = LogLine['stream'];

/** Gets what a program writes. The promise, which never rejects, resolves when there is room for more. */
type Attached = (stream: Stream, chunk: Buffer) => Promise<void> | undefined;

/** Of one stream, what has no line end yet. */
const nothing = Buffer.alloc(0);

/**
 * The output of one attempt of a container: files of lines `TIME STREAM F|P TEXT` in a folder of its own, as the
 * container runtime interface has them.
 */
export class ContainerLog {
  readonly folder: string;
  readonly #rest: Record<Stream, Buffer> = { stdout: nothing, stderr: nothing };
  readonly #changes = new EventEmitter();
  readonly #attached = new Set<Attached>();
  /** Of those that are attached, what waits for them. */
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

  /** Adds what a program wrote. What finds no room is lost. */
  write(stream: Stream, chunk: Buffer): void {
    for (const attached of this.#attached) {
      const waiting = attached(stream, chunk);
      if (waiting === undefined) continue;
      this.#waiting.add(waiting);
      void waiting.finally(() => this.#waiting.delete(waiting));
    }
    if (this.#descriptor === undefined) return;
    const time = new Date().toISOString().replace('Z', '000000Z');
    const parts: Buffer[] = [];
    const entry = (tag: 'F' | 'P', text: Buffer): void => {
      parts.push(Buffer.from(`${time} ${stream} ${tag} `), text, lineEnd);
    };
    let rest = this.#rest[stream].length === 0 ? chunk : Buffer.concat([this.#rest[stream], chunk]);
    for (let end = rest.indexOf(10); end !== -1 || rest.length > maxLineBytes; end = rest.indexOf(10)) {
      if (end === -1 || end > maxLineBytes) {
        entry('P', rest.subarray(0, maxLineBytes));
        rest = rest.subarray(maxLineBytes);
      } else {
        entry('F', rest.subarray(0, end));
        rest = rest.subarray(end + 1);
      }
    }
    this.#rest[stream] = Buffer.from(rest);
    if (parts.length > 0) this.#append(Buffer.concat(parts));
  }

  /** The container has ended: nothing follows. */
  close(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      if (this.#rest[stream].length > 0) this.write(stream, lineEnd);
    }
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
    this.#isClosed = true;
    this.#changes.emit('change');
  }

  /**
   * The lines, oldest first.
   *
   * @param follow goes on until the log is closed or the signal aborts.
   */
  async *lines(follow: boolean, signal?: AbortSignal): AsyncGenerator<LogLine> {
    let [number = 0] = await this.#files();
    let rest: Buffer = nothing;
    let position = 0;
    for (;;) {
      const wasClosed = this.#isClosed;
      const newest = this.#file;
      const change =
        follow && !wasClosed
          ? once(this.#changes, 'change', signal === undefined ? {} : { signal })
          : undefined;
      change?.catch(() => undefined);
      const { bytes, end } = await readFrom(this.#path(number), position);
      position = end;
      rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      for (let at = rest.indexOf(10); at !== -1; at = rest.indexOf(10)) {
        const line = parseLine(rest.subarray(0, at));
        rest = rest.subarray(at + 1);
        if (line !== undefined) yield line;
      }
      if (signal?.aborted === true) return;
      if (bytes.length > 0) continue;
      if (number < newest) {
        const [oldest = newest] = await this.#files();
        number = Math.max(number + 1, oldest);
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

const lineEnd = Buffer.from('\n');

/** Bytes that are read at once. */
const pieceSize = 256 * 1024;

async function readFrom(path: string, position: number): Promise<{ bytes: Buffer; end: number }> {
  let file;
  try {
    file = await open(path, 'r');
  } catch (error) {
    // Rotation has deleted it.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      return { bytes: nothing, end: position };
    throw error;
  }
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(pieceSize), 0, pieceSize, position);
    return { bytes: buffer.subarray(0, bytesRead), end: position + bytesRead };
  } finally {
    await file.close();
  }
}

function parseLine(line: Buffer): LogLine | undefined {
  const [, time, stream, tag] = /^(\S+) (stdout|stderr) ([FP]) /.exec(line.toString('latin1', 0, 64)) ?? [];
  if (time === undefined || (stream !== 'stdout' && stream !== 'stderr')) return undefined;
  const text = line.subarray(time.length + stream.length + 4);
  return { time, stream, isWhole: tag === 'F', text };
}
