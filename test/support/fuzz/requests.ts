import fc from 'fast-check';
import { samples } from './samples.ts';
import { anyValue, garble, spoil, spoilt } from './values.ts';

/** A resource as discovery lists it; `subresource` is "" for the resource itself. */
export interface Route {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly subresource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

export interface FuzzRequest {
  readonly method: string;
  /** As it goes out. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

/** By verb, those that write more often. */
const methodOf: readonly (readonly [verb: string, method: string, weight: number])[] = [
  ['get', 'GET', 2],
  ['create', 'POST', 4],
  ['update', 'PUT', 4],
  ['patch', 'PATCH', 6],
  ['delete', 'DELETE', 1],
];
const anyMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const rareMethods = ['HEAD', 'OPTIONS', 'PROPFIND', 'TRACE', 'SEARCH'];

const namespaces = fc.oneof(
  { weight: 30, arbitrary: fc.constant('fuzz') },
  { weight: 1, arbitrary: fc.constantFrom('fuzz-2', 'none', 'A%20b', '%2e%2e', '__proto__') },
);
const names = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom('a', 'b', 'c') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...[
        'A',
        '.',
        '..',
        '%2e',
        '%2F',
        'a%2Fb',
        '%',
        '%zz',
        '%00',
        '%ff',
        'a'.repeat(300),
        'constructor',
        '%C3%A9',
        '%F0%9F%98%80',
      ],
    ),
  },
);

const queries = fc.oneof(
  { weight: 20, arbitrary: fc.constant('') },
  {
    weight: 4,
    arbitrary: fc
      .array(
        fc.constantFrom(
          ...[
            'fieldManager=m',
            'fieldManager=',
            'force=true',
            'force=maybe',
            'dryRun=All',
            'dryRun=None',
            'dryRun=',
          ],
          ...[
            'fieldValidation=Strict',
            'fieldValidation=Ignore',
            'fieldValidation=Nope',
            'pretty=true',
            'pretty',
          ],
          ...[
            'limit=1',
            'limit=-1',
            'limit=abc',
            'limit=99999999999999999999',
            'continue=abc',
            'continue=e30=',
          ],
          ...['resourceVersion=0', 'resourceVersion=1', 'resourceVersion=abc', 'resourceVersion=99999999999'],
          ...['resourceVersionMatch=Exact', 'resourceVersionMatch=NotOlderThan', 'resourceVersionMatch=x'],
          ...[
            'labelSelector=a%3Db',
            'labelSelector=app+in+(web,x),!b',
            'labelSelector=%3D%3D',
            'labelSelector=(((',
          ],
          ...['fieldSelector=metadata.name%3Da', 'fieldSelector=spec.type!%3DX', 'fieldSelector=bogus%3D1'],
          ...['watch=true', 'watch=1', 'watch=maybe', 'timeoutSeconds=1', 'timeoutSeconds=x', 'timeout=0s'],
          ...[
            'timeout=1s',
            'timeout=-5s',
            'timeout=abc',
            'allowWatchBookmarks=true',
            'sendInitialEvents=true',
          ],
          ...[
            'gracePeriodSeconds=0',
            'gracePeriodSeconds=-1',
            'propagationPolicy=Orphan',
            'propagationPolicy=x',
          ],
          ...[
            'propagationPolicy=Foreground',
            'orphanDependents=true',
            'includeObject=Metadata',
            'includeObject=x',
          ],
          ...['%', '=&=&', 'a=%ff', '__proto__=1', 'limit=1&limit=2', 'x'.repeat(5000)],
        ),
        { minLength: 1, maxLength: 3 },
      )
      .map((parts) => `?${parts.join('&')}`),
  },
);

