import { maxJsonValues } from '../../../src/apiserver/schema/decode-walk.ts';
import { countJsonValues } from '../../../src/objects/json.ts';

/** A request that is as heavy as the limits permit, or beyond them: alone it must not hold the server's event loop. */
export interface HeavyRequest {
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With the query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** kube-apiserver answers 500, too. */
  readonly mayFail?: true;
  /** To be sent after a change of definitions: what is kept of an earlier answer does not count. */
  readonly afterChange?: true;
}

/** Bytes that a body may have. */
const most = 3 * 1024 * 1024;
const many = <T>(count: number, item: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => item(i));
const members = (count: number, name: (i: number) => string, value: (i: number) => unknown): object =>
  Object.fromEntries(many(count, (i) => [name(i), value(i)]));
/** A list of so many items, made when it is written as JSON. */
const list = (...of: Parameters<typeof many>): object => ({ toJSON: () => many(...of) });
/** An object of so many members, made when it is written as JSON. */
const record = (...of: Parameters<typeof members>): object => ({ toJSON: () => members(...of) });

const configMaps = '/api/v1/namespaces/default/configmaps';
const widgets = '/apis/heavy.example.com/v1/namespaces/default/widgets';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const reviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const services = '/api/v1/namespaces/default/services';

const json = { 'content-type': 'application/json' };
const asYaml = { 'content-type': 'application/yaml' };

/** A body of which as much is left as a request may have: its long lists and maps are cut, all in proportion. */
function cut(body: unknown): string {
  const text = JSON.stringify(body);
  const share = (0.97 * maxJsonValues) / countJsonValues(text, Infinity);
  return share >= 1 ? text : JSON.stringify(shortened(JSON.parse(text), share));
}

function shortened(value: unknown, share: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, shortened(member, share)] as const);
  const left = entries.length > 100 ? entries.slice(0, entries.length * share) : entries;
  return Array.isArray(value) ? left.map(([, member]) => member) : Object.fromEntries(left);
}

/** The request with that body, which is written when it is first read: most tests send few of the requests. */
function withBody(request: HeavyRequest, body: unknown): HeavyRequest {
  let text: string | undefined;
  return {
    ...request,
    get body() {
      return (text ??= cut(body));
    },
  };
}

/** What is known of its answer; in the place of a spread, which would read the body. */
type Answered = Pick<HeavyRequest, 'mayFail'>;
const post = (name: string, path: string, body: object, answered: Answered = {}): HeavyRequest =>
  withBody({ ...{ name, method: 'POST', path, headers: json }, ...answered }, body);
const yaml = (name: string, body: string): HeavyRequest => ({
  name: `YAML: ${name}`,
  method: 'POST',
  path: reviews,
  headers: asYaml,
  body: body.slice(0, most),
});
const apply = (name: string, path: string, body: object | string, answered: Answered = {}): HeavyRequest => {
  const headers = { 'content-type': 'application/apply-patch+yaml' };
  const query = `${path}?fieldManager=m&force=true`;
  const request: HeavyRequest = {
    ...{ name: `apply: ${name}`, method: 'PATCH', path: query, headers },
    ...answered,
  };
  return typeof body === 'string' ? { ...request, body } : withBody(request, body);
};
const patch = (kind: string, name: string, path: string, body: unknown): HeavyRequest => {
  const headers = { 'content-type': `application/${kind}-patch+json` };
  return withBody({ name: `${kind} patch: ${name}`, method: 'PATCH', path, headers }, body);
};

/** Letters a and b as a generator of random numbers draws them (MINSTD). */
function randomLetters(count: number): string {
  let state = 1;
  return many(count, () => ((state = (state * 48_271) % 2_147_483_647) % 2 === 0 ? 'a' : 'b')).join('');
}

