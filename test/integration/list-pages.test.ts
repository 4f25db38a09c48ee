import { afterAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import type { QueryParameters } from '../../src/client/transport.ts';
import { samples } from '../support/fuzz/samples.ts';
import { call } from '../support/test-server.ts';
import { untilObject } from '../support/with-controllers.ts';

/** Lists in pages: all resources are listed by one function, whatever their kind. */
const server = await startApiServer();
const { client } = server;
afterAll(async () => server.stop());

const namespaces = ['pages-a', 'pages-b'];
for (const name of [...namespaces, 'pages-many']) {
  await client.request('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
}
await client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
  body: {
    metadata: { name: 'widgets.fuzz.example.com' },
    ...samples.get('apiextensions.k8s.io/customresourcedefinitions'),
  },
});

/** What is made of a resource, besides {@link samples}. */
const bodies: ReadonlyMap<string, JsonRecord> = new Map<string, JsonRecord>([
  ['fuzz.example.com/widgets', { apiVersion: 'fuzz.example.com/v1', kind: 'Widget' }],
  ['/namespaces', {}],
  [
    'autoscaling/horizontalpodautoscalers',
    { spec: { maxReplicas: 1, scaleTargetRef: { kind: 'A', name: 'a' } } },
  ],
  [
    'events.k8s.io/events',
    {
      eventTime: '2026-01-01T00:00:00.000000Z',
      type: 'Normal',
      action: 'a',
      reason: 'r',
      reportingController: 'a.example/b',
      reportingInstance: 'c',
    },
  ],
]);

interface Resource {
  /** `group/plural`. */
  readonly key: string;
  readonly group: string;
  readonly plural: string;
  /** Of the version: `/apis/apps/v1`. */
  readonly path: string;
  readonly namespaced: boolean;
  readonly canCreate: boolean;
}

/** The ways in which objects are stored and shown: not at all, in a namespace or not, in several versions, custom ones. */
const resources = [
  ['/api/v1', 'componentstatuses', 'cluster', 'read-only'],
  ['/api/v1', 'namespaces', 'cluster'],
  // The key of the first begins that of the second.
  ['/api/v1', 'pods'],
  ['/api/v1', 'podtemplates'],
  // Two groups, one storage.
  ['/api/v1', 'events'],
  ['/apis/events.k8s.io/v1', 'events'],
  ['/apis/autoscaling/v2', 'horizontalpodautoscalers'],
  ['/apis/autoscaling/v1', 'horizontalpodautoscalers'],
  ['/apis/apiextensions.k8s.io/v1', 'customresourcedefinitions', 'cluster'],
  ['/apis/fuzz.example.com/v1', 'widgets'],
].map(([path = '', plural = '', scope, verbs]): Resource => {
  const [, , group = ''] = path.startsWith('/apis/') ? path.split('/') : [];
  return {
    ...{ key: `${group}/${plural}`, group, plural, path },
    ...{ namespaced: scope !== 'cluster', canCreate: verbs !== 'read-only' },
  };
});

/** A label value for the objects that are made through this version. */
const labelOf = (path: string): string => path.slice(1).replaceAll('/', '.');

/** The names of a resource's objects are not free for all of them. */
function bodyOf({ key, group, plural, path }: Resource, namespace: string, n: number): JsonRecord {
  // Versions of one group are read in turn.
  const at = path.endsWith('/v1') ? n : n + 100;
  const body = bodies.get(key) ?? samples.get(key) ?? {};
  const labels = { pages: labelOf(path), share: String(n % 2) };
  const named = (name: string): JsonRecord => ({ ...body, metadata: { name, labels } });
  switch (key) {
    case 'apiextensions.k8s.io/customresourcedefinitions': {
      const spec = recordAt(body['spec']);
      const names = { ...recordAt(spec['names']), plural: `things${at}`, kind: `Thing${at}`, shortNames: [] };
      return { ...named(`things${at}.fuzz.example.com`), spec: { ...spec, names } };
    }
    case '/events':
      return { ...named(`core-${at}`), involvedObject: { kind: 'Pod', namespace, name: 'p' } };
    case 'events.k8s.io/events':
      return { ...named(`v1-${at}`), regarding: { kind: 'Pod', namespace, name: 'p' } };
    default:
      return named(`${group === '' ? 'core' : 'pages'}-${plural.slice(0, 3)}-${at}`);
  }
}

const namespaceOf = (collection: string): string => /\/namespaces\/([^/]+)/.exec(collection)?.[1] ?? '';

const keyOf = (item: unknown): string =>
  `${textAt(item, 'metadata', 'namespace')}/${textAt(item, 'metadata', 'name')}`;

