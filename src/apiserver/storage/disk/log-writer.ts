import { randomInt } from 'node:crypto';
import { logFile } from './file-names.ts';
import type { FileLayer, WritableFile } from './files.ts';
import { encodeFileHeader, fileHeaderSize } from './frames.ts';

/** One log file that is being written. */
export interface OpenLog {
  readonly number: number;
  readonly salt: number;
  /** How many bytes are durable: the next frame goes here. */
  readonly length: number;
}

/** Makes the n-th log, durably, in place of one that was not completed. @throws an I/O error */
export async function createLogFile(
  files: FileLayer,
  directory: string,
  number: number,
  revision: number,
): Promise<LogWriter> {
  const salt = randomInt(1, 2 ** 32);
  const handle = files.create(logFile(directory, number));
  try {
    await handle.write(encodeFileHeader('SNETLOG1', { revision, salt }), 0);
    await handle.sync();
    files.syncDirectory(directory);
  } catch (error) {
    handle.close();
    throw error;
  }
  return new LogWriter(handle, { number, salt, length: fileHeaderSize });
}

/** Appends frames to one log file. After a failure the file ends where it ended before. */
export class LogWriter implements OpenLog {
  readonly number: number;
  readonly salt: number;
  length: number;
  readonly #file: WritableFile;
  /** There may be bytes behind `length`. */
  #dirty = false;
  /** A sync failed: the kernel may have dropped pages that it calls clean, so this file takes no more frames. */
  #lost = false;

  constructor(file: WritableFile, { number, salt, length }: OpenLog) {
    this.#file = file;
    this.number = number;
    this.salt = salt;
    this.length = length;
  }

  /** True when the next frame must go to another file; see {@link repair}. */
  get finished(): boolean {
    return this.#lost;
  }

  /** Writes a frame and resolves when it is durable. @throws an I/O error; then the frame is not in the log. */
  async append(frame: Buffer): Promise<void> {
    await this.repair();
    this.#dirty = true;
    try {
      await this.#file.write(frame, this.length);
      await this.#sync();
    } catch (error) {
      // The rest of the frame must not come back after a restart. If that fails too, the next call tries
      // again.
      await this.repair().catch(() => undefined);
      throw error;
    }
    this.length += frame.length;
    this.#dirty = false;
  }

  /** Cuts off what a failed append left. @throws an I/O error: then nothing can be appended yet. */
  async repair(): Promise<void> {
    if (!this.#dirty) return;
    this.#file.truncate(this.length);
    await this.#sync();
    this.#dirty = false;
  }

  close(): void {
    this.#file.close();
  }

  async #sync(): Promise<void> {
    try {
      await this.#file.sync();
    } catch (error) {
      this.#lost = true;
      throw error;
    }
  }
}
