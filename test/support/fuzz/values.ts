import fc from 'fast-check';

/** Values that do not belong where they are put. */
const strange = fc.constantFrom<unknown>(
  ...[null, true, false, 0, -1, 1, 80, 65536, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, 0.5],
  ...[
    '',
    ' ',
    'a',
    'A',
    '-a',
    'a'.repeat(64),
    'a'.repeat(300),
    '__proto__',
    'constructor',
    '\u0000',
    '\ud800',
  ],
  ...[
    'é😀',
    '10.96.0.1',
    '10.96.5.5',
    '010.0.0.1',
    'fd00::1',
    '::ffff:1.2.3.4',
    '10.0.0.0/8',
    '1Gi',
    '1e-400',
  ],
  ...[
    'None',
    'LoadBalancer',
    'ExternalName',
    'ClusterIP',
    'UDP',
    'Local',
    'RequireDualStack',
    '50%',
    '/a/../b',
  ],
  ...['2020-01-01T00:00:00Z', '9999-99-99T99:99:99Z', '(a+)+$', '[', 'a\nb', 'kubernetes.io/x', '..', '%00'],
  ...[[], {}, [null], [[]], [{}], { a: 1 }, { '': '' }, ['a', 'a'], { metadata: null }],
);

/** Anything that JSON can say, strange things first. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: strange },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
);

/** A change at some place of an object: the numbers choose the way down. */
export interface Spoil {
  readonly path: readonly number[];
  readonly how: 'replace' | 'remove' | 'add' | 'repeat' | 'rename';
  readonly key: string;
  readonly value: unknown;
}

const metadataKeys = [
  ...['name', 'generateName', 'namespace', 'labels', 'annotations', 'finalizers', 'ownerReferences', 'uid'],
  ...['resourceVersion', 'generation', 'creationTimestamp', 'deletionTimestamp', 'managedFields', 'selfLink'],
];
const specKeys = [
  ...['spec', 'status', 'metadata', 'apiVersion', 'kind', 'clusterIP', 'clusterIPs', 'ipFamilies', 'type'],
  ...['ipFamilyPolicy', 'nodePort', 'healthCheckNodePort', 'externalName', 'loadBalancerSourceRanges'],
  ...['externalTrafficPolicy', 'allocateLoadBalancerNodePorts', 'loadBalancerClass', 'ports', 'selector'],
  ...['$patch', '$retainKeys', '$setElementOrder/ports', '$deleteFromPrimitiveList/finalizers'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'bogus', '', 'a.b/c', 'Spec', 'METADATA'],
];

export const spoil: fc.Arbitrary<Spoil> = fc.record({
  path: fc.array(fc.nat({ max: 11 }), { maxLength: 6 }),
  how: fc.constantFrom('replace', 'replace', 'remove', 'add', 'add', 'repeat', 'rename'),
  key: fc.constantFrom(...metadataKeys, ...specKeys),
  value: anyValue,
});

function isContainer(value: unknown): value is Record<string, unknown> | unknown[] {
  return typeof value === 'object' && value !== null;
}

function define(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Changes `root` itself. */
export function spoilt(root: unknown, { path, how, key, value: drawn }: Spoil): unknown {
  const value = structuredClone(drawn);
  if (!isContainer(root)) return value;
  let parent: Record<string, unknown> | unknown[] = root;
  let at = '';
  for (const [depth, step] of path.entries()) {
    const keys = Object.keys(parent);
    if (keys.length === 0) break;
    at = keys[step % keys.length] ?? '';
    const child: unknown = Object.getOwnPropertyDescriptor(parent, at)?.value;
    if (depth === path.length - 1 || !isContainer(child)) break;
    parent = child;
  }
  const last: unknown = at === '' ? undefined : Object.getOwnPropertyDescriptor(parent, at)?.value;
  if (how === 'add' || at === '') {
    const target = isContainer(last) ? last : parent;
    if (Array.isArray(target)) target.push(value);
    else define(target, key, value);
  } else if (how === 'replace') {
    define(parent, at, value);
  } else if (how === 'repeat') {
    if (Array.isArray(last))
      define(parent, at, [...(last as unknown[]), ...(structuredClone(last) as unknown[])]);
    else define(parent, at, [last, last]);
  } else if (Array.isArray(parent)) {
    parent.splice(Number(at), 1);
  } else {
    Reflect.deleteProperty(parent, at);
    if (how === 'rename') define(parent, key, last);
  }
  return root;
}

/** A change of the text of a body, after it was a whole one. */
export const garble: fc.Arbitrary<(bytes: Buffer) => Buffer> = fc.oneof(
  { weight: 50, arbitrary: fc.constant((bytes: Buffer) => bytes) },
  { weight: 1, arbitrary: fc.nat({ max: 400 }).map((cut) => (bytes: Buffer) => bytes.subarray(0, cut)) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.nat({ max: 400 }), fc.uint8Array({ minLength: 1, maxLength: 3 })).map(
      ([at, insert]) =>
        (bytes: Buffer) =>
          Buffer.concat([bytes.subarray(0, at), insert, bytes.subarray(at)]),
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        ...[
          '',
          ' ',
          'null',
          '[]',
          '{}',
          '"a"',
          '0',
          'true',
          '{',
          '[1,',
          '{"a":1}{"b":2}',
          '\ufeff{}',
          '---\na: b\n',
        ],
        ...['{"metadata":{"name":"a","name":"b"},"metadata":{}}', '{"__proto__":{"x":1},"constructor":{}}'],
        ...[
          '{"kind":"Service","kind":"Pod","apiVersion":"v1"}',
          '{"spec":{"replicas":1e400}}',
          '{"a":\u0001}',
        ],
        ...[
          '{"spec":{"ports":[{"port":80.0},{"port":8e1},{"port":0x50}]}}',
          '{"metadata":{"name":"\\ud800"}}',
        ],
        ...['[{"op":"copy","from":"","path":"/a"}]', '[{"op":"add","path":"/metadata/labels/-","value":1}]'],
        ...['a: &a [*a]', 'a: &x {b: &y {c: [*x, *y]}}', '%YAML 9\n---\na', 'a: !!js/function x', '? a\n: b'],
      )
      .map((text) => () => Buffer.from(text)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom('{"a":', '[', '{"metadata":{"labels":', '- '),
        fc.integer({ min: 1, max: 20_000 }),
      )
      .map(
        ([open, depth]) =>
          () =>
            Buffer.from(open.repeat(depth)),
      ),
  },
  {
    weight: 1,
    arbitrary: fc
      .uint8Array({ maxLength: 60 })
      .map((bytes) => () => Buffer.concat([Buffer.from('k8s\0'), bytes])),
  },
);
