import { setTimeout as sleep } from 'node:timers/promises';
import type { Transport } from '../../../src/client/transport.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { type KubeObject, isKubeObject } from '../../../src/objects/meta.ts';

/** Hears every change of a resource, beside the hostile network, over restarts of the server. */
export class Follower {
  readonly #path: string;
  readonly #note: (object: KubeObject, isGone: boolean) => void;
  readonly #end = new AbortController();
  #client: Transport | undefined;
  #revision = '0';
  readonly #following: Promise<void>;

  constructor(path: string, note: (object: KubeObject, isGone: boolean) => void) {
    this.#path = path;
    this.#note = note;
    this.#following = this.#follow();
  }

  /** Where the cluster is from now on; undefined: nowhere. */
  connect(client: Transport | undefined): void {
    this.#client = client;
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#following;
  }

  async #follow(): Promise<void> {
    while (!this.#end.signal.aborted) {
      try {
        if (this.#client !== undefined) await this.#read(this.#client);
      } catch {
        // The server went: the watch goes on from where it was.
      }
      await sleep(2);
    }
  }

  async #read(client: Transport): Promise<void> {
    const query = { watch: true, resourceVersion: this.#revision };
    const { signal } = this.#end;
    const { chunks } = await client.stream(this.#path, { query, signal });
    let rest = '';
    for await (const chunk of chunks) {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#hear(JSON.parse(line));
    }
  }

  #hear(event: unknown): void {
    if (!isRecord(event) || !isKubeObject(event['object'])) return;
    const object = event['object'];
    this.#revision = object.metadata.resourceVersion ?? this.#revision;
    this.#note(object, event['type'] === 'DELETED');
  }
}