interface Listed {
  readonly keys: readonly string[];
  readonly version: string;
}

/** A token names its version. */
const unversioned = { resourceVersion: undefined, resourceVersionMatch: undefined };

/** Reads all pages. `between` runs behind each page and may give another token. */
async function pages(
  path: string,
  query: QueryParameters,
  between: (token: string) => Promise<string> = (token) => Promise.resolve(token),
): Promise<Listed> {
  const keys: string[] = [];
  let version = '';
  let token: string | undefined;
  do {
    const { status, body } = await call(client, 'GET', path, {
      query: token === undefined ? query : { ...query, ...unversioned, continue: token },
    });
    expect([status, body['message']]).toEqual([200, undefined]);
    const items = listAt(body, 'items');
    expect(items.length).toBeLessThanOrEqual(Number(query['limit'] ?? Infinity));
    keys.push(...items.map(keyOf));
    version ||= textAt(body, 'metadata', 'resourceVersion');
    token = textAt(body, 'metadata', 'continue') || undefined;
    if (token !== undefined) token = await between(token);
  } while (token !== undefined);
  return { keys, version };
}

/** The same token, but for the newest state. */
function atNewest(token: string): string {
  const content = recordAt(JSON.parse(Buffer.from(token, 'base64url').toString()));
  return tokenOf({ ...content, rv: -1 });
}

const tokenOf = (content: unknown): string => Buffer.from(JSON.stringify(content)).toString('base64url');

// A kind is served a moment after its definition.
await untilObject(client, '/apis/fuzz.example.com/v1/widgets', (_, status) => status === 200);

describe('pages', () => {
  const perNamespace = 4;

  test.for(resources)('of $key in $path have each object once', async (resource) => {
    const { namespaced, path, plural } = resource;
    const everywhere = `${path}/${plural}`;
    const labelSelector = `pages=${labelOf(path)}`;
    const collections = namespaced
      ? namespaces.map((each) => `${path}/namespaces/${each}/${plural}`)
      : [everywhere];
    const made: string[] = [];
    const odd = new Set<string>();
    const create = async (collection: string, n: number): Promise<string> => {
      const { status, body } = await call(client, 'POST', collection, {
        body: bodyOf(resource, namespaceOf(collection), n),
      });
      expect(status === 201 ? '' : body['message']).toBe('');
      return keyOf(body);
    };
    const objects = resource.canCreate ? perNamespace : 0;
    for (const collection of collections) {
      for (let n = 1; n <= (namespaced ? objects : 2 * objects); n++) {
        const key = await create(collection, n);
        made.push(key);
        if (n % 2 === 1) odd.add(key);
      }
    }
    made.sort();
    const [first = ''] = made;
    const firstName = first.slice(first.indexOf('/') + 1);
    const { version } = await pages(everywhere, { limit: 1 });
    const fieldSelector = `metadata.name!=${firstName}`;

    const whole = await pages(everywhere, {});
    // Pages of one are tried on one group: they are many requests. Larger ones are below.
    for (const limit of path === '/api/v1' ? [1, 3] : [3]) {
      expect(whole.keys).toEqual(expect.arrayContaining(made));
      expect((await pages(everywhere, { limit })).keys).toEqual(whole.keys);
      expect((await pages(everywhere, { limit, labelSelector })).keys).toEqual(made);
      const share = await pages(everywhere, {
        limit,
        labelSelector: `${labelSelector},share=1`,
        fieldSelector,
      });
      expect(share.keys).toEqual(made.filter((key) => odd.has(key) && !key.endsWith(`/${firstName}`)));
      for (const collection of collections) {
        const namespace = namespaceOf(collection);
        const own = made.filter((key) => key.startsWith(`${namespace}/`));
        expect((await pages(collection, { limit, labelSelector })).keys).toEqual(own);
      }
      // ComponentStatuses are not stored, and have no version.
      if (version === '') continue;
      const exact = { limit, resourceVersion: version, resourceVersionMatch: 'Exact' };
      expect(await pages(everywhere, exact)).toEqual({ ...whole, version });
    }
    if (!resource.canCreate) return;

    // Objects come and go behind each page: a list at one revision does not see it, one at the newest has what stays.
    const [collection = ''] = collections;
    const coming = 20;
    let changes = 0;
    const change = async (): Promise<void> => {
      changes++;
      if (changes > coming) return;
      const key = await create(collection, coming + changes);
      if (changes % 2 === 0)
        await client.request('DELETE', `${collection}/${key.slice(key.indexOf('/') + 1)}`, {
          body: { gracePeriodSeconds: 0 },
        });
    };
    const all = await pages(everywhere, {});
    const same = await pages(everywhere, { limit: 3 }, async (token) => {
      await change();
      return token;
    });
    expect(same.keys).toEqual(all.keys);
    const stayed = new Set((await pages(everywhere, {})).keys);
    const newest = await pages(everywhere, { limit: 3 }, async (token) => {
      await change();
      return atNewest(token);
    });
    expect(new Set(newest.keys).size).toBe(newest.keys.length);
    expect(newest.keys).toEqual(expect.arrayContaining([...stayed]));
  });

  test.for(['/api/v1/namespaces', '/api/v1/namespaces/pages-many/configmaps'])(
    'of 500 hold all of 600 objects of %s',
    async (path) => {
      const name = (n: number): string => `many-${String(n).padStart(4, '0')}`;
      const labels = { many: 'yes' };
      await Promise.all(
        Array.from({ length: 8 }, async (_, worker) => {
          for (let n = worker; n < 600; n += 8) {
            await client.request('POST', path, { body: { metadata: { name: name(n), labels } } });
          }
        }),
      );
      const { keys } = await pages(path, { limit: 500, labelSelector: 'many=yes' });
      expect(keys.map((key) => key.slice(key.indexOf('/') + 1))).toEqual(
        Array.from({ length: 600 }, (_, n) => name(n)),
      );
    },
  );
});

