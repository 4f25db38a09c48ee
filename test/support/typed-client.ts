import { Agent, request } from 'undici';
import { wireValues } from '../../src/apiserver/schema/protobuf/wire.ts';
import { writeProtobuf } from '../../src/apiserver/schema/protobuf/write-protobuf.ts';
import type { QueryParameters } from '../../src/client/transport.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import type { TestServer } from '../../src/testing/index.ts';
import type { Answer } from './test-server.ts';
import { readTypedObject } from './typed-object.ts';

const protobuf = 'application/vnd.kubernetes.protobuf';
const anyProtobuf = `${protobuf}, */*`;

/** A body that is no patch must name its kind; {@link TypedClient.call}. */
interface TypedRequest {
  readonly body?: JsonRecord | readonly JsonRecord[];
  readonly query?: QueryParameters;
  /** Of a patch, which client-go sends as JSON. */
  readonly patch?: 'json' | 'merge' | 'strategic-merge' | 'apply';
  /** Default: {@link anyProtobuf}. */
  readonly accept?: string;
}

/**
 * Speaks as client-go's typed clients do in Kubernetes' e2e tests (`--kube-api-content-type`): bodies in protobuf, and
 * answers too, where the server has them so.
 */
export class TypedClient {
  readonly #server: Pick<TestServer, 'url' | 'token'>;
  readonly #agent: Agent;

  constructor(server: Pick<TestServer, 'url' | 'token' | 'ca'>) {
    this.#server = server;
    this.#agent = new Agent({ connect: { ca: server.ca } });
  }

  async call(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, sent: TypedRequest = {}) {
    const { body, patch } = sent;
    const answer = await request(this.#url(path, sent.query), {
      method,
      dispatcher: this.#agent,
      headers: {
        accept: sent.accept ?? anyProtobuf,
        authorization: `Bearer ${this.#server.token}`,
        'content-type': patch === undefined ? protobuf : contentTypes[patch],
      },
      ...(body === undefined
        ? {}
        : { body: isRecord(body) && patch === undefined ? writeProtobuf(body) : JSON.stringify(body) }),
    });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    return {
      status: answer.statusCode,
      body: parseBody(bytes, answer.headers['content-type']),
      warnings: [],
    } satisfies Answer;
  }

  /** Opens a watch; it is there when this returns. */
  async watch(path: string, query: QueryParameters, accept = anyProtobuf): Promise<TypedWatch> {
    const controller = new AbortController();
    const { headers, body, statusCode } = await request(this.#url(path, { watch: true, ...query }), {
      dispatcher: this.#agent,
      headers: { accept, authorization: `Bearer ${this.#server.token}` },
      signal: controller.signal,
    });
    if (headers['content-type'] !== `${protobuf};stream=watch`)
      throw new Error(`a watch of ${path} was answered ${statusCode}: ${await body.text()}`);
    return new TypedWatch(body, () => controller.abort());
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #url(path: string, query: QueryParameters = {}): string {
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) given.set(name, String(value));
    }
    const text = given.toString();
    return `${this.#server.url}${path}${text === '' ? '' : `?${text}`}`;
  }
}

const contentTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  'strategic-merge': 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

function parseBody(bytes: Buffer, contentType: unknown): JsonRecord {
  if (contentType === protobuf) return readTypedObject(bytes);
  // what no resource answers is a line of text; discovery documents have parameters
  const isJson = String(contentType).split(';')[0] === 'application/json';
  const read: unknown = isJson ? JSON.parse(bytes.toString()) : undefined;
  return isRecord(read) ? read : {};
}

/** What a watch tells of an object. */
export interface TypedEvent {
  readonly type: string;
  readonly object: JsonRecord;
}

/** A watch that is read event by event. */
export class TypedWatch {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #abort: () => void;
  #bytes = Buffer.alloc(0);

  constructor(body: AsyncIterable<Uint8Array>, abort: () => void) {
    this.#chunks = body[Symbol.asyncIterator]();
    this.#abort = abort;
  }

  /** Waits for the next event; the test's timeout bounds it. Fails when the server ends the watch. */
  async next(): Promise<TypedEvent> {
    for (;;) {
      const event = this.#take();
      if (event !== undefined) return event;
      const chunk = await this.#chunks.next();
      if (chunk.done === true) throw new Error('the watch ended');
      this.#bytes = Buffer.concat([this.#bytes, Buffer.from(chunk.value)]);
    }
  }

  /** Reads on until an event satisfies. */
  async until(satisfied: (event: TypedEvent) => boolean): Promise<TypedEvent> {
    for (;;) {
      const event = await this.next();
      if (satisfied(event)) return event;
    }
  }

  stop(): void {
    this.#abort();
  }

  /** A frame is its length in four bytes and a WatchEvent { type 1, object 2 { raw 1 } }. */
  #take(): TypedEvent | undefined {
    if (this.#bytes.length < 4) return undefined;
    const end = 4 + this.#bytes.readUInt32BE(0);
    if (this.#bytes.length < end) return undefined;
    const [type, raw] = [...wireValues(this.#bytes.subarray(4, end))];
    const [object] = [...wireValues(raw?.bytes ?? Buffer.alloc(0))];
    this.#bytes = this.#bytes.subarray(end);
    return {
      type: type?.bytes.toString() ?? '',
      object: readTypedObject(object?.bytes ?? Buffer.alloc(0)),
    };
  }
}
