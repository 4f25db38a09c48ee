import { randomInt } from 'node:crypto';
import { logFile, type FileLayer, type WritableFile } from './files.ts';
import { encodeFileHeader, fileHeaderSize } from './frames.ts';

/** A log that can be appended to. */
export interface OpenLog {
  readonly number: number;
  readonly salt: number;
  /** The number of durable bytes, and the position of the next frame. */
  readonly length: number;
}

/** Creates a log, durably, in place of an incomplete one. @throws an I/O error */
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

/** Appends frames to a log. A failed append leaves the log as it was. */
export class LogWriter implements OpenLog {
  readonly number: number;
  readonly salt: number;
  length: number;
  readonly #file: WritableFile;
  /** Whether there may be bytes after `length`. */
  #dirty = false;
  /** Whether a sync failed. The kernel may have dropped the pages and marked them clean: the file takes no more frames. */
  #syncFailed = false;

  constructor(file: WritableFile, { number, salt, length }: OpenLog) {
    this.#file = file;
    this.number = number;
    this.salt = salt;
    this.length = length;
  }

  /** True when the next frame must go to another log. */
  get finished(): boolean {
    return this.#syncFailed;
  }

  /** Writes a frame and resolves when it is durable. @throws an I/O error; then the frame is not in the log. */
  async append(frame: Buffer): Promise<void> {
    await this.repair();
    this.#dirty = true;
    try {
      await this.#file.write(frame, this.length);
      await this.#sync();
    } catch (error) {
      // A restart must not find the frame. If the repair fails too, the next append tries again.
      await this.repair().catch(() => undefined);
      throw error;
    }
    this.length += frame.length;
    this.#dirty = false;
  }

  /** Cuts off the rest of a failed append. @throws an I/O error; then nothing can be appended yet. */
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
      this.#syncFailed = true;
      throw error;
    }
  }
}
