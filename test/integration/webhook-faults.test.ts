import { createServer as createHttpServer } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { recordAt, textAt } from '../../src/objects/json.ts';
import { HookedServer } from '../support/hooked-server.ts';
import { call } from '../support/test-server.ts';
import { patchResponse, type Scripted, WebhookServer } from '../support/webhook-server.ts';

/** Webhooks that are dead, slow or lying. Every text is kube-apiserver's, or client-go's inside it. */
let hooked: HookedServer;
let webhooks: WebhookServer;
beforeAll(async () => {
  hooked = await HookedServer.start();
  ({ webhooks } = hooked);
});
afterAll(async () => hooked.stop());
afterEach(async () => hooked.clear());

const configMaps = '/api/v1/namespaces/default/configmaps';
const services = '/api/v1/namespaces/default/services';
const secrets = '/api/v1/namespaces/default/secrets';
const configuration = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/test';

const failed = (path: string, why: string): string =>
  `Internal error occurred: failed calling webhook "${path}.example.com": ${why}`;
const posting = (url: string, why: string, timeout = '10s'): string =>
  `failed to call webhook: Post "${url}?timeout=${timeout}": ${why}`;
const elsewhere = (path: string, url: string, caBundle = webhooks.caBundle): object =>
  hooked.webhook(path, { clientConfig: { url, caBundle } });

/** Creates a ConfigMap, which is refused with a text; with `failurePolicy: Ignore` it is made all the same. */
async function refuses(hook: object, path: string, why: string): Promise<void> {
  await hooked.configure('validating', [hook]);
  const { status, body } = await hooked.create();
  expect([status, body['message']]).toEqual([500, failed(path, why)]);
  expect(body['details']).toEqual({ causes: [{ message: failed(path, why).replace(/^.*?: /, '') }] });
  await hooked.send('DELETE', configuration);
  await hooked.configure('validating', [{ ...hook, failurePolicy: 'Ignore' }]);
  expect((await hooked.create()).status).toBe(201);
}

describe('a webhook that is busy', () => {
  const busy = (status: number, headers: Record<string, string>): Scripted => ({
    serve: (response) => response.writeHead(status, headers).end('busy'),
  });
  const allowed: Scripted = { response: { allowed: true } };

  test.each([429, 500, 503])('is asked again after %d with Retry-After', async (status) => {
    let left = 3;
    webhooks.at('/busy', () => (left-- > 0 ? busy(status, { 'retry-after': '0' }) : allowed));
    await hooked.configure('validating', [hooked.webhook('/busy')]);
    expect((await hooked.create()).status).toBe(201);
    expect(webhooks.asked).toHaveLength(4);
  });

  test('is asked eleven times at most', async () => {
    webhooks.at('/busy', () => busy(503, { 'retry-after': '0' }));
    await hooked.configure('validating', [hooked.webhook('/busy')]);
    expect((await hooked.create()).status).toBe(500);
    expect(webhooks.asked).toHaveLength(11);
  });

  test.each([
    [503, {}],
    [503, { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }],
    [404, { 'retry-after': '0' }],
  ])('is asked once: %d %j', async (status, headers) => {
    webhooks.at('/busy', () => busy(status, headers));
    await hooked.configure('validating', [hooked.webhook('/busy')]);
    expect((await hooked.create()).status).toBe(500);
    expect(webhooks.asked).toHaveLength(1);
  });

  test('is not waited for longer than its timeout', async () => {
    webhooks.at('/busy', () => busy(429, { 'retry-after': '3600' }));
    const hook = hooked.webhook('/busy', { timeoutSeconds: 1 });
    await refuses(hook, 'busy', 'failed to call webhook: context deadline exceeded');
  });
});

describe('a dead webhook', () => {
  test('no one listens', async () => {
    const gone = await WebhookServer.start();
    await gone.stop();
    const url = gone.url('/gone');
    const why = `dial tcp 127.0.0.1:${gone.port}: connect: connection refused`;
    await refuses(elsewhere('/gone', url, gone.caBundle), 'gone', posting(url, why));
  });

  test('hangs up when it was asked', async () => {
    webhooks.at('/cut', () => 'cut');
    await refuses(hooked.webhook('/cut'), 'cut', posting(webhooks.url('/cut'), 'EOF'));
  });

  test('hangs up before it was asked', async () => {
    const server = createServer((socket: Socket) => socket.destroy());
    const port = await listening(server);
    const url = `https://127.0.0.1:${port}/door`;
    await refuses(elsewhere('/door', url), 'door', posting(url, 'EOF'));
    server.close();
  });

  test('hangs up in the middle of its answer', async () => {
    webhooks.at('/half', () => ({
      serve: (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
        response.write('{"kind":', () => response.socket?.destroy());
      },
    }));
    const why = 'unexpected error when reading response body. Please retry. Original error: unexpected EOF';
    await refuses(hooked.webhook('/half'), 'half', `failed to call webhook: ${why}`);
  });
});

