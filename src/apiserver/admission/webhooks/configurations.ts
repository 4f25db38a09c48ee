import type { Logger } from 'pino';
import { listPrefix, type Storage } from '../../storage/storage.ts';
import { type ClientFactory, type Hook, hooksOf, isWebhookConfiguration } from './hook.ts';

const group = 'admissionregistration.k8s.io';

/**
 * The webhooks of all stored configurations of one kind, by the configuration's name and then in its order. A change of
 * a configuration makes new clients for it, and closes the connections of the former ones.
 */
export class WebhookConfigurations {
  readonly #storage: Storage;
  readonly #prefix: string;
  readonly #connect: ClientFactory;
  readonly #log: Logger;
  /** Called after every change. */
  readonly #changed: () => void;
  readonly #byKey = new Map<string, readonly Hook[]>();
  #hooks: readonly Hook[] = [];

  constructor(storage: Storage, plural: string, connect: ClientFactory, log: Logger, changed: () => void) {
    this.#storage = storage;
    this.#prefix = listPrefix(group, plural);
    this.#connect = connect;
    this.#log = log;
    this.#changed = changed;
  }

  /** In the order in which they are called. */
  get hooks(): readonly Hook[] {
    return this.#hooks;
  }

  /** Reads what is stored, and follows changes. */
  start(): void {
    const { items, revision } = this.#storage.list(this.#prefix);
    for (const { key, object } of items)
      this.#set(key, isWebhookConfiguration(object) ? hooksOf(object, this.#connect) : []);
    this.#storage.watch(this.#prefix, revision, ({ type, current: { key, object } }) => {
      const hooks =
        type !== 'DELETED' && isWebhookConfiguration(object) ? hooksOf(object, this.#connect) : [];
      this.#set(key, hooks);
    });
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await Promise.all(this.#hooks.map(async ({ client }) => client.destroy()));
  }

  #set(key: string, hooks: readonly Hook[]): void {
    for (const { client, name } of this.#byKey.get(key) ?? []) {
      client
        .close()
        .catch((error: unknown) =>
          this.#log.debug({ err: error, webhook: name }, 'closing a webhook client failed'),
        );
    }
    if (hooks.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, hooks);
    const keys = [...this.#byKey.keys()].sort((a, b) => (a < b ? -1 : 1));
    this.#hooks = keys.flatMap((name) => this.#byKey.get(name) ?? []);
    this.#changed();
  }
}