/** A definition of a resource of `heavy.example.com` with a schema. */
export function definitionOf(plural: string, kind: string, properties: object, more: object = {}): object {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.heavy.example.com` },
    spec: {
      group: 'heavy.example.com',
      scope: 'Namespaced',
      names: { plural, kind },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties, ...more } },
        },
      ],
    },
  };
}

const string = { type: 'string' };
const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const keyed = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['n'],
  items: { type: 'object', properties: { n: { type: 'integer' }, v: string }, required: ['n'] },
};
const set = { type: 'array', 'x-kubernetes-list-type': 'set', items: string };

/** What the heavy requests are about, to be created before them. */
export const heavyDefinition = definitionOf('widgets', 'Widget', {
  open,
  keyed,
  set,
  strings: { type: 'array', items: { type: 'string', pattern: '^[a-z]+$', maxLength: 10 } },
  letters: { type: 'string', pattern: '(?:a|b)*a(?:a|b){200}$' },
  formats: { type: 'array', items: { type: 'string', format: 'date-time' } },
  numbers: { type: 'array', items: { type: 'integer', minimum: 0, multipleOf: 2 } },
  words: { type: 'array', items: { type: 'string', enum: many(2000, (i) => `right-${i}`) } },
  map: { type: 'object', additionalProperties: string },
  defaulted: {
    type: 'array',
    items: {
      type: 'object',
      properties: record(
        20,
        (i) => `d${i}`,
        (i) => ({ ...string, default: `v${i}` }),
      ),
    },
  },
  either: {
    type: 'array',
    items: { ...open, anyOf: many(20, (i) => ({ required: [`r${i}`] })) },
  },
});

const widget = (name: string, fields: object): object => ({
  apiVersion: 'heavy.example.com/v1',
  kind: 'Widget',
  metadata: { name },
  ...fields,
});
const configMap = (name: string, fields: object): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  ...fields,
});

/** Bodies of YAML that once took seconds each. */
export function heavyYaml(): HeavyRequest[] {
  return [
    yaml('anchors', '&a '.repeat(1e6)),
    yaml('brackets', '['.repeat(1.5e6)),
    yaml('braces', '{'.repeat(1.5e6)),
    yaml('pairs of brackets', `[${'[],'.repeat(7e5)}]`),
    yaml('documents', '---\n'.repeat(7e5)),
    yaml('items', '- x\n'.repeat(7e5)),
    yaml('items in items', '- '.repeat(1e6)),
    yaml('keys in keys', 'a: '.repeat(1e6)),
    yaml('questions', '? '.repeat(1e6)),
    yaml('keys', many(200_000, (i) => `k${i}: v\n`).join('')),
    yaml('keys in brackets', `{${many(200_000, (i) => `k${i}: v`).join(',')}}`),
    yaml('aliases', `a: &a x\nb: [${'*a,'.repeat(9e5)}]`),
    yaml('tags', '!!str '.repeat(5e5)),
    yaml('comments', '#\n'.repeat(1.5e6)),
    yaml('empty lines', '\n'.repeat(3e6)),
    yaml('blanks', ' '.repeat(3e6)),
    yaml('a quoted text', `a: "${'\\x41'.repeat(7e5)}"`),
    yaml('lines of a quoted text', `a: "${'x\n '.repeat(1e6)}"`),
    yaml('lines of a plain text', `a: ${'x\n '.repeat(1e6)}`),
    yaml('a literal text', `a: |\n${' x\n'.repeat(1e6)}`),
    yaml('a folded text', `a: >\n${' x\n'.repeat(1e6)}`),
    yaml('many quotes', `"`.repeat(3e6)),
    yaml('one quote', `'${'a'.repeat(3e6)}`),
    yaml('commas', ','.repeat(3e6)),
    yaml('colons', ':'.repeat(3e6)),
    yaml('colons and blanks', ': '.repeat(1.5e6)),
    yaml('merges', `a: &a {b: c}\nd:\n${'  <<: *a\n'.repeat(3e5)}`),
    yaml('directives', '%YAML 1.1\n'.repeat(3e5)),
    yaml('carriage returns', '\r'.repeat(3e6)),
    yaml('tabs', '\t'.repeat(3e6)),
    yaml('numbers', `[${'1.5e3,'.repeat(5e5)}]`),
    yaml('a long number', `a: ${'9'.repeat(3e6)}`),
    yaml('underscores', `a: 1${'_'.repeat(3e6)}`),
    yaml('binary', `a: !!binary ${'QUFB'.repeat(7e5)}`),
    yaml('deep flow', '[a, '.repeat(7e5)),
    yaml('keys within the limit', many(4_900, (i) => `k${i}: v\n`).join('')),
    yaml('aliases within the limit', `a: &a x\nb: [${'*a,'.repeat(9_000)}]\nc: [${'a,'.repeat(200)}]`),
    yaml('quotes within the limit', '"'.repeat(50_000)),
    yaml('anchors within the limit', '&a '.repeat(14_000)),
    yaml('brackets within the limit', '['.repeat(29_000)),
    yaml('tags within the limit', '!!str '.repeat(14_000)),
    yaml('merges within the limit', `a: &a {b: c}\nd:\n${'  <<: *a\n'.repeat(4_000)}`),
    yaml('deep block', many(2400, (i) => `${' '.repeat(i)}a:\n`).join('')),
  ];
}