const strangeAccepts = fc.constantFrom(
  ...['application/json', 'application/json', 'application/json', '*/*', '', 'application/yaml', 'text/html'],
  ...[
    'application/json;as=Table;g=meta.k8s.io;v=v1',
    'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  ],
  ...[
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
    ';;;',
    'a/b;q=x,*',
  ],
  ...[
    'application/vnd.kubernetes.protobuf',
    'application/json;as=Table;g=x;v=y',
    'application/json;as=APIGroupDiscoveryList',
  ],
);
const accepts = fc.oneof(
  { weight: 8, arbitrary: fc.constant('application/json') },
  { weight: 1, arbitrary: strangeAccepts },
);
const bodyTypes = ['application/json', 'application/json', 'application/json', 'application/yaml'];
const patchTypes = [
  ...[
    'application/merge-patch+json',
    'application/strategic-merge-patch+json',
    'application/json-patch+json',
  ],
  ...['application/apply-patch+yaml', 'application/apply-patch+yaml'],
];
const strangeTypes = [
  '',
  'text/plain',
  'application/vnd.kubernetes.protobuf',
  'application/json; charset=utf-16',
  ';',
];

/** What has no answer here: streams, and calls that this server would make to addresses out of a body. */
const notServed = new Set(['proxy', 'exec', 'attach', 'portforward', 'log']);

function base(route: Route, namespace: string, name: string): Record<string, unknown> {
  const { group, version } = route;
  const metadata: Record<string, unknown> = { name, labels: { app: 'web' } };
  if (route.namespaced) metadata['namespace'] = namespace;
  return {
    apiVersion: group === '' ? version : `${group}/${version}`,
    kind: route.kind,
    metadata,
    ...structuredClone(samples.get(`${group}/${route.plural}`)),
  };
}

const pointers = fc.constantFrom(
  ...[
    '',
    '/',
    '/metadata',
    '/metadata/name',
    '/metadata/labels/app',
    '/metadata/labels/x~1y',
    '/metadata/managedFields',
  ],
  ...[
    '/metadata/finalizers',
    '/metadata/finalizers/-',
    '/metadata/resourceVersion',
    '/spec',
    '/spec/ports/0',
    '/spec/ports/-',
  ],
  ...[
    '/spec/ports/99999999999',
    '/spec/ports/-1',
    '/spec/ports/0/port',
    '/spec/type',
    '/spec/replicas',
    '/status',
  ],
  ...[
    '/__proto__/x',
    '/constructor/prototype',
    '/metadata/__proto__',
    '/a~2',
    'metadata',
    '/data/a',
    '/subsets/0/ports',
  ],
);
const jsonPatch = fc.array(
  fc.record(
    {
      op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'bogus', ''),
      path: pointers,
      from: pointers,
      value: anyValue,
    },
    { requiredKeys: ['op', 'path'] },
  ),
  { maxLength: 4 },
);

