import { setTimeout as sleep } from 'node:timers/promises';
import { StatusError } from '../../src/objects/status.ts';
import { requestInfo } from '../../src/apiserver/http/request.ts';
import type {
  ApiResponse,
  ApiStream,
  RequestOptions,
  StreamOptions,
  Transport,
} from '../../src/client/transport.ts';

/** A right in the words of RBAC rules. */
export interface Permission {
  readonly verb: string;
  /** `services/status`. */
  readonly resource: string;
  readonly group: string;
}

/** `patch services/status`, `list ipaddresses.networking.k8s.io`. */
export function phraseOf({ verb, resource, group }: Permission): string {
  const [plural = '', subresource] = resource.split('/');
  return `${verb} ${plural}${group === '' ? '' : `.${group}`}${subresource === undefined ? '' : `/${subresource}`}`;
}

/**
 * Remembers which rights the requests of a client need, read from them as the server does. On request it refuses
 * watches that begin with a list, as servers before 1.35 do: then the client lists.
 */
export class PermissionRecorder implements Transport {
  readonly server: string;
  readonly #inner: Transport;
  readonly #asked = new Set<string>();
  readonly #bodies: string[] = [];

  readonly #watchList: boolean;
  readonly #lagging: string | undefined;

  /** @param options.lagging a resource whose watches are always late: a cache that does not know of the last writes. */
  constructor(
    inner: Transport,
    { watchList, lagging }: { readonly watchList: boolean; readonly lagging: string | undefined },
  ) {
    this.#inner = inner;
    this.#watchList = watchList;
    this.#lagging = lagging;
    this.server = inner.server;
  }

  request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse> {
    this.#note(method, path, '');
    if (options?.body !== undefined) this.#bodies.push(JSON.stringify(options.body));
    return this.#inner.request(method, path, options);
  }

  async stream(path: string, options?: StreamOptions): Promise<ApiStream> {
    if (!this.#watchList && options?.query?.['sendInitialEvents'] !== undefined) {
      const message = 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled';
      throw new StatusError(422, 'Invalid', message);
    }
    this.#note('GET', path, 'watch=true');
    const stream = await this.#inner.stream(path, options);
    const isLate = this.#lagging !== undefined && path.endsWith(`/${this.#lagging}`);
    return isLate ? { ...stream, chunks: late(stream.chunks) } : stream;
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** What was asked for so far, sorted. */
  phrases(): string[] {
    return [...this.#asked].sort();
  }

  /** The bodies of all requests so far, as JSON. */
  bodies(): readonly string[] {
    return this.#bodies;
  }

  #note(method: string, path: string, query: string): void {
    const info = requestInfo(method, path, new URLSearchParams(query));
    if (!info.isResource) return;
    const { verb, group, resource, subresource } = info;
    this.#asked.add(
      phraseOf({ verb, group, resource: subresource === '' ? resource : `${resource}/${subresource}` }),
    );
  }
}

async function* late(chunks: ApiStream['chunks']): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    await sleep(300);
    yield chunk;
  }
}
