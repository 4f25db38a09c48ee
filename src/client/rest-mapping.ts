import { isRecord } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';
import type { Transport } from './transport.ts';

interface Mapping {
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Finds the path of any object by discovery, as kubectl does. Each group version is requested once. */
export class RestMapping {
  readonly #transport: Transport;
  readonly #kinds = new Map<string, ReadonlyMap<string, Mapping>>();

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * The path of an object; a namespaced one without a namespace is in `default`.
   * @throws {Error} for a kind that the server does not serve.
   */
  async pathOf(object: KubeObject): Promise<string> {
    const { apiVersion = '', kind = '', metadata } = object;
    const mapping = (await this.#kindsOf(apiVersion)).get(kind);
    if (mapping === undefined) throw new Error(`the server does not serve ${kind} of ${apiVersion}`);
    const scope = mapping.namespaced
      ? `/namespaces/${encodeURIComponent(metadata.namespace ?? 'default')}`
      : '';
    return `${root(apiVersion)}${scope}/${mapping.plural}/${encodeURIComponent(metadata.name ?? '')}`;
  }

  async #kindsOf(apiVersion: string): Promise<ReadonlyMap<string, Mapping>> {
    const known = this.#kinds.get(apiVersion);
    if (known !== undefined) return known;
    const list = (await this.#transport.request('GET', root(apiVersion))).json();
    const kinds = new Map<string, Mapping>();
    const rows: unknown[] = isRecord(list) && Array.isArray(list['resources']) ? list['resources'] : [];
    for (const row of rows) {
      if (!isRecord(row) || typeof row['kind'] !== 'string' || typeof row['name'] !== 'string') continue;
      if (row['name'].includes('/')) continue;
      kinds.set(row['kind'], { plural: row['name'], namespaced: row['namespaced'] === true });
    }
    this.#kinds.set(apiVersion, kinds);
    return kinds;
  }
}

function root(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}