describe('a webhook that is not who it should be', () => {
  const tls = (reason: string): string => `tls: failed to verify certificate: x509: ${reason}`;

  test('has a certificate of a stranger', async () => {
    const stranger = await WebhookServer.start();
    const url = stranger.url('/stranger');
    const why = tls('certificate signed by unknown authority');
    await refuses(elsewhere('/stranger', url), 'stranger', posting(url, why));
    await stranger.stop();
  });

  test('has a certificate for another name', async () => {
    const other = await WebhookServer.start(['other.example.com']);
    const url = other.url('/other');
    const why = tls("cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs");
    await refuses(elsewhere('/other', url, other.caBundle), 'other', posting(url, why));
    await other.stop();
  });

  test('has a certificate of long ago', async () => {
    const old = await WebhookServer.start(['127.0.0.1'], new Date('2001-01-01'));
    const url = old.url('/old');
    await hooked.configure('validating', [elsewhere('/old', url, old.caBundle)]);
    const { status, body } = await hooked.create();
    expect(status).toBe(500);
    expect(textAt(body, 'message')).toContain(tls('certificate has expired or is not yet valid'));
    await old.stop();
  });

  test('has no authority, and a bundle without a certificate', async () => {
    const bundle = Buffer.from('none').toString('base64');
    const why =
      'could not get REST client: unable to load root certificates: unable to parse bytes as PEM block';
    await refuses(elsewhere('/any', webhooks.url('/any'), bundle), 'any', why);
  });

  test('speaks HTTP without TLS', async () => {
    const server = createHttpServer((_, response) => response.end('{}'));
    const url = `https://127.0.0.1:${await listening(server)}/plain`;
    await refuses(
      elsewhere('/plain', url),
      'plain',
      posting(url, 'http: server gave HTTP response to HTTPS client'),
    );
    server.closeAllConnections();
    server.close();
  });
});

test.each(['/failing', '//failing', '/failing/', '/x/../failing', '/%66ailing'])(
  'a webhook at %s, with its own certificate as caBundle, is asked at /failing (envtest)',
  async (path) => {
    const asked = webhooks.asked.length;
    const clientConfig = { url: webhooks.url(path), caBundle: webhooks.ownBundle };
    await hooked.configure('validating', [hooked.webhook('/failing', { clientConfig })]);
    expect((await hooked.create()).status).toBe(201);
    expect(webhooks.asked.slice(asked).map(({ path: got }) => got)).toEqual(['/failing']);
  },
);

