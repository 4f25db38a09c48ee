import fc from 'fast-check';
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseProtobuf } from '../../src/apiserver/schema/protobuf/parse-protobuf.ts';
import { isRecord, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { type FuzzRequest, requests, type Route } from '../support/fuzz/requests.ts';
import { samples } from '../support/fuzz/samples.ts';
import { WatchedServer } from '../support/watchdog/watched-server.ts';

/** `FUZZ_SEED=… FUZZ_REQUESTS=… vitest run test/integration/fuzz.test.ts` looks further. */
const seed = Number(process.env['FUZZ_SEED'] ?? 20260101);
const total = Number(process.env['FUZZ_REQUESTS'] ?? 1000);
const atOnce = 40;

let server: WatchedServer;
let agent: Agent;

beforeAll(async () => {
  server = await WatchedServer.start();
  // HTTP/1.1, as all clients of ours: over HTTP/2, a request that is left with its body on the way makes Node.js write
  // empty DATA frames in this process until there is no memory (Http2Session::SendPendingData).
  agent = new Agent({
    ...{ connect: { ca: server.ca, timeout: 60_000 }, connections: atOnce, allowH2: false },
  });
  for (const name of ['fuzz', 'fuzz-2']) {
    await server.client.request('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
  }
  const definition = samples.get('apiextensions.k8s.io/customresourcedefinitions');
  await server.client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: { metadata: { name: 'widgets.fuzz.example.com' }, ...definition },
  });
});
afterAll(async () => {
  await agent.destroy();
  await server.stop();
});

/** Texts of 500 that kube-apiserver answers to bad input too (test/conformance/transcripts). */
const recorded500 = [
  /^resourceVersion should not be set on objects to be created$/,
  /failed to allocate requested HealthCheck NodePort/,
  /strconv\.ParseUint: parsing ".*": (invalid syntax|value out of range)/s,
  /does not contain declared merge key: /,
  /^failed to create (typed patch object|manager for existing fields|typed live object)/,
  /^failed to convert new object /,
  /^expected a (\[\]|map\[string\])interface \{\}, but received a /,
  // of custom resources, when a list was asked for
  /^content is not a list$/,
  /^list element types are not identical: /,
  /^unknown patch type: .* in map: /s,
  /^The order in patch list:/,
  /^unable to find api field in struct /,
  // What is wrong with a Binding is an aggregate of errors, not an Invalid (pod/storage BindingREST.Create).
  /^\[?target\.(name: Required|kind: Unsupported) value/,
];

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly text: string;
}

/** A watch is left as soon as its first bytes, or none for a moment, are there. */
async function send({ method, path, headers, body }: FuzzRequest): Promise<Answer> {
  const {
    statusCode,
    headers: answered,
    body: stream,
  } = await agent.request({
    origin: server.url,
    method,
    path,
    headers: { ...headers, authorization: `Bearer ${server.token}` },
    body: body ?? null,
    headersTimeout: 60_000,
  });
  const contentType = String(answered['content-type'] ?? '');
  const watched = statusCode === 200 && /watch/.test(path) && answered['content-length'] === undefined;
  if (!watched) {
    const bytes = Buffer.from(await stream.arrayBuffer());
    return { status: statusCode, contentType, bytes, text: bytes.toString() };
  }
  stream.on('error', () => undefined);
  setTimeout(() => stream.destroy(), 20);
  await new Promise<void>((resolve) => stream.once('close', () => resolve()).resume());
  return { status: statusCode, contentType: '', bytes: Buffer.alloc(0), text: '' };
}

const leaks =
  /\/work\/|node_modules|node:internal|\bat \S+ \(|\.ts:\d+|TypeError|RangeError|Cannot read prop|is not a function|\[object Object\]/;

/** What is wrong with an answer; "" when nothing is. */
function fault(request: FuzzRequest, { status, contentType, bytes, text }: Answer): string {
  if (leaks.test(text)) return 'the inside of the server shows';
  if (request.method === 'HEAD' || text === '' || contentType === '')
    return status >= 500 ? 'a bare 5xx' : '';
  if (contentType.startsWith('text/plain')) {
    return status === 404 || status === 405 || status === 415 || status === 200 ? '' : 'plain text';
  }
  let body: unknown;
  try {
    if (contentType.includes('protobuf')) body = parseProtobuf(bytes, { group: '', version: '', kind: '' });
    else if (contentType.includes('yaml')) body = parse(text, { maxAliasCount: -1 });
    else body = JSON.parse(text);
  } catch {
    return `no ${contentType}`;
  }
  if (status < 400) return '';
  if (!isRecord(body) || body['kind'] !== 'Status' || body['status'] !== 'Failure') return 'no Status';
  if (body['code'] !== status) return 'a Status with another code';
  if (status < 500 || status === 504) return '';
  const message = textAt(body, 'message');
  return status === 500 && recorded500.some((pattern) => pattern.test(message)) ? '' : `a ${status}`;
}

async function routes(): Promise<Route[]> {
  const found: Route[] = [];
  const groups = (await server.client.request('GET', '/apis')).json();
  const versions = listAt(groups, 'groups').flatMap((group) =>
    listAt(group, 'versions').map((version) => textAt(version, 'groupVersion')),
  );
  for (const groupVersion of ['v1', ...versions]) {
    const [group = '', version = ''] = groupVersion === 'v1' ? ['', 'v1'] : groupVersion.split('/');
    const path = group === '' ? '/api/v1' : `/apis/${groupVersion}`;
    for (const row of listAt((await server.client.request('GET', path)).json(), 'resources')) {
      const [plural = '', subresource = ''] = textAt(row, 'name').split('/');
      const verbs = listAt(row, 'verbs').map(String);
      const namespaced = isRecord(row) && row['namespaced'] === true;
      found.push({ group, version, plural, subresource, kind: textAt(row, 'kind'), namespaced, verbs });
    }
  }
  return found;
}

/** Service networking is what this is about: its routes come up more often. */
function weighted(all: readonly Route[]): Route[] {
  const often = new Set([
    'services',
    'endpoints',
    'endpointslices',
    'ingresses',
    'ipaddresses',
    'servicecidrs',
    'widgets',
  ]);
  return [
    ...all,
    ...all.filter(({ plural }) => often.has(plural)),
    ...all.filter(({ plural }) => plural === 'services'),
  ];
}

/** Some at a time: drawing takes longer than answering. */
function* drawn(one: fc.Arbitrary<FuzzRequest>): Generator<FuzzRequest> {
  for (let n = 0; n < total; n += atOnce) yield* fc.sample(one, { seed: seed + n, numRuns: atOnce });
}

async function heapMiB(): Promise<number> {
  return (await server.measure(true)).heapMiB;
}

/** Milliseconds of CPU that one request may hold the event loop. */
const maxTurnMs = 200;
/** Requests between two looks at the watchdog. */
const watched = 50;

/** Those that hold the event loop for too long when they are sent again alone; the least of three counts. */
async function holders(suspects: Iterable<FuzzRequest>): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const request of suspects) {
    let leastMs = Infinity;
    for (let n = 0; n < 3 && leastMs > maxTurnMs; n++) {
      await server.measure();
      await send(request);
      leastMs = Math.min(leastMs, (await server.measure()).longestTurnMs);
    }
    const { method, path, body } = request;
    if (leastMs > maxTurnMs) found.push({ leastMs, method, path, body: body?.toString().slice(0, 1500) });
  }
  return found;
}