function bodiesOfJson(): HeavyRequest[] {
  return [
    {
      ...post('JSON: too many members', reviews, {}),
      body: JSON.stringify(
        record(
          200_000,
          (i) => `k${i}`,
          () => 1,
        ),
      ),
    },
    post('JSON: empty lists', reviews, { spec: list(25_000, () => []) }),
    { ...post('JSON: brackets', reviews, {}), body: '['.repeat(most) },
    { ...post('JSON: members', reviews, {}), body: `{${'"a":'.repeat(7e5)}` },
    { ...post('JSON: a repeated member', reviews, {}), body: `{${'"a":1,'.repeat(24_000)}"b":1}` },
    { ...post('JSON: numbers', reviews, {}), body: `{"a":[${'1.50,'.repeat(24_000)}1]}` },
    { ...post('JSON: a number', reviews, {}), body: `{"a":${'9'.repeat(3e6)}}` },
    { ...post('JSON: escapes', reviews, {}), body: `{"a":"${'\\ud800'.repeat(5e5)}"}` },
    post(
      'JSON: unknown fields',
      `${configMaps}?fieldValidation=Warn`,
      record(
        200_000,
        (i) => `k${i}`,
        () => 1,
      ),
    ),
    post(
      'JSON: unknown fields, strict',
      `${configMaps}?fieldValidation=Strict`,
      record(
        200_000,
        (i) => `k${i}`,
        () => 1,
      ),
    ),
    post(
      'ConfigMap: keys',
      configMaps,
      configMap('keys', {
        data: record(
          120_000,
          (i) => `k${i}`,
          () => 'v',
        ),
      }),
    ),
    post(
      'ConfigMap: wrong keys',
      configMaps,
      configMap('wrong', {
        data: record(
          120_000,
          (i) => `k/${i}`,
          () => 'v',
        ),
      }),
    ),
    post('ConfigMap: text', configMaps, configMap('text', { data: { a: 'x'.repeat(2_900_000) } })),
    post(
      'ConfigMap: binary in lines',
      configMaps,
      configMap('lines', { binaryData: { a: 'QUFB\n'.repeat(500_000) } }),
    ),
    post(
      'ConfigMap: wrong binary',
      configMaps,
      configMap('binary', {
        binaryData: record(
          100_000,
          (i) => `k${i}`,
          () => '!',
        ),
      }),
    ),
    post('metadata: labels', configMaps, {
      metadata: {
        name: 'labels',
        labels: record(
          120_000,
          (i) => `k${i}`,
          () => 'v',
        ),
      },
    }),
    post('metadata: wrong labels', configMaps, {
      metadata: {
        name: 'labels',
        labels: record(
          80_000,
          (i) => `k${i}!`,
          () => 'v!',
        ),
      },
    }),
    post('metadata: annotations', configMaps, {
      metadata: {
        name: 'notes',
        annotations: record(
          120_000,
          (i) => `k${i}`,
          () => 'v',
        ),
      },
    }),
    post('metadata: finalizers', configMaps, {
      metadata: { name: 'finalizers', finalizers: list(120_000, (i) => `a.b/${i}`) },
    }),
    post('metadata: owners', configMaps, {
      metadata: {
        name: 'owners',
        ownerReferences: list(25_000, (i) => ({
          apiVersion: 'v1',
          kind: 'Pod',
          name: `p${i}`,
          uid: `u${i}`,
        })),
      },
    }),
    post('metadata: owners twice', configMaps, {
      metadata: {
        name: 'owners',
        ownerReferences: list(35_000, (i) => ({
          apiVersion: 'v1',
          kind: 'Pod',
          name: `p`,
          uid: `u`,
          controller: i % 2 === 0,
        })),
      },
    }),
    post('metadata: managers', configMaps, {
      metadata: {
        name: 'managers',
        managedFields: list(12_000, (i) => ({
          ...{ manager: `m${i}`, operation: 'Update', apiVersion: 'v1', time: '2020-01-01T00:00:00Z' },
          ...{ fieldsType: 'FieldsV1', fieldsV1: { 'f:data': { [`f:k${i}`]: {} } } },
        })),
      },
      data: record(
        12_000,
        (i) => `k${i}`,
        () => 'v',
      ),
    }),
    post('Service: ports', services, {
      metadata: { name: 's' },
      spec: { ports: list(60_000, (i) => ({ name: `p${i}`, port: (i % 65_535) + 1 })) },
    }),
    post('Service: the same port', services, {
      metadata: { name: 's' },
      spec: { ports: list(60_000, () => ({ port: 80 })) },
    }),
    post(
      'Service: NodePorts',
      services,
      {
        metadata: { name: 'np' },
        spec: { type: 'NodePort', ports: list(20_000, (i) => ({ name: `p${i}`, port: i + 1 })) },
      },
      { mayFail: true },
    ),
    post('Service: external addresses', services, {
      metadata: { name: 's' },
      spec: { ports: [{ port: 80 }], externalIPs: list(120_000, (i) => `300.${i}`) },
    }),
    post('Service: source ranges', services, {
      metadata: { name: 's' },
      spec: {
        type: 'LoadBalancer',
        ports: [{ port: 80 }],
        loadBalancerSourceRanges: list(120_000, (i) => `10.0.0.0/${i}`),
      },
    }),
    post('EndpointSlice: endpoints', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
      metadata: { name: 'slice' },
      addressType: 'IPv4',
      endpoints: list(60_000, (i) => ({ addresses: [`10.0.${i >> 8}.${i & 255}`] })),
      ports: [],
    }),
    post('Endpoints: addresses', '/api/v1/namespaces/default/endpoints', {
      metadata: { name: 'e' },
      subsets: [
        {
          addresses: list(100_000, (i) => ({ ip: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}` })),
          ports: [{ port: 1 }],
        },
      ],
    }),
    post('Endpoints: subsets', '/api/v1/namespaces/default/endpoints', {
      metadata: { name: 'e2' },
      subsets: list(30_000, (i) => ({
        addresses: [{ ip: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}` }],
        ports: [{ port: (i % 60_000) + 1 }],
      })),
    }),
    post('NetworkPolicy: rules', '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies', {
      metadata: { name: 'n' },
      spec: {
        podSelector: {},
        ingress: list(40_000, () => ({
          from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }],
        })),
      },
    }),
    post('Ingress: rules', '/apis/networking.k8s.io/v1/namespaces/default/ingresses', {
      metadata: { name: 'i' },
      spec: {
        rules: list(20_000, (i) => ({
          host: `h${i}.example.com`,
          http: {
            paths: [
              { path: '/', pathType: 'Prefix', backend: { service: { name: 'a', port: { number: 1 } } } },
            ],
          },
        })),
      },
    }),
    post('Pod: containers', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'p' },
      spec: {
        containers: list(30_000, (i) => ({ name: `c${i}`, image: 'i', env: [{ name: 'A', value: 'b' }] })),
      },
    }),
    post('Pod: environment', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'p2' },
      spec: {
        containers: [{ name: `c`, image: 'i', env: list(90_000, (i) => ({ name: `A${i}`, value: '' })) }],
      },
    }),
    post('Pod: tolerations', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'p3' },
      spec: {
        tolerations: list(60_000, (i) => ({ key: `k${i}`, operator: 'Exists' })),
        containers: [{ name: `c`, image: 'i' }],
      },
    }),
    post('Pod: volumes', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'p4' },
      spec: {
        volumes: list(60_000, (i) => ({ name: `v${i}`, emptyDir: {} })),
        containers: [
          {
            name: `c`,
            image: 'i',
            volumeMounts: list(10_000, (i) => ({ name: `v${i}`, mountPath: `/m${i}` })),
          },
        ],
      },
    }),
    post('Deployment: selector', '/apis/apps/v1/namespaces/default/deployments', {
      metadata: { name: 'd' },
      spec: {
        selector: {
          matchLabels: record(
            50_000,
            (i) => `k${i}`,
            () => 'v',
          ),
        },
        template: {
          metadata: {
            labels: record(
              50_000,
              (i) => `k${i}`,
              () => 'v',
            ),
          },
          spec: { containers: [{ name: 'c', image: 'i' }] },
        },
      },
    }),
    post('Role: rules', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles', {
      metadata: { name: 'r' },
      rules: list(40_000, (i) => ({ verbs: ['get'], apiGroups: [''], resources: [`r${i}`] })),
    }),
    post('Role: verbs', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles', {
      metadata: { name: 'r2' },
      rules: [
        {
          verbs: list(100_000, (i) => `v${i}`),
          apiGroups: list(50_000, (i) => `g${i}`),
          resources: list(50_000, (i) => `r${i}`),
        },
      ],
    }),
    post('review: subject', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      spec: {
        user: 'a',
        groups: list(200_000, (i) => `g${i}`),
        resourceAttributes: { verb: 'get', resource: 'pods' },
      },
    }),
    post('review: selectors', reviews, {
      spec: {
        resourceAttributes: {
          verb: 'list',
          resource: 'pods',
          labelSelector: {
            requirements: list(40_000, (i) => ({ key: `k${i}`, operator: 'In', values: ['a'] })),
          },
        },
      },
    }),
    post('review: token', '/apis/authentication.k8s.io/v1/tokenreviews', {
      spec: { token: `${'e'.repeat(1e6)}.${'e'.repeat(1e6)}.${'e'.repeat(5e5)}` },
    }),
    post('ResourceQuota: scopes', '/api/v1/namespaces/default/resourcequotas', {
      metadata: { name: 'q' },
      spec: {
        hard: record(
          80_000,
          (i) => `requests.storage-${i}`,
          (i) => `${i}Gi`,
        ),
      },
    }),
    post('LimitRange: items', '/api/v1/namespaces/default/limitranges', {
      metadata: { name: 'l' },
      spec: { limits: list(30_000, (i) => ({ type: `T${i}`, max: { cpu: '1' }, min: { cpu: '2' } })) },
    }),
    post(
      'custom: unknown fields',
      `${widgets}?fieldValidation=Warn`,
      widget(
        'unknown',
        members(
          120_000,
          (i) => `k${i}`,
          () => 1,
        ),
      ),
    ),
    post(
      'custom: open',
      widgets,
      widget('open', {
        open: record(
          120_000,
          (i) => `k${i}`,
          () => [{}],
        ),
      }),
    ),
    post(
      'custom: deep',
      widgets,
      widget('deep', { open: JSON.parse(`${'{"a":'.repeat(900)}1${'}'.repeat(900)}`) as unknown }),
    ),
    post(
      'custom: deep many',
      widgets,
      widget('deep2', {
        open: many(1500, () => JSON.parse(`${'{"a":'.repeat(250)}1${'}'.repeat(250)}`) as unknown),
      }),
    ),
    post('custom: keyed items', widgets, widget('keyed', { keyed: list(60_000, (n) => ({ n, v: 'x' })) })),
    post('custom: keyed items twice', widgets, widget('keyed2', { keyed: list(120_000, () => ({ n: 1 })) })),
    post('custom: set', widgets, widget('set', { set: list(120_000, (i) => `v${i}`) })),
    post('custom: set twice', widgets, widget('set2', { set: list(300_000, () => 'a') })),
    post('custom: patterns', widgets, widget('patterns', { strings: list(200_000, () => 'abc') })),
    // A deterministic automaton needs a new state for nearly each letter.
    post('custom: a pattern with many states', widgets, widget('states', { letters: randomLetters(28_000) })),
    post('custom: wrong patterns', widgets, widget('patterns', { strings: list(120_000, (i) => `A${i}`) })),
    post(
      'custom: wrong types',
      widgets,
      widget('types', { strings: list(200_000, (i) => i), numbers: list(100_000, () => 'a') }),
    ),
    post(
      'custom: formats',
      widgets,
      widget('formats', { formats: list(100_000, () => '2020-13-01T00:00:00Z') }),
    ),
    post('custom: numbers', widgets, widget('numbers', { numbers: list(300_000, () => 3) })),
    post('custom: wrong words', widgets, widget('words', { words: list(80_000, (i) => `wrong-${i}`) })),
    post(
      'custom: map',
      widgets,
      widget('map', {
        map: record(
          120_000,
          (i) => `k${i}`,
          () => 'v',
        ),
      }),
    ),
    post('custom: defaults', widgets, widget('defaults', { defaulted: list(100_000, () => ({})) })),
    post('custom: alternatives', widgets, widget('either', { either: list(100_000, () => ({})) })),
  ];
}

