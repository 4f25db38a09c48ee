import { connect } from 'node:tls';
import { pino } from 'pino';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Embedded, startEmbedded } from '../../src/apiserver/embedded.ts';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { nodePortRange, readServiceCidrs } from '../../src/flags/shared.ts';
import { recordAt, textAt } from '../../src/objects/json.ts';
import { call } from '../support/test-server.ts';

const secret = 'administrators-token-0123456789';

/** Claims of SECURITY.md that no other test keeps. */
describe('the embedded server', () => {
  let server: Embedded;
  let client: Transport;
  let logged = '';

  beforeAll(async () => {
    server = await startEmbedded({
      bindAddress: '127.0.0.1',
      port: 0,
      serviceCidrs: readServiceCidrs('10.96.0.0/16'),
      nodePorts: nodePortRange('30000-32767'),
      authorizationMode: 'RBAC',
      adminToken: secret,
      log: pino({ level: 'trace' }, { write: (line: string) => (logged += line) }),
    });
    client = await createTransport({ kind: 'endpoint', url: server.url, ca: server.ca, token: secret });
  });

  afterAll(async () => {
    await client.close();
    await server.close();
  });

  /** The protocol that is agreed on, or the word with which the server refuses. */
  const handshake = (protocol: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<string | null> =>
    new Promise((resolve) => {
      const socket = connect({
        host: '127.0.0.1',
        port: server.port,
        ca: server.ca,
        minVersion: protocol,
        maxVersion: protocol,
        // Else the client itself would not offer the old ones.
        ciphers: 'DEFAULT@SECLEVEL=0',
      });
      socket.once('secureConnect', () => {
        resolve(socket.getProtocol());
        socket.destroy();
      });
      socket.once('error', (error) => resolve(String(Reflect.get(error, 'code'))));
    });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('speaks %s', async (protocol) => {
    expect(await handshake(protocol)).toBe(protocol);
  });

  test.each(['TLSv1', 'TLSv1.1'] as const)('refuses %s', async (protocol) => {
    expect(await handshake(protocol)).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
  });

  test('writes no token to its log, right, wrong or just made', async () => {
    const wrong = 'a-wrong-token-0123456789';
    const other = await createTransport({ kind: 'endpoint', url: server.url, ca: server.ca, token: wrong });
    expect((await call(other, 'GET', '/api/v1/services')).status).toBe(401);
    await other.close();
    await call(client, 'POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } },
    });
    const path = '/api/v1/namespaces/default/serviceaccounts/robot/token';
    const answer = await call(client, 'POST', path, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    });
    const made = textAt(answer.body, 'status', 'token');
    expect(answer.body).toMatchObject({
      metadata: { name: 'robot', namespace: 'default' },
      spec: { audiences: ['https://kubernetes.default.svc.cluster.local'], expirationSeconds: 3600 },
    });
    expect(made.split('.')).toHaveLength(3);
    for (const token of [secret, wrong, made]) expect(logged).not.toContain(token);
  });

  const refusedTokens: [object, number, string][] = [
    [
      { metadata: { name: 'other' } },
      422,
      'TokenRequest.authentication.k8s.io "clerk" is invalid: metadata.name: Invalid value: "other": must match the ' +
        'service account name if specified',
    ],
    [
      { spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'nope' } } },
      404,
      'pods "nope" not found',
    ],
    [
      { spec: { boundObjectRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'nope' } } },
      400,
      'cannot bind token to object of type apps/v1, Kind=Deployment',
    ],
  ];

  test.each(refusedTokens)('makes no token for %j', async (asked, status, message) => {
    const accounts = '/api/v1/namespaces/default/serviceaccounts';
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'clerk' } };
    await call(client, 'POST', accounts, { body: account });
    const path = `${accounts}/clerk/token`;
    const answer = await call(client, 'POST', path, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {}, ...asked },
    });
    expect([answer.status, textAt(answer.body, 'message')]).toEqual([status, message]);
  });

  /** As it is, where a client would make JSON of it. */
  const sendText = async (contentType: string, text: string): Promise<{ status: number; body: unknown }> => {
    const agent = new Agent({ connect: { ca: server.ca } });
    const answer = await request(`${server.url}/api/v1/namespaces/default/configmaps`, {
      method: 'POST',
      dispatcher: agent,
      headers: { authorization: `Bearer ${secret}`, 'content-type': contentType },
      body: text,
    });
    const body = await answer.body.json();
    await agent.close();
    return { status: answer.statusCode, body };
  };

  const deep = (open: string, close: string): string => `${open.repeat(5000)}1${close.repeat(5000)}`;
  const aliases = `a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n${Array.from({ length: 9 }, (_, i) => {
    const again = Array.from({ length: 10 }, () => `*a${i}`).join(', ');
    return `a${i + 1}: &a${i + 1} [${again}]`;
  }).join('\n')}\n`;
  test.each([
    ['JSON that is deep', 'application/json', `{"data":${deep('[', ']')}}`, 400],
    ['YAML that is deep', 'application/yaml', `data: ${deep('[', ']')}\n`, 400],
    ['YAML maps that are deep', 'application/yaml', `data: ${deep('{a: ', '}')}\n`, 413],
    ['YAML aliases that multiply', 'application/yaml', aliases, 400],
  ])('answers %s with a Status, and goes on', async (_, contentType, text, code) => {
    const { status, body } = await sendText(contentType, text);
    expect(status).toBe(code);
    expect(body).toMatchObject({ kind: 'Status', status: 'Failure' });
    expect(textAt(body, 'message')).toMatch(/exceeded max depth|excessive aliasing|yaml: |tokens of YAML/i);
    expect((await client.request('GET', '/readyz')).bytes.toString()).toBe('ok');
  });

  const special = [
    '127.0.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    'fe80::1',
    'ff02::1',
    '::',
    '::ffff:169.254.169.254',
  ];
  test.each(special)('sends nothing to %s, which a Pod or Endpoints say is theirs', async (ip) => {
    const namespace = '/api/v1/namespaces/default';
    const spec = { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'x' }] };
    await call(client, 'POST', `${namespace}/serviceaccounts`, { body: { metadata: { name: 'default' } } });
    const made = await call(client, 'POST', `${namespace}/pods`, {
      body: { metadata: { generateName: 'p-' }, spec },
    });
    const name = textAt(made.body, 'metadata', 'name');
    const stored = await call(client, 'PATCH', `${namespace}/pods/${name}/status`, {
      body: { status: { podIP: ip, podIPs: [{ ip }] } },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    const answer = await call(client, 'GET', `${namespace}/pods/${name}:${server.port}/proxy/`);
    expect([answer.status, textAt(answer.body, 'message')]).toEqual([400, 'address not allowed']);
    const targetRef = { kind: 'Pod', namespace: 'default', name };
    const endpoints = await call(client, 'POST', `${namespace}/endpoints`, {
      body: {
        metadata: { name },
        subsets: [{ addresses: [{ ip, targetRef }], ports: [{ port: server.port }] }],
      },
    });
    // Addresses that cannot be connected to are not Kubernetes' special addresses.
    if (ip === '255.255.255.255') expect([stored.status, endpoints.status]).toEqual([200, 201]);
    else expect(endpoints.status).toBe(422);
  });

  test('takes names that are members of every object for names', async () => {
    const text =
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"odd"},"data":{"__proto__":"x","constructor":"y"}}';
    const { status, body } = await sendText('application/json', text);
    expect(status).toBe(201);
    expect(Object.entries(recordAt(body, 'data'))).toEqual([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
    expect(Object.keys({})).toEqual([]);
    expect(Reflect.get({}, 'x')).toBeUndefined();
  });
});