describe('a continue token', () => {
  const names = async (path: string, token: unknown): Promise<unknown> => {
    const query = { limit: 500, continue: typeof token === 'string' ? token : tokenOf(token) };
    const { status, body } = await call(client, 'GET', path, { query });
    return status === 200
      ? listAt(body, 'items').map((item) => textAt(item, 'metadata', 'name'))
      : [status, textAt(body, 'reason')];
  };
  const v = 'meta.k8s.io/v1';

  test.for([
    ['pages-a\0', ['pages-b']],
    ['/pages-a\0', ['pages-b']],
    ['pages-a', ['pages-a', 'pages-b']],
    ['pages-aa', ['pages-b']],
    ['pages-b\0', []],
  ] as const)('of namespaces that starts at %j lists what is from there on', async ([start, expected]) => {
    const rest = await names('/api/v1/namespaces', { v, rv: -1, start });
    expect(Array.isArray(rest) && rest.filter((name) => name === 'pages-a' || name === 'pages-b')).toEqual(
      expected,
    );
  });

  test('without NUL starts at its own key, in a namespace and in all', async () => {
    for (const name of ['t-1', 't-2']) {
      await client.request('POST', '/api/v1/namespaces/pages-a/secrets', { body: { metadata: { name } } });
    }
    expect(await names('/api/v1/namespaces/pages-a/secrets', { v, rv: -1, start: 't-2' })).toContain('t-2');
    expect(await names('/api/v1/namespaces/pages-a/secrets', { v, rv: -1, start: 't-2\0' })).not.toContain(
      't-2',
    );
    expect(await names('/api/v1/secrets', { v, rv: -1, start: 'pages-a/t-2' })).toContain('t-2');
    expect(await names('/api/v1/secrets', { v, rv: -1, start: 'pages-a/t-2\0' })).not.toContain('t-2');
  });

  test.for([
    ['', '%%'],
    ['of base64 with padding', `${tokenOf({ v, rv: -1, start: 'a' })}=`],
    ['of no JSON', Buffer.from('pages').toString('base64url')],
    ['of another version', { v: 'v2', rv: -1, start: 'a' }],
    ['without a revision', { v, start: 'a' }],
    ['without a key', { v, rv: -1 }],
    ['that leads up', { v, rv: -1, start: '../secrets/a' }],
    ['with an empty segment', { v, rv: -1, start: '//a' }],
    ['whose key ends in a slash', { v, rv: -1, start: 'a/' }],
  ] as const)('%s is a bad request', async ([, token]) => {
    for (const path of ['/api/v1/namespaces', '/api/v1/secrets', '/api/v1/namespaces/pages-a/secrets']) {
      expect(await names(path, token === '%%' ? '%%' : token)).toEqual([400, 'BadRequest']);
    }
  });

  test('of a revision that is gone is expired, and the error has one that lists the rest', async () => {
    const { status, body } = await call(client, 'GET', '/api/v1/namespaces', {
      query: { limit: 1, continue: tokenOf({ v, rv: 1, start: 'pages-a\0' }) },
    });
    expect([status, textAt(body, 'reason')]).toEqual([410, 'Expired']);
    const next = textAt(body, 'metadata', 'continue');
    expect(await names('/api/v1/namespaces', next)).toContain('pages-b');
    expect(await names('/api/v1/namespaces', next)).not.toContain('pages-a');
  });
});