function definitionsOfKinds(): HeavyRequest[] {
  const define = (name: string, plural: string, properties: object, more: object = {}): HeavyRequest =>
    post(`definition: ${name}`, definitions, definitionOf(plural, `K${plural}`, properties, more));
  const nested = (depth: number): object =>
    depth === 0 ? string : { type: 'object', properties: { a: nested(depth - 1) } };
  return [
    define(
      'properties',
      'props',
      record(
        30_000,
        (i) => `p${i}`,
        () => string,
      ),
    ),
    define(
      'wrong properties',
      'wrongs',
      record(
        60_000,
        (i) => `p${i}`,
        () => ({ type: 'x' }),
      ),
    ),
    define(
      'properties without a type',
      'notypes',
      record(
        100_000,
        (i) => `p${i}`,
        () => ({}),
      ),
    ),
    define(
      'patterns',
      'pats',
      record(
        2000,
        (i) => `p${i}`,
        (i) => ({ ...string, pattern: `(a|b|c|d){1000}${i}` }),
      ),
    ),
    define('a long pattern', 'longpat', {
      p: { ...string, pattern: `(${many(100_000, (i) => `a${i}`).join('|')})` },
    }),
    define('nested patterns', 'nestpat', { p: { ...string, pattern: '((((((x{9}){9}){9}){9}){9}){9}){9}' } }),
    define('a class', 'classes', { p: { ...string, pattern: '[\\pL\\pN\\pS\\pP]'.repeat(5000) } }),
    define('enums', 'enums', { p: { ...string, enum: list(120_000, (i) => `e${i}`) } }),
    define(
      'defaults',
      'defs',
      record(
        20_000,
        (i) => `p${i}`,
        () => ({ ...string, default: 'x' }),
      ),
    ),
    define(
      'wrong defaults',
      'wrongdefs',
      record(
        40_000,
        (i) => `p${i}`,
        () => ({ ...string, default: 1 }),
      ),
    ),
    define('a large default', 'large', {
      p: { type: 'array', items: string, default: list(200_000, (i) => `${i}`) },
    }),
    define(
      'rules',
      'rules',
      record(
        3000,
        (i) => `p${i}`,
        () => ({ ...string, 'x-kubernetes-validations': [{ rule: 'self.size() < 5' }] }),
      ),
    ),
    define(
      'wrong rules',
      'wrongrules',
      record(
        10_000,
        (i) => `p${i}`,
        () => ({ ...string, 'x-kubernetes-validations': [{ rule: 'self.x < ' }] }),
      ),
    ),
    define('a long rule', 'longrule', {
      p: {
        ...string,
        'x-kubernetes-validations': [{ rule: many(100_000, () => "self == 'a'").join(' || ') }],
      },
    }),
    define('many rules', 'manyrules', {
      p: {
        ...string,
        maxLength: 1,
        'x-kubernetes-validations': list(20_000, (i) => ({ rule: `self != '${i}'` })),
      },
    }),
    define('alternatives', 'alts', { p: { ...open, anyOf: list(60_000, (i) => ({ required: [`r${i}`] })) } }),
    define('depth', 'deeps', { a: nested(90), b: nested(90) }),
    define('columns', 'cols', {}, { required: list(200_000, (i) => `r${i}`) }),
    post('definition: names', definitions, {
      metadata: { name: 'names.heavy.example.com' },
      spec: {
        group: 'heavy.example.com',
        scope: 'Cluster',
        names: {
          plural: 'names',
          kind: 'Names',
          shortNames: list(100_000, (i) => `s${i}`),
          categories: list(50_000, (i) => `c${i}`),
        },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
        ],
      },
    }),
    post('definition: versions', definitions, {
      metadata: { name: 'versions.heavy.example.com' },
      spec: {
        group: 'heavy.example.com',
        scope: 'Cluster',
        names: { plural: 'versions', kind: 'Versions' },
        versions: list(15_000, (i) => ({
          name: `v${i + 1}`,
          served: true,
          storage: i === 0,
          schema: { openAPIV3Schema: { type: 'object' } },
        })),
      },
    }),
    post('definition: printer columns', definitions, {
      metadata: { name: 'printers.heavy.example.com' },
      spec: {
        group: 'heavy.example.com',
        scope: 'Cluster',
        names: { plural: 'printers', kind: 'Printers' },
        versions: [
          {
            ...{ name: `v1`, served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
            additionalPrinterColumns: list(30_000, (i) => ({
              name: `c${i}`,
              type: 'string',
              jsonPath: '.metadata.name',
            })),
          },
        ],
      },
    }),
  ];
}