describe('a slow webhook', () => {
  const late = 'context deadline exceeded';

  test('never answers, or never ends its answer', async () => {
    webhooks.at('/slow', () => 'hang');
    const dripping = new Set<NodeJS.Timeout>();
    webhooks.at('/drip', () => ({
      serve: (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const timer = setInterval(() => response.write(' '), 20);
        dripping.add(timer);
        response.once('close', () => {
          clearInterval(timer);
          dripping.delete(timer);
        });
      },
    }));
    // Longer than a process may be stopped: that it is asked, and that an answer begins, must fit in.
    const timeoutSeconds = 8;
    for (const failurePolicy of ['Fail', 'Ignore']) {
      const hooks = ['slow', 'drip'].map((path) => {
        const objectSelector = { matchLabels: { asks: path, failurePolicy } };
        return hooked.webhook(`/${path}`, { timeoutSeconds, failurePolicy, objectSelector });
      });
      await hooked.configure('validating', hooks, failurePolicy.toLowerCase());
    }
    const create = async (asks: string, failurePolicy: string): Promise<[number, unknown]> => {
      const name = `${asks}-${failurePolicy.toLowerCase()}`;
      const { status, body } = await hooked.create(name, { labels: { asks, failurePolicy } });
      return [status, body['message']];
    };
    const [slow, drip, ...ignored] = await Promise.all([
      ...[create('slow', 'Fail'), create('drip', 'Fail')],
      ...[create('slow', 'Ignore'), create('drip', 'Ignore')],
    ]);
    expect(slow).toEqual([500, failed('slow', posting(webhooks.url('/slow'), late, '8s'))]);
    const why = `unexpected error when reading response body. Please retry. Original error: ${late}`;
    expect(drip).toEqual([500, failed('drip', `failed to call webhook: ${why}`)]);
    expect(ignored.map(([status]) => status)).toEqual([201, 201]);
    expect(webhooks.asked.map(({ timeout }) => timeout)).toEqual(['8s', '8s', '8s', '8s']);
    // The connection is not kept, or it would drip for ever.
    await expect.poll(() => dripping.size).toBe(0);
  });

  test('holds up only those who must ask it', async () => {
    const open = Promise.withResolvers<undefined>();
    webhooks.at('/gate', () => ({ response: { allowed: true }, after: open.promise }));
    await hooked.configure('validating', [hooked.webhook('/gate', { timeoutSeconds: 30 })]);
    const { url, ca, token } = hooked.api;
    // Each has connections of its own, of which it opens so many.
    const clients = await Promise.all(
      Array.from({ length: 5 }, async () => createTransport({ kind: 'endpoint', url, ca, token })),
    );
    let answered = 0;
    const held = Array.from({ length: 100 }, async (_, n) => {
      const client = clients[n % clients.length] ?? hooked.api.client;
      const { status } = await call(client, 'POST', configMaps, {
        body: { metadata: { name: `held-${n}` } },
      });
      answered++;
      return status;
    });
    await expect.poll(() => webhooks.asked.length).toBe(held.length);
    for (let n = 0; n < 50; n++) {
      const made = await hooked.send('POST', secrets, { metadata: { name: `free-${n}` } });
      expect(made.status).toBe(201);
      expect((await hooked.send('GET', configMaps)).status).toBe(200);
    }
    expect(answered).toBe(0);
    open.resolve(undefined);
    expect(new Set(await Promise.all(held))).toEqual(new Set([201]));
    await hooked.send('DELETE', secrets);
    await Promise.all(clients.map(async (client) => client.close()));
  });

  test('does not change what was stored while it thought', async () => {
    await hooked.create();
    const asked = Promise.withResolvers<undefined>();
    const open = Promise.withResolvers<undefined>();
    webhooks.at('/gate', () => {
      asked.resolve(undefined);
      return { response: { allowed: true }, after: open.promise };
    });
    const { body } = await hooked.send('GET', `${configMaps}/a`);
    await hooked.configure('validating', [
      hooked.webhook('/gate', { objectSelector: { matchLabels: { gated: 'yes' } } }),
    ]);
    const metadata = { ...recordAt(body, 'metadata'), labels: { gated: 'yes' } };
    const late = hooked.send('PUT', `${configMaps}/a`, { ...body, metadata });
    await asked.promise;
    const now = await hooked.send('PUT', `${configMaps}/a`, { ...body, data: { x: '2' } });
    expect(now.status).toBe(200);
    open.resolve(undefined);
    expect((await late).status).toBe(409);
    expect(textAt((await hooked.send('GET', `${configMaps}/a`)).body, 'data', 'x')).toBe('2');
  });
});