const managedFields = fc.constantFrom<unknown>(
  ...[
    null,
    [],
    {},
    [null],
    [{}],
    [{ manager: 'm', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1' }],
  ],
  [{ manager: 'm', operation: 'Nope', apiVersion: 'v9', fieldsType: 'FieldsV2', fieldsV1: {} }],
  [
    {
      manager: 'm',
      operation: 'Update',
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { 'k:{': {} } },
    },
  ],
  [{ manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { bogus: [] } }],
  [
    {
      manager: 'm',
      operation: 'Update',
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:__proto__': { 'v:1': {}, 'i:-1': {} } },
    },
  ],
);

/** Requests to all routes, in all ways, most of them nearly right. */
export function requests(routes: readonly Route[]): fc.Arbitrary<FuzzRequest> {
  const served = routes.filter(({ subresource }) => !notServed.has(subresource));
  const draws = fc.record({
    route: fc.constantFrom(...served),
    verb: fc.nat({ max: 999 }),
    oddMethod: fc.integer({ min: 0, max: 99 }),
    namespace: namespaces,
    name: names,
    // true: the collection where there is one
    wide: fc.boolean(),
    everywhere: fc.integer({ min: 0, max: 9 }),
    mangle: fc.integer({ min: 0, max: 200 }),
    query: queries,
    accept: accepts,
    type: fc.integer({ min: 0, max: 99 }),
    spoils: fc.oneof(fc.constant([]), fc.array(spoil, { maxLength: 3 })),
    whole: fc.boolean(),
    operations: jsonPatch,
    managed: fc.oneof(
      { weight: 12, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: managedFields },
    ),
    garbled: garble,
  });
  // Without fast-check's leaning to small numbers: it would have most requests wrong in the same way.
  return fc.noBias(draws).map((draw) => {
    const { route, namespace } = draw;
    const method = methodFor(route, draw.verb, draw.oddMethod);
    const name = nameFor(route, draw.name);
    const toCollection =
      route.subresource === '' &&
      (method === 'POST' || (draw.wide && method !== 'PUT' && method !== 'PATCH'));
    const path = mangled(pathOf(route, namespace, toCollection ? '' : name, draw.everywhere), draw.mangle);
    const headers: Record<string, string> = { accept: draw.accept };
    const isPatch = method === 'PATCH';
    const types = isPatch ? patchTypes : bodyTypes;
    const type =
      draw.type < 5
        ? (strangeTypes[draw.type % strangeTypes.length] ?? '')
        : (types[draw.type % types.length] ?? '');
    if (type !== '') headers['content-type'] = type;
    let query = draw.query;
    if (type.startsWith('application/apply') && !query.includes('fieldManager')) {
      query += query === '' ? '?fieldManager=m' : '&fieldManager=m';
    }
    // without the namespace of the test, or addresses to allocate, or with webhooks out of a body, all else fails
    const dangerous =
      /webhookconfigurations|admissionpolic/.test(path) ||
      (/namespaces|servicecidrs/.test(route.plural) && method === 'DELETE');
    if (dangerous) query = '?dryRun=All&fieldManager=m';
    const bodiless = ['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method);
    if (bodiless) return { method, path: path + query, headers, body: undefined };
    if (method === 'DELETE') {
      // options in a body would make the query void
      if (dangerous) return { method, path: path + query, headers, body: undefined };
      const options = draw.whole
        ? ''
        : JSON.stringify(
            spoilt(
              { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: {} },
              draw.spoils[0] ?? { path: [], how: 'add', key: 'dryRun', value: ['All'] },
            ),
          );
      return { method, path: path + query, headers, body: draw.garbled(Buffer.from(options)) };
    }
    let object: unknown = base(route, namespace, name);
    if (draw.managed !== undefined && typeof object === 'object' && object !== null) {
      object = { ...object, metadata: { name, managedFields: draw.managed } };
    }
    for (const each of draw.spoils) object = spoilt(object, each);
    if (isPatch && type === 'application/json-patch+json' && draw.type > 10) object = draw.operations;
    const text = JSON.stringify(object) as string | undefined;
    return { method, path: path + query, headers, body: draw.garbled(Buffer.from(text ?? '')) };
  });
}

function methodFor(route: Route, verb: number, odd: number): string {
  if (odd === 0) return rareMethods[verb % rareMethods.length] ?? 'GET';
  if (odd < 4) return anyMethods[verb % anyMethods.length] ?? 'GET';
  const choices = methodOf.flatMap(([name, method, weight]) =>
    route.verbs.includes(name) ? Array.from({ length: weight }, () => method) : [],
  );
  return choices[verb % choices.length] ?? 'GET';
}

/** Some kinds have names of a form of their own. */
function nameFor(route: Route, name: string): string {
  const form = nameForms.get(route.plural);
  return form !== undefined && /^[abc]$/.test(name) ? form(name) : name;
}

const nameForms = new Map<string, (name: string) => string>([
  ['ipaddresses', (name) => `10.96.7.${name.charCodeAt(0)}`],
  ['customresourcedefinitions', () => 'widgets.fuzz.example.com'],
]);

function pathOf(route: Route, namespace: string, name: string, everywhere: number): string {
  const { group, version, plural, subresource } = route;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = route.namespaced && (name !== '' || everywhere > 1) ? `/namespaces/${namespace}` : '';
  return `${root}${everywhere === 0 && name === '' ? '/watch' : ''}${scope}/${plural}${name === '' ? '' : `/${name}`}${subresource === '' ? '' : `/${subresource}`}`;
}

function mangled(path: string, how: number): string {
  switch (how) {
    case 0:
      return `${path}/`;
    case 1:
      return path.replace('/', '//');
    case 2:
      return `${path}/extra/segments`;
    case 3:
      return path.toUpperCase();
    case 4:
      return path.split('/').slice(0, -1).join('/') || '/';
    case 5:
      return `${path}/../..`;
    case 6:
      return path.replace('v1', 'v2');
    case 7:
      return `${path}%`;
    case 8:
      return '/openapi/v3/apis/x';
    case 9:
      return `/${'a/'.repeat(200)}`;
    default:
      return path;
  }
}