function patches(): HeavyRequest[] {
  const target = `${configMaps}/target`;
  return [
    patch('merge', 'keys', target, {
      data: record(
        120_000,
        (i) => `k${i}`,
        () => 'v',
      ),
    }),
    patch('merge', 'null keys', target, {
      data: record(
        200_000,
        (i) => `n${i}`,
        () => null,
      ),
    }),
    patch('strategic-merge', 'keys', target, {
      data: record(
        120_000,
        (i) => `s${i}`,
        () => 'v',
      ),
    }),
    patch('strategic-merge', 'owners', target, {
      metadata: {
        ownerReferences: list(25_000, (i) => ({
          apiVersion: 'v1',
          kind: 'Pod',
          name: `p${i}`,
          uid: `u${i}`,
        })),
      },
    }),
    patch('strategic-merge', 'ordered owners', target, {
      metadata: {
        '$setElementOrder/ownerReferences': list(80_000, (i) => ({ uid: `u${i}` })),
        ownerReferences: [],
      },
    }),
    patch('strategic-merge', 'deleted finalizers', target, {
      metadata: {
        '$deleteFromPrimitiveList/finalizers': list(200_000, (i) => `f${i}`),
        finalizers: list(50_000, (i) => `a.b/${i}`),
      },
    }),
    patch('strategic-merge', 'ports', `${services}/target`, {
      spec: { ports: list(60_000, (i) => ({ port: (i % 65_535) + 1, name: `p${i}` })) },
    }),
    patch(
      'json',
      'operations',
      target,
      list(10_000, (i) => ({ op: 'add', path: `/data/j${i}`, value: 'v' })),
    ),
    patch('json', 'insertions', `${widgets}/target`, [
      { op: 'add', path: '/set', value: list(100_000, (i) => `s${i}`) },
      ...many(9_999, (i) => ({ op: 'add', path: '/set/0', value: `i${i}` })),
    ]),
    patch('json', 'removals', `${widgets}/target`, [
      { op: 'add', path: '/set', value: list(100_000, (i) => `s${i}`) },
      ...many(9_999, () => ({ op: 'remove', path: '/set/0' })),
    ]),
    patch('json', 'copies', `${widgets}/target`, [
      { op: 'add', path: '/open', value: { a: many(50, (i) => i) } },
      ...many(9_999, (i) => ({ op: 'copy', from: '/open/a', path: `/open/c${i}` })),
    ]),
    patch('json', 'tests', `${widgets}/target`, [
      { op: 'add', path: '/open', value: { a: list(100_000, (i) => i) } },
      { op: 'add', path: '/open/b', value: 1 },
      ...many(9_900, () => ({ op: 'test', path: '/open', value: {} })),
    ]),
    patch(
      'json',
      'a long path',
      target,
      many(20, () => ({ op: 'add', path: '/a'.repeat(70_000), value: 1 })),
    ),
  ];
}