describe('a lying webhook', () => {
  const review = (response: unknown, apiVersion = 'admission.k8s.io/v1'): string =>
    JSON.stringify({ apiVersion, kind: 'AdmissionReview', response });
  const go =
    'json: cannot unmarshal %s into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';
  const noKind = (type: string): string =>
    `couldn't get version/kind; json parse error: ${go.replace('%s', type)}`;
  const scheme = 'in scheme "pkg/runtime/scheme.go:111"';

  test.each<[string, Scripted, string]>([
    ['a text', { text: 'hello' }, noKind('string')],
    ['a page', { text: '<html></html>', contentType: 'text/html' }, noKind('string')],
    ['a list', { text: '[]' }, noKind('array')],
    ['a number', { text: '42' }, noKind('number')],
    [
      'half of an object',
      { text: '{"kind":' },
      "couldn't get version/kind; json parse error: unexpected end of JSON input",
    ],
    ['nothing', { text: '' }, '0-length response with status code: 200 and content type: application/json'],
    [
      'another kind',
      { text: '{"kind":"Pod","apiVersion":"v1"}' },
      `no kind "Pod" is registered for version "v1" ${scheme}`,
    ],
    [
      'another version',
      { text: review({ allowed: true }, 'admission.k8s.io/v1beta1') },
      'converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion',
    ],
    [
      'a version that is none',
      { text: review({ allowed: true }, 'admission.k8s.io/v1/v2') },
      'unexpected GroupVersion string: admission.k8s.io/v1/v2',
    ],
    [
      'a word where yes or no is wanted',
      { text: review({ allowed: 'yes' }) },
      'json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool',
    ],
    [
      'a number where a text is wanted',
      { text: review({ uid: 7, allowed: true }) },
      'json: cannot unmarshal number into Go struct field AdmissionResponse.response.uid of type types.UID',
    ],
    [
      'a text where a Status is wanted',
      { text: review({ allowed: false, status: 'no' }) },
      'json: cannot unmarshal string into Go struct field AdmissionResponse.response.status of type v1.Status',
    ],
    [
      'a patch that is no base64',
      { text: review({ allowed: true, patchType: 'JSONPatch', patch: '[{}]' }) },
      'illegal base64 data at input byte 0',
    ],
    [
      'an error in words',
      { status: 500, text: ' boom\n', contentType: 'text/plain' },
      'an error on the server ("boom") has prevented the request from succeeding',
    ],
    [
      'an error in JSON',
      { status: 500, text: '{"error":"boom"}' },
      'an error on the server ("unknown") has prevented the request from succeeding',
    ],
    [
      'an error as a Status',
      {
        status: 400,
        text: '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no such review"}',
      },
      'no such review',
    ],
    ['nothing there', { status: 404, text: '' }, 'the server could not find the requested resource'],
    ['a refusal', { status: 401, text: '' }, 'the server has asked for the client to provide credentials'],
    [
      'another place',
      {
        serve: (response) =>
          response.writeHead(302, { location: 'https://127.0.0.1:1/', 'content-length': '0' }).end(),
      },
      'the server responded with the status code 302 but did not return more information',
    ],
    ['too much', { text: 'x'.repeat(13 * 1024 * 1024) }, 'the response is larger than 12582912 bytes'],
  ])('answers %s', async (_name, answer, why) => {
    webhooks.at('/lie', () => answer);
    await refuses(hooked.webhook('/lie'), 'lie', `failed to call webhook: ${why}`);
  });

  test('never stops talking, and is cut off', async () => {
    let talking = 0;
    const megabyte = Buffer.alloc(1024 * 1024, 0x20);
    webhooks.at('/talk', () => ({
      serve: (response) => {
        talking++;
        response.once('close', () => talking--);
        response.writeHead(200, { 'content-type': 'application/json' });
        const talk = (): void => {
          while (!response.destroyed && response.write(megabyte));
        };
        response.on('drain', talk);
        talk();
      },
    }));
    // They say much before they are cut off: a busy machine takes its time for it.
    await hooked.configure('validating', [hooked.webhook('/talk', { timeoutSeconds: 30 })]);
    const all = await Promise.all(Array.from({ length: 16 }, async (_, n) => hooked.create(`t-${n}`)));
    const why = 'failed to call webhook: the response is larger than 12582912 bytes';
    expect(all.map(({ body }) => body['message'])).toEqual(all.map(() => failed('talk', why)));
    await expect.poll(() => talking).toBe(0);
  });

  const wanted = 'admission.k8s.io/v1, Kind=AdmissionReview';

  test.each<[string, (uid: string) => object, RegExp | string]>([
    [
      'no response',
      () => ({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }),
      'webhook response was absent',
    ],
    [
      'another question',
      () => ({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: { uid: 'x', allowed: true },
      }),
      /^expected response.uid="[0-9a-f-]{36}", got "x"$/,
    ],
    [
      'without a kind',
      (uid) => ({ response: { uid, allowed: true } }),
      `expected webhook response of ${wanted}, got /, Kind=`,
    ],
    [
      'with a patch though it may only look',
      (uid) => ({
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: { uid, allowed: true, patchType: 'JSONPatch', patch: 'W10=' },
      }),
      'validating webhook may not return response.patch',
    ],
  ])('answers %s', async (_name, answer, why) => {
    webhooks.at('/lie', (request) => ({ review: answer(textAt(request, 'uid')) }));
    await hooked.configure('validating', [hooked.webhook('/lie')]);
    const { status, body } = await hooked.create();
    const start = failed('lie', 'received invalid webhook response: ');
    const message = textAt(body, 'message');
    expect([status, message.startsWith(start)]).toEqual([500, true]);
    expect(message.slice(start.length)).toMatch(
      why instanceof RegExp ? why : new RegExp(`^${escaped(why)}$`),
    );
  });

  test.each([
    ['no list', 'e30=', 'JSONPatch', failed('lie', 'received undecodable patch in webhook response: ')],
    [
      'of another type',
      'W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d',
      'Merge',
      failed('lie', 'unsupported patch type "Merge"'),
    ],
    [
      'of the type ""',
      'W10=',
      '',
      failed('lie', 'received invalid webhook response: webhook returned invalid response.patchType of ""'),
    ],
    [
      'without a type',
      'W10=',
      undefined,
      failed(
        'lie',
        'received invalid webhook response: webhook returned response.patch but not response.patchType',
      ),
    ],
    [
      'absent, but its type is not',
      '',
      'JSONPatch',
      failed(
        'lie',
        'received invalid webhook response: webhook returned response.patchType but not response.patch',
      ),
    ],
  ])('has a patch that is %s', async (_name, patch, patchType, why) => {
    webhooks.at('/lie', () => ({
      response: { allowed: true, patch, ...(patchType === undefined ? {} : { patchType }) },
    }));
    await hooked.configure('mutating', [hooked.webhook('/lie')]);
    const { status, body } = await hooked.create();
    expect([status, body['message']]).toEqual([500, expect.stringContaining(why)]);
  });

  const changes = (op: string, path: string, value?: unknown) => (): Scripted =>
    patchResponse([{ op, path, ...(value === undefined ? {} : { value }) }]);

  test.each<[string, () => Scripted, number, string]>([
    [
      'name',
      changes('replace', '/metadata/name', 'b'),
      422,
      'metadata.name: Invalid value: "b": field is immutable',
    ],
    [
      'uid',
      changes('replace', '/metadata/uid', 'x'),
      422,
      'metadata.uid: Invalid value: "x": field is immutable',
    ],
    [
      'namespace',
      changes('replace', '/metadata/namespace', 'kube-system'),
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
    [
      'clusterIP',
      changes('replace', '/spec/clusterIP', '10.96.0.99'),
      422,
      'spec.clusterIPs[0]: Invalid value: ',
    ],
  ])('may not change the %s of a Service', async (_name, answer, code, message) => {
    const spec = { clusterIP: '10.96.0.98', ports: [{ port: 80 }] };
    await hooked.send('POST', services, { metadata: { name: 's' }, spec });
    webhooks.at('/change', answer);
    const rules = [{ operations: ['UPDATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['services'] }];
    await hooked.configure('mutating', [hooked.webhook('/change', { rules })]);
    const before = await hooked.send('GET', `${services}/s`);
    const changed = await hooked.send('PUT', `${services}/s`, { ...before.body });
    expect([changed.status, changed.body['message']]).toEqual([code, expect.stringContaining(message)]);
    expect((await hooked.send('GET', `${services}/s`)).body).toEqual(before.body);
    await hooked.send('DELETE', `${services}/s`);
  });

  test.each<[string, () => Scripted]>([
    ['kind', changes('replace', '/kind', 'Secret')],
    ['whole object', changes('replace', '', { kind: 'ConfigMap' })],
    ['whole object by nothing', changes('replace', '', 7)],
    ['metadata', changes('remove', '/metadata')],
    ['data by a text', changes('replace', '/data', 'text')],
  ])('takes away the %s: the write fails, the server goes on', async (_name, answer) => {
    webhooks.at('/break', answer);
    await hooked.configure('mutating', [hooked.webhook('/break')]);
    const { status, body } = await hooked.create();
    expect(status, JSON.stringify(body)).toBeGreaterThanOrEqual(400);
    expect(textAt(body, 'message')).not.toBe('');
    expect((await hooked.send('GET', `${configMaps}/a`)).status).toBe(404);
  });

  test('asks for a patch that would grow without end', async () => {
    // Each operation copies the whole into itself: thirty of them would be gigabytes.
    const copies = Array.from({ length: 30 }, (_, n) => ({ op: 'copy', from: '/data', path: `/data/${n}` }));
    webhooks.at('/grow', () => patchResponse(copies));
    await hooked.configure('mutating', [hooked.webhook('/grow')]);
    const { status, body } = await hooked.create();
    expect(status, JSON.stringify(body).slice(0, 500)).toBe(500);
    expect((await hooked.send('GET', configMaps)).status).toBe(200);
  });
});

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

async function listening(server: {
  listen: (...to: [number, string, () => void]) => unknown;
  address: () => unknown;
}): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null && 'port' in address ? Number(address.port) : 0;
}