describe('whatever a client sends', () => {
  test(
    `${total} requests get an answer that a Kubernetes client understands`,
    { timeout: 600_000 },
    async () => {
      console.log(`fuzz: FUZZ_SEED=${seed} FUZZ_REQUESTS=${total}`);
      const all = await routes();
      const before = await heapMiB();
      const counts = new Map<number, number>();
      const faults = new Map<string, unknown>();
      const stream = drawn(requests(weighted(all)));
      const suspects = new Set<FuzzRequest>();
      let earlier: FuzzRequest[] = [];
      let recent: FuzzRequest[] = [];
      const worker = async (): Promise<void> => {
        for (const request of stream) {
          recent.push(request);
          const answer = await send(request);
          if (recent.length >= watched) {
            const asked = [...earlier, ...recent];
            [earlier, recent] = [recent, []];
            if ((await server.measure()).longestTurnMs > maxTurnMs)
              for (const each of asked) suspects.add(each);
          }
          counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
          const found = fault(request, answer);
          if (found === '') continue;
          const { method, path, headers } = request;
          const body = request.body?.toString().slice(0, 1500);
          const text = answer.text.slice(0, 400);
          faults.set(`${found} ${method} ${text.slice(0, 120)}`, {
            found,
            method,
            path,
            headers,
            body,
            text,
          });
        }
      };
      await Promise.all(Array.from({ length: atOnce }, worker));
      const found = [...faults.values()].slice(0, 20);
      expect(found, JSON.stringify(found.slice(0, 3))).toEqual([]);
      console.log(`fuzz: ${suspects.size} requests were sent again, alone, to see who held the event loop`);
      expect(await holders(suspects)).toEqual([]);
      console.log(`fuzz: answers by status ${JSON.stringify(Object.fromEntries([...counts].sort()))}`);
      expect(counts.get(200) ?? 0).toBeGreaterThan(total / 20);
      expect(counts.get(201) ?? 0).toBeGreaterThan(total / 50);
      expect((await server.client.request('GET', '/readyz')).bytes.toString()).toBe('ok');
      // What is left of the last requests, up to 120 MiB, goes with their turns: what stays is what was stored and compiled.
      await expect
        .poll(async () => (await heapMiB()) - before, { timeout: 60_000, interval: 500 })
        .toBeLessThan(60);
    },
  );

  test('leaves only objects that the server takes back as they are', async () => {
    const refused: unknown[] = [];
    let objects = 0;
    for (const route of await routes()) {
      if (route.subresource !== '' || !route.verbs.includes('update')) continue;
      const root = route.group === '' ? `/api/${route.version}` : `/apis/${route.group}/${route.version}`;
      const list = (await server.client.request('GET', `${root}/${route.plural}`)).json();
      for (const item of listAt(list, 'items')) {
        const namespace = textAt(item, 'metadata', 'namespace');
        const scope = namespace === '' ? '' : `/namespaces/${namespace}`;
        const path = `${root}${scope}/${route.plural}/${textAt(item, 'metadata', 'name')}`;
        const stored = (await server.client.request('GET', path)).json();
        objects++;
        try {
          const version = textAt(
            (await server.client.request('PUT', path, { body: stored })).json(),
            'metadata',
            'resourceVersion',
          );
          // what versions of a definition were stored is its server's business
          const own = route.plural === 'customresourcedefinitions';
          // A Service that a write to /status creates has no address, as in Kubernetes: the next write gives it one.
          const { type = '', clusterIP = '' } = recordAt(recordAt(stored)['spec']);
          const isBare = route.plural === 'services' && type !== 'ExternalName' && clusterIP === '';
          if (!own && !isBare && version !== textAt(stored, 'metadata', 'resourceVersion')) {
            refused.push({ path, changed: stored });
          }
        } catch (error) {
          refused.push({ path, error: String(error), stored });
        }
      }
    }
    console.log(`fuzz: ${objects} objects were stored`);
    expect(objects).toBeGreaterThan(50);
    expect(refused.slice(0, 5)).toEqual([]);
  });
});