function applies(): HeavyRequest[] {
  return [
    apply(
      'keys',
      `${configMaps}/applied`,
      configMap('applied', {
        data: record(
          120_000,
          (i) => `k${i}`,
          () => 'v',
        ),
      }),
    ),
    apply(
      'keyed items',
      `${widgets}/applied`,
      widget('applied', { keyed: list(60_000, (n) => ({ n, v: 'x' })) }),
    ),
    apply(
      'keyed items again',
      `${widgets}/applied`,
      widget('applied', { keyed: list(60_000, (n) => ({ n: n + 30_000, v: 'y' })) }),
    ),
    apply('a set', `${widgets}/applied`, widget('applied', { set: list(60_000, (i) => `v${i}`) })),
    apply(
      'a set in another order',
      `${widgets}/applied`,
      widget('applied', { set: list(60_000, (i) => `v${60_000 - i}`) }),
    ),
    apply('by another', `${widgets}/applied?x=`, widget('applied', { set: list(60_000, (i) => `w${i}`) })),
    apply('the same item', `${widgets}/same`, widget('same', { keyed: list(100_000, () => ({ n: 1 })) }), {
      mayFail: true,
    }),
    apply(
      'unknown fields',
      `${widgets}/wrong`,
      widget(
        'wrong',
        members(
          120_000,
          (i) => `k${i}`,
          () => 1,
        ),
      ),
      { mayFail: true },
    ),
    apply(
      'wrong values',
      `${configMaps}/wrong`,
      configMap('wrong', {
        data: record(
          120_000,
          (i) => `k${i}`,
          () => 1,
        ),
      }),
      { mayFail: true },
    ),
    apply(
      'open',
      `${widgets}/open`,
      widget('open', {
        open: record(
          120_000,
          (i) => `k${i}`,
          () => [{}],
        ),
      }),
    ),
    apply('ports', `${services}/applied`, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'applied' },
      spec: { ports: list(50_000, (i) => ({ port: i + 1 })) },
    }),
    apply(
      'owners',
      `${configMaps}/owned`,
      configMap('owned', {
        metadata: {
          name: 'owned',
          ownerReferences: list(25_000, (i) => ({
            apiVersion: 'v1',
            kind: 'Pod',
            name: `p${i}`,
            uid: `u${i}`,
          })),
        },
      }),
    ),
    apply(
      'YAML keys',
      `${configMaps}/yaml`,
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata:\n${many(4_000, (i) => `  k${i}: v\n`).join('')}`,
    ),
  ];
}

function queries(): HeavyRequest[] {
  const get = (name: string, path: string, headers: Readonly<Record<string, string>> = {}): HeavyRequest => ({
    name,
    method: 'GET',
    path,
    headers,
  });
  const table = { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' };
  const selector = (text: string): string => `${configMaps}?labelSelector=${text}`;
  return [
    get('label selector: requirements', selector(many(60_000, (i) => `k${i}=v`).join(','))),
    get('label selector: values', selector(`k+in+(${many(120_000, (i) => `v${i}`).join(',')})`)),
    get('label selector: brackets', selector('('.repeat(900_000))),
    get('label selector: commas', selector(','.repeat(900_000))),
    get(
      'field selector: terms',
      `${configMaps}?fieldSelector=${many(40_000, () => 'metadata.name%3Da').join(',')}`,
    ),
    get('field selector: escapes', `${configMaps}?fieldSelector=metadata.name%3D${'%5C%5C'.repeat(150_000)}`),
    get('query: parameters', `${configMaps}?${many(300_000, () => 'a').join('&')}`),
    get('query: escapes', `${configMaps}?a=${'%41'.repeat(300_000)}`),
    get('query: limits', `${configMaps}?${many(100_000, (i) => `limit=${i}`).join('&')}`),
    get('path: slashes', `/openapi/v3${'/'.repeat(500_000)}x`),
    get('path: escapes', `/api/v1/namespaces/${'%2f'.repeat(300_000)}`),
    get('path: dots', `/api/v1/${'../'.repeat(300_000)}`),
    get('continue token', `${configMaps}?limit=1&continue=${'e30'.repeat(300_000)}`),
    get('accept: types', configMaps, { accept: 'application/json;as=Table;v=v2,'.repeat(30_000) }),
    get('accept: parameters', configMaps, { accept: `application/json${';a=b'.repeat(200_000)}` }),
    get('encodings', configMaps, { 'accept-encoding': 'gzip;q=0.1,'.repeat(80_000) }),
    get('content type', configMaps, { 'content-type': `application/json${';a=b'.repeat(200_000)}` }),
    get('JWT', configMaps, {
      authorization: `Bearer ${Buffer.from('{"alg":"RS256","kid":"x"}').toString('base64url')}.${Buffer.from(`{"a":${'['.repeat(500_000)}`).toString('base64url')}.AAAA`,
    }),
    get('JWT: dots', configMaps, { authorization: `Bearer ${'.'.repeat(900_000)}` }),
    get('impersonation', configMaps, { 'impersonate-user': 'a', 'impersonate-extra-a': 'x'.repeat(900_000) }),
    get('list: many objects', '/api/v1/namespaces/crowd/configmaps'),
    get('list: many objects, pretty', '/api/v1/namespaces/crowd/configmaps?pretty=true'),
    get('list: many objects as YAML', '/api/v1/namespaces/crowd/configmaps', { accept: 'application/yaml' }),
    get('list: many objects as protobuf', '/api/v1/namespaces/crowd/configmaps', {
      accept: 'application/vnd.kubernetes.protobuf',
    }),
    get('list: many objects as a table', '/api/v1/namespaces/crowd/configmaps', table),
    get('list: many objects as metadata', '/api/v1/namespaces/crowd/configmaps', {
      accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    }),
    get('list: many objects by label', '/api/v1/namespaces/crowd/configmaps?labelSelector=a%3Db'),
    get(
      'list: many objects by labels that no object has',
      `/api/v1/namespaces/crowd/configmaps?labelSelector=a+in+(${many(20_000, (i) => `v${i}`).join(',')})`,
    ),
    get(
      'list: many objects by many labels',
      `/api/v1/namespaces/crowd/configmaps?labelSelector=${many(20_000, () => 'a!=c').join(',')}`,
    ),
    get('list: many objects by name', '/api/v1/namespaces/crowd/configmaps?fieldSelector=metadata.name!%3Dx'),
    get('list: large object as YAML', configMaps, { accept: 'application/yaml' }),
    get('list: large object as a table', configMaps, table),
    get('list: large object, pretty', `${configMaps}?pretty=true`),
    get('list: large objects as protobuf', configMaps, { accept: 'application/vnd.kubernetes.protobuf' }),
    get('list: large custom objects as YAML', widgets, { accept: 'application/yaml' }),
    get('list: large custom objects as a table', widgets, table),
    { ...get('OpenAPI v2', '/openapi/v2'), afterChange: true },
    {
      ...get('OpenAPI v2 as protobuf', '/openapi/v2', {
        accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
      }),
      afterChange: true,
    },
    { ...get('OpenAPI v3', '/openapi/v3'), afterChange: true },
    { ...get('OpenAPI v3 of the group', '/openapi/v3/apis/heavy.example.com/v1'), afterChange: true },
    get('discovery', '/apis', {
      accept: 'application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io',
    }),
    get('discovery of the group', '/apis/heavy.example.com/v1'),
    get('definitions', definitions),
    get('definitions as a table', definitions, table),
    {
      name: 'deletion of many objects, tried',
      method: 'DELETE',
      path: '/api/v1/namespaces/crowd/configmaps?dryRun=All',
    },
    {
      name: 'deletion of many objects',
      method: 'DELETE',
      path: '/api/v1/namespaces/crowd/configmaps?labelSelector=a',
    },
    { name: 'deletion of a namespace', method: 'DELETE', path: '/api/v1/namespaces/crowd' },
  ];
}

/** Definitions of 100 kB each, half of them of one group. */
export function largeDefinitions(count: number): HeavyRequest[] {
  return many(count, (i) => {
    const group = i % 2 === 0 ? 'large.example.com' : `large${i}.example.com`;
    const schema = {
      type: 'object',
      properties: record(
        60,
        (n) => `p${n}`,
        () => ({ ...string, description: 'x'.repeat(1600) }),
      ),
    };
    return post(`definition ${i}`, definitions, {
      metadata: { name: `l${i}s.${group}` },
      spec: {
        ...{ group, scope: 'Cluster', names: { plural: `l${i}s`, kind: `L${i}` } },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    });
  });
}

/** Policies, and a write that one of them judges. */
function policies(): HeavyRequest[] {
  const root = '/apis/admissionregistration.k8s.io/v1';
  const policy = (name: string, resource: string, spec: object): HeavyRequest =>
    post(`policy: ${name}`, `${root}/validatingadmissionpolicies`, {
      metadata: { name: name.replaceAll(' ', '-') },
      spec: {
        failurePolicy: 'Ignore',
        matchConstraints: {
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], resources: [resource], operations: ['CREATE'] },
          ],
        },
        ...spec,
      },
    });
  const judged = 'podtemplates';
  return [
    policy('variables', 'none', {
      variables: many(8_000, (i) => ({
        name: `v${i}`,
        expression: i === 0 ? '1' : `variables.v${i - 1} + 1`,
      })),
      validations: [{ expression: 'true' }],
    }),
    policy('validations', 'none', {
      validations: many(8_000, (i) => ({ expression: `object.metadata.name != 'a${i}'` })),
    }),
    policy('a long expression', 'none', {
      validations: [{ expression: many(100_000, (i) => `object.a${i}`).join('||') }],
    }),
    policy('pairs', judged, {
      validations: many(30, (i) => ({
        expression: `object.metadata.annotations.all(k, object.metadata.annotations.all(l, k + '${i}' != l))`,
      })),
    }),
    post('policy: binding', `${root}/validatingadmissionpolicybindings`, {
      metadata: { name: 'pairs' },
      spec: { policyName: 'pairs', validationActions: ['Warn'] },
    }),
    post('policy: judged', `/api/v1/namespaces/default/${judged}`, {
      metadata: {
        generateName: 'a-',
        annotations: record(
          20_000,
          (i) => `k${i}`,
          () => 'v',
        ),
      },
      template: { spec: { containers: [{ name: 'c', image: 'i' }] } },
    }),
  ];
}

/** All of them, in the order in which they are to be sent: some are about what others made. */
export function heavyRequests(): HeavyRequest[] {
  return [
    ...heavyYaml(),
    ...bodiesOfJson(),
    ...definitionsOfKinds(),
    ...patches(),
    ...applies(),
    ...policies(),
    ...queries(),
  ];
}
