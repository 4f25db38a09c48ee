import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthenticator, staticTokens } from '../../src/apiserver/authentication/authenticator.ts';
import type { DiscoveredResource } from '../../src/apiserver/discovery/discovered-resource.ts';
import { discoveryHandler } from '../../src/apiserver/discovery/handler.ts';
import { versionHandler } from '../../src/apiserver/discovery/routes.ts';
import { type Handler, createRouter } from '../../src/apiserver/http/exchange.ts';
import { createHttpServer, type HttpServer } from '../../src/apiserver/http/server.ts';
import { openApiHandler } from '../../src/apiserver/discovery/openapi/handler.ts';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { isRecord, listAt, recordAt, textAt } from '../../src/objects/json.ts';

/** No extension API server. */
const noRemote: readonly never[] = [];

const run = promisify(execFile);
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

/** Discovery as kube-apiserver has it, with the schema that carries the kind. */
function resources(): DiscoveredResource[] {
  const read = (file: string): unknown =>
    JSON.parse(readFileSync(new URL(`../../hack/openapi/${file}`, import.meta.url), 'utf8'));
  const schemaOf = new Map<string, string>();
  for (const [name, schema] of Object.entries(recordAt(read('schemas.json')))) {
    const [kind] = listAt(schema, 'x-kubernetes-group-version-kind');
    if (kind !== undefined) schemaOf.set(`${textAt(kind, 'group')}/${textAt(kind, 'kind')}`, name);
  }
  const found: DiscoveredResource[] = [];
  for (const [path, rows] of Object.entries(recordAt(read('resources.json')))) {
    const [, group = '', version = ''] = path.startsWith('api/') ? ['', '', path.slice(4)] : path.split('/');
    for (const row of Array.isArray(rows) ? rows : []) {
      if (!isRecord(row) || textAt(row, 'name').includes('/')) continue;
      const kind = textAt(row, 'kind');
      found.push({
        ...{ group, version, kind, plural: textAt(row, 'name'), singular: textAt(row, 'singularName') },
        namespaced: row['namespaced'] === true,
        shortNames: listAt(row, 'shortNames').map(String),
        categories: listAt(row, 'categories').map(String),
        verbs: listAt(row, 'verbs').map(String),
        schema: schemaOf.get(`${group}/${kind}`) ?? `none.${kind}`,
        subresources: [],
        custom: false,
      });
    }
  }
  return found;
}

describe.runIf(hasKubectl)('kubectl', () => {
  let server: HttpServer;
  let directory = '';
  let kubeconfig = '';

  beforeAll(async () => {
    const now = new Date();
    const ca = createCertificateAuthority('ca', { now });
    const served = resources();
    const discovery = discoveryHandler(
      () => served,
      () => noRemote,
      () => '127.0.0.1:0',
    );
    server = createHttpServer({
      tls: issueServerCertificate(ca, 'server', ['127.0.0.1'], { now }),
      authenticator: createAuthenticator({
        tokens: [staticTokens([{ token: 't', user: { name: 'admin', uid: '', groups: [], extra: {} } }])],
        anonymousPaths: [],
        now: Date.now,
      }),
      handler: createRouter(
        new Map<string, Handler>([
          ['api', discovery],
          ['apis', discovery],
          ['version', versionHandler({ version: '0.1.0', platform: 'linux/amd64' })],
          [
            'openapi',
            openApiHandler(
              () => served,
              () => noRemote,
              () => undefined,
            ),
          ],
        ]),
      ),
      log: pino({ level: 'silent' }),
    });
    const { port } = await server.listen(0, '127.0.0.1');
    directory = mkdtempSync(join(tmpdir(), 'servicenet-kubectl-'));
    kubeconfig = join(directory, 'config');
    const cluster = {
      server: `https://127.0.0.1:${port}`,
      'certificate-authority-data': Buffer.from(ca.certificate).toString('base64'),
    };
    writeFileSync(
      kubeconfig,
      stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'c', cluster }],
        users: [{ name: 'u', user: { token: 't' } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    );
  });
  afterAll(async () => {
    await server.close(0);
    rmSync(directory, { recursive: true });
  });

  const kubectl = async (...args: string[]): Promise<string> => {
    const cache = join(directory, 'cache');
    const { stdout } = await run('kubectl', ['--kubeconfig', kubeconfig, '--cache-dir', cache, ...args], {
      timeout: 90_000,
    });
    return stdout;
  };

  test('knows the version of the server', async () => {
    expect(await kubectl('version')).toContain('Server Version: v1.37.2+servicenet.0.1.0');
  });

  test('lists the resources', async () => {
    const lines = (await kubectl('api-resources', '--no-headers'))
      .split('\n')
      .map((line) => line.split(/ +/));
    expect(lines).toContainEqual(['services', 'svc', 'v1', 'true', 'Service']);
    expect(lines).toContainEqual(['endpointslices', 'discovery.k8s.io/v1', 'true', 'EndpointSlice']);
    expect(await kubectl('api-versions')).toContain('networking.k8s.io/v1\n');
  });

  test('explains a Service and its ports', async () => {
    const text = await kubectl('explain', 'service.spec.ports');
    expect(text).toContain('FIELD: ports <[]ServicePort>');
    expect(text).toMatch(/port\s+<integer> -required-\s+The port that clients connect to/);
    expect(await kubectl('explain', 'svc', '--recursive')).toContain('trafficDistribution\t<string>');
    expect(await kubectl('explain', 'endpointslices.endpoints.conditions')).toContain('serving\t<boolean>');
  });

  test('tells what is wrong with what it is asked to explain', async () => {
    await expect(kubectl('explain', 'service.spec.nope')).rejects.toThrow('field "nope" does not exist');
  });
});
