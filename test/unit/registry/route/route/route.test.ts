import { describe, expect, it, test } from 'vitest';
import type { KubeObject } from '../../../../../src/objects/meta.ts';
import { recordAt } from '../../../../../src/objects/json.ts';
import type { ResourceDefinition, StrategyContext } from '../../../../../src/registry/generic/strategy.ts';
import type { ReviewAccess, RouteAccess } from '../../../../../src/registry/route/custom-host.ts';
import { routeStrategy } from '../../../../../src/registry/route/strategy.ts';
import { contextOf, create, type Decision, definitionOf, memberOf, update } from '../../decide.ts';

const user = { name: 'ann', uid: 'u', groups: [], extra: {} };
const to = { name: 'web' };

/** Routes whose users may do what is named, as `verb resource/subresource`; all other things not. */
function routesWith(...allowed: string[]): ResourceDefinition {
  const review: ReviewAccess = (asking, { verb, resource, subresource }: RouteAccess) =>
    allowed.includes(`${asking.name} ${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`);
  return { ...definitionOf('Route'), strategy: routeStrategy(review) };
}

const router = 'system:serviceaccount:openshift-ingress:router';
const routerReads = ['get', 'watch', 'list'].map((verb) => `${router} ${verb} secrets`);
const custom = (verb: string): string => `ann ${verb} routes/custom-host`;

function by(secrets: readonly KubeObject[] = []): StrategyContext {
  const get = (_group: string, plural: string, _namespace: string, name: string) =>
    plural === 'secrets' ? secrets.find(({ metadata }) => metadata.name === name) : undefined;
  return { ...contextOf(), user, cluster: { list: () => [], get } };
}

const free = definitionOf('Route');
const created = (spec: object, metadata: object = {}): Decision =>
  create(free, { metadata: { name: 'a', ...metadata }, spec: { to, ...spec } });
const specOf = ({ object }: Decision): Record<string, unknown> => recordAt(object, 'spec');

describe('defaults', () => {
  it('names Services, weighs 100, serves one host, and clears the status', () => {
    const made = create(free, {
      spec: { host: 'x.test', to, alternateBackends: [{ name: 'b', weight: 7 }] },
      status: { ingress: [{ host: 'x.test' }] },
    });
    expect(made.errors).toEqual([]);
    expect(specOf(made)).toEqual({
      host: 'x.test',
      to: { kind: 'Service', name: 'web', weight: 100 },
      alternateBackends: [{ kind: 'Service', name: 'b', weight: 7 }],
      wildcardPolicy: 'None',
    });
    expect(recordAt(made.object, 'status')).toEqual({});
    expect(made.stored.metadata.generation).toBe(1);
  });

  it.each([
    [{}, 'edge'],
    [{ termination: 'Edge' }, 'edge'],
    [{ termination: 'Reencrypt' }, 'reencrypt'],
    [{ termination: 'Passthrough' }, 'passthrough'],
    [{ termination: 'EDGE' }, 'EDGE'],
    [{ destinationCACertificate: 'x' }, ''],
  ])('of the TLS %j the termination is %j', (tls, termination) => {
    expect(memberOf(specOf(created({ tls })), 'tls')['termination']).toBe(termination);
  });

  it('a router that says no policy serves one host', () => {
    const { stored } = created({ host: 'x.test' });
    const written = update(free, stored, { spec: {}, status: { ingress: [{ routerName: 'r' }] } }, 'status');
    expect(recordAt(written.object, 'status')).toEqual({
      ingress: [{ routerName: 'r', wildcardPolicy: 'None' }],
    });
  });
});

describe('hosts', () => {
  const generated = 'openshift.io/host.generated';

  it('are made of name and namespace, with dashes for dots, and marked', () => {
    const { stored, errors } = created({}, { name: 'a.b' });
    expect(errors).toEqual([]);
    expect(memberOf(stored, 'spec')['host']).toBe('a-b-ns.router.default.svc.cluster.local');
    expect(stored.metadata.annotations).toEqual({ [generated]: 'true' });
  });

  it.each([
    ['a host of its own', { host: 'x.test' }, 'x.test'],
    ['a subdomain', { subdomain: 'x' }, undefined],
  ])('are not made beside %s', (_, spec, host) => {
    const { stored } = created(spec);
    expect(memberOf(stored, 'spec')['host']).toBe(host);
    expect(stored.metadata.annotations).toBeUndefined();
  });

  it('are needed for wildcards, and too long where the name is', () => {
    expect(created({ wildcardPolicy: 'Subdomain' }).errors).toEqual([
      'spec.wildcardPolicy: Invalid value: "Subdomain": host name not specified for wildcard policy',
    ]);
    expect(created({}, { name: 'a'.repeat(61) }).errors).toEqual([
      `spec.host: Invalid value: "${'a'.repeat(61)}-ns.router.default.svc.cluster.local": must be no more than 63 characters`,
    ]);
  });

  it('warn where a subdomain stands beside them', () => {
    expect(created({ host: 'x.test', subdomain: 'x' }).warnings).toEqual([
      'spec.host is set; spec.subdomain may be ignored',
    ]);
  });

  it('are kept by an update that names none', () => {
    const { stored } = created({});
    const next = update(free, stored, { spec: { to: { name: 'other' } } });
    expect(next.errors).toEqual([]);
    expect(memberOf(next.stored, 'spec')['host']).toBe('a-ns.router.default.svc.cluster.local');
  });

  it('are not made by an update of a Route with a subdomain', () => {
    const { stored } = created({ subdomain: 'x' });
    const next = update(free, stored, { spec: { subdomain: 'x', to: { name: 'other' } } });
    expect(next.errors).toEqual([]);
    expect(memberOf(next.stored, 'spec')).not.toHaveProperty('host');
  });

  const long = `${'l'.repeat(64)}.test`;
  const allowed = { annotations: { 'route.openshift.io/allow-non-dns-compliant-host': 'true' } };

  it.each([
    ['test', {}, 0],
    ['1.test.com.2', {}, 0],
    [`${'l'.repeat(63)}.test`, {}, 0],
    [`${'l'.repeat(49)}.`.repeat(5) + 'tes', {}, 0],
    [`${'l'.repeat(49)}.`.repeat(5) + 'test', {}, 1],
    [long, {}, 1],
    [long, allowed, 0],
    ['**', {}, 2],
    ['**', allowed, 1],
    ['abc.test.com.', {}, 2],
    ['abc.*.test.com', {}, 2],
    ['abc.%!&#@$^.test.com', allowed, 1],
    ['A.test.com', {}, 2],
    ['abc.test.com.-', {}, 2],
    ['münchen.test', {}, 2],
  ])('%s with %j has %i faults', (host, metadata, faults) => {
    expect(created({ host }, metadata).errors).toHaveLength(faults);
  });

  it('are checked label by label on an update only where another one conforms no more', () => {
    const odd = created({ host: long }, allowed).stored;
    delete odd.metadata.annotations;
    const odder = `${'m'.repeat(64)}.test`;
    expect(update(free, odd, { spec: { host: long, path: '/x', to } }).errors).toEqual([]);
    expect(update(free, odd, { spec: { host: odder, to } }).errors).toEqual([]);
    expect(update(free, odd, { spec: { host: 'x.test', to } }).errors).toEqual([]);
    const plain = created({ host: 'x.test' }).stored;
    expect(update(free, plain, { spec: { host: long, to } }).errors).toHaveLength(1);
    const marked = { metadata: { ...plain.metadata, ...allowed }, spec: { host: long, to } };
    expect(update(free, plain, marked).errors).toEqual([]);
  });

  it.each([
    ['web', []],
    ['a.b', []],
    [`${'l'.repeat(49)}.`.repeat(5) + 'test', ['must be no more than 253 characters']],
    ['a..b', ['a lowercase RFC 1123 label']],
    ['A.B', ['a lowercase RFC 1123 label', 'a lowercase RFC 1123 label']],
  ])('of the subdomain %s: %j', (subdomain, messages) => {
    const { errors } = created({ subdomain });
    expect(errors).toHaveLength(messages.length);
    messages.forEach((message, i) => expect(errors[i]).toContain(message));
  });
});

describe('who may choose hosts and certificates', () => {
  const make = (spec: object, ...rights: string[]) =>
    create(routesWith(...rights), { spec: { to, ...spec } }, by()).errors;
  const hostRight = 'you do not have permission to set the host field of the route';
  const certificateRight = 'you do not have permission to set certificate fields on the route';

  it.each<[string, object, string[], string[]]>([
    ['no host', {}, [], []],
    ['TLS without certificates', { tls: { termination: 'edge' } }, [], []],
    ['a host', { host: 'x.test' }, [], [`spec.host: Forbidden: ${hostRight}`]],
    ['a host', { host: 'x.test' }, [custom('create')], []],
    ['a host', { host: 'x.test' }, [custom('update')], [`spec.host: Forbidden: ${hostRight}`]],
    ['a key', { tls: { key: 'k' } }, [], [`spec.tls: Forbidden: ${certificateRight}`]],
    ['an authority', { tls: { caCertificate: 'k' } }, [custom('create')], []],
    ['an authority', { tls: { caCertificate: 'k' } }, [], [`spec.tls: Forbidden: ${certificateRight}`]],
    ['a certificate', { tls: { certificate: 'k' } }, [], [`spec.tls: Forbidden: ${certificateRight}`]],
    [
      'the authority of the Pods',
      { tls: { termination: 'reencrypt', destinationCACertificate: 'k' } },
      [],
      [`spec.tls: Forbidden: ${certificateRight}`],
    ],
    ['both', { host: 'x.test', tls: { key: 'k' } }, [], [`spec.host: Forbidden: ${hostRight}`]],
  ])('create with %s: %j, by one who may %j', (_, spec, rights, errors) => {
    expect(make(spec, ...rights)).toEqual(errors);
  });

  const change = (before: object, after: object, ...rights: string[]) => {
    const { stored } = created({ host: 'x.test', ...before });
    return update(routesWith(...rights), stored, { spec: { to, host: 'x.test', ...after } }, undefined, by())
      .errors;
  };
  const pem = (name: string) => ({ termination: 'edge', certificate: name, key: name });
  const both = [
    `spec.tls.certificate: Invalid value: "b": ${certificateRight}`,
    `spec.tls.key: Invalid value: "b": ${certificateRight}`,
  ];

  it.each<[string, object, object, string[], string[]]>([
    ['path', {}, { path: '/x' }, [], []],
    [
      'host',
      {},
      { host: 'y.test' },
      [custom('create')],
      [`spec.host: Invalid value: "y.test": ${hostRight}`],
    ],
    ['host', {}, { host: 'y.test' }, [custom('update')], []],
    [
      'subdomain',
      {},
      { subdomain: 'y' },
      [custom('create')],
      [
        'spec.subdomain: Invalid value: "y": you do not have permission to set the subdomain field of the route',
      ],
    ],
    ['subdomain', {}, { subdomain: 'y' }, [custom('update')], []],
    ['certificate', { tls: pem('a') }, { tls: pem('b') }, [], both],
    ['certificate', { tls: pem('a') }, { tls: pem('b') }, [custom('create')], []],
    ['certificate', { tls: pem('a') }, { tls: pem('b') }, [custom('update')], []],
    ['the same certificate', { tls: pem('a') }, { tls: pem('a') }, [], []],
    ['certificate away', { tls: pem('a') }, { tls: { termination: 'edge' } }, [], []],
    ['TLS away', { tls: pem('a') }, {}, [], []],
    ['TLS without certificates', {}, { tls: { termination: 'edge' } }, [], []],
  ])('update of %s: %j to %j, by one who may %j', (_, before, after, rights, errors) => {
    expect(change(before, after, ...rights)).toEqual(errors);
  });

  it.each<[object, object, string[]]>([
    [{ caCertificate: 'a' }, { caCertificate: 'b' }, ['caCertificate']],
    [{ certificate: 'a' }, { certificate: 'b' }, ['certificate']],
    [{ key: 'a' }, { key: 'b' }, ['key']],
    [{ key: 'a' }, { key: 'a' }, []],
    [{ externalCertificate: { name: 'a' } }, { certificate: 'b' }, ['certificate']],
    [{ certificate: 'a' }, { externalCertificate: { name: 'b' } }, ['certificate']],
    [{ externalCertificate: { name: 'a' } }, { externalCertificate: { name: 'b' } }, ['externalCertificate']],
    [{ externalCertificate: { name: 'a' } }, { externalCertificate: { name: 'a' } }, []],
  ])('certificates %j to %j: errors at %j', (before, after, fields) => {
    const at = fields.map((field) => `spec.tls.${field}: Invalid value: `);
    const errors = change({ tls: before }, { tls: after }).filter((error) =>
      error.endsWith(certificateRight),
    );
    expect(errors.map((error, i) => error.slice(0, at[i]?.length))).toEqual(at);
  });

  it.each([
    [{ destinationCACertificate: 'a' }, { destinationCACertificate: 'b' }, 1],
    [{ destinationCACertificate: 'a' }, { destinationCACertificate: 'a' }, 0],
    [{ certificate: 'a' }, {}, 0],
  ])('of reencrypt, %j to %j: %i errors', (before, after, count) => {
    const termination = 'reencrypt';
    expect(change({ tls: { termination, ...before } }, { tls: { termination, ...after } })).toHaveLength(
      count,
    );
  });

  it('TLS with a certificate needs it too', () => {
    const [error = ''] = change({}, { tls: pem('a') });
    expect(error).toMatch(
      /^spec\.tls: Invalid value: .*you do not have permission to set certificate fields/,
    );
    expect(change({}, { tls: pem('a') }, custom('create'))).toEqual([]);
  });
});

describe('Secrets with certificates', () => {
  const secret = (type: string): KubeObject & { type: string } => ({ metadata: { name: 'own' }, type });
  const tls = { termination: 'edge', externalCertificate: { name: 'own' } };
  const field = 'spec.tls.externalCertificate';
  const all = [custom('create'), custom('update'), ...routerReads];
  const make = (secrets: readonly KubeObject[], rights: readonly string[], more: object = {}) =>
    create(routesWith(...rights), { spec: { to, tls: { ...tls, ...more } } }, by(secrets)).errors;

  it.each(['edge', 'reencrypt'])('are taken for %s', (termination) => {
    expect(make([secret('kubernetes.io/tls')], all, { termination })).toEqual([]);
  });

  it('must be there and of their type', () => {
    expect(make([], all)).toEqual([`${field}: Not found: "secrets \\"own\\" not found"`]);
    expect(make([secret('Opaque')], all)).toEqual([
      `${field}: Invalid value: "own": secret of type 'kubernetes/tls' required`,
    ]);
  });

  it('must be readable by the router, and the user must be one who may choose certificates', () => {
    expect(make([secret('kubernetes.io/tls')], [custom('create'), custom('update')])).toEqual([
      `${field}: Forbidden: router serviceaccount does not have permission to get this secret`,
      `${field}: Forbidden: router serviceaccount does not have permission to watch this secret`,
      `${field}: Forbidden: router serviceaccount does not have permission to list this secret`,
    ]);
    expect(make([secret('kubernetes.io/tls')], [custom('create'), ...routerReads])).toEqual([
      `${field}: Forbidden: user does not have update permission on custom-host`,
    ]);
  });

  it('always count as changed', () => {
    const secrets = [secret('kubernetes.io/tls')];
    const { stored } = create(routesWith(...all), { spec: { to, tls } }, by(secrets));
    const next = { spec: { to: { name: 'other' }, tls } };
    const errors = (...rights: string[]) =>
      update(routesWith(...rights, ...routerReads), stored, next, undefined, by(secrets)).errors;
    expect(errors(custom('create'), custom('update'))).toEqual([]);
    expect(errors(custom('create'))).toEqual([
      `${field}: Forbidden: user does not have update permission on custom-host`,
    ]);
  });

  it('exclude certificates in the Route, and passthrough', () => {
    expect(make([secret('kubernetes.io/tls')], all, { certificate: 'pem' })).toEqual([
      `${field}: Invalid value: "own": cannot specify both tls.certificate and tls.externalCertificate`,
    ]);
    expect(make([secret('kubernetes.io/tls')], all, { termination: 'passthrough' })).toEqual([
      `${field}: Invalid value: "own": passthrough termination does not support certificates`,
    ]);
  });
});

describe('TLS', () => {
  const redacted = 'passthrough termination does not support certificates';
  const values = 'invalid value for InsecureEdgeTerminationPolicy option, acceptable values are';

  it.each<[object, string[]]>([
    [{ termination: 'edge', certificate: 'c', key: 'k', caCertificate: 'a' }, []],
    [{ termination: 'reencrypt', destinationCACertificate: 'd' }, []],
    [{ termination: 'passthrough' }, []],
    [
      { termination: 'edge', destinationCACertificate: 'd' },
      [
        'spec.tls.destinationCACertificate: Invalid value: "redacted destination ca certificate data": edge termination does not support destination certificates',
      ],
    ],
    [
      {
        termination: 'passthrough',
        certificate: 'c',
        key: 'k',
        caCertificate: 'a',
        destinationCACertificate: 'd',
      },
      [
        `spec.tls.certificate: Invalid value: "redacted certificate data": ${redacted}`,
        `spec.tls.key: Invalid value: "redacted key data": ${redacted}`,
        `spec.tls.caCertificate: Invalid value: "redacted ca certificate data": ${redacted}`,
        `spec.tls.destinationCACertificate: Invalid value: "redacted destination ca certificate data": ${redacted}`,
      ],
    ],
    [
      { termination: 'odd' },
      [
        'spec.tls.termination: Unsupported value: "odd": supported values: "edge", "passthrough", "reencrypt"',
      ],
    ],
    [
      { destinationCACertificate: 'd' },
      ['spec.tls.termination: Unsupported value: "": supported values: "edge", "passthrough", "reencrypt"'],
    ],
  ])('%j', (tls, errors) => {
    expect(created({ tls }).errors).toEqual(errors);
  });

  it.each([
    ['edge', ['', 'None', 'Allow', 'Redirect'], `${values} None, Allow, Redirect, or empty`],
    ['reencrypt', ['', 'None', 'Allow', 'Redirect'], `${values} None, Allow, Redirect, or empty`],
    ['passthrough', ['', 'None', 'Redirect'], `${values} None, Redirect, or empty`],
  ])('%s takes the insecure policies %j', (termination, taken, message) => {
    for (const policy of ['', 'None', 'Allow', 'Redirect', 'allow', 'support', 'Disabled']) {
      const { errors } = created({ tls: { termination, insecureEdgeTerminationPolicy: policy } });
      const wrong = [`spec.tls.insecureEdgeTerminationPolicy: Invalid value: "${policy}": ${message}`];
      expect(errors).toEqual(taken.includes(policy) ? [] : wrong);
    }
  });
});

describe('paths, backends and ports', () => {
  it.each<[object, string[]]>([
    [{ path: '/x' }, []],
    [{ path: 'x' }, ['spec.path: Invalid value: "x": path must begin with /']],
    [{ path: '/a#b' }, ['spec.path: Invalid value: "/a#b": cannot contain # or spaces']],
    [{ path: '/a b' }, ['spec.path: Invalid value: "/a b": cannot contain # or spaces']],
    [
      { path: '/x', tls: { termination: 'passthrough' } },
      ['spec.path: Invalid value: "/x": passthrough termination does not support paths'],
    ],
    [{ to: { name: '' } }, ['spec.to.name: Required value']],
    [{ to: { name: 'a', kind: 'Pod' } }, ['spec.to.kind: Invalid value: "Pod": must reference a Service']],
    [{ to: { name: 'a', weight: 0 } }, []],
    [{ to: { name: 'a', weight: 256 } }, []],
    [
      { to: { name: 'a', weight: 257 } },
      ['spec.to.weight: Invalid value: 257: weight must be an integer between 0 and 256'],
    ],
    [
      { alternateBackends: [{ name: 'a', weight: -1 }, { name: '' }] },
      [
        'spec.alternateBackends[0].weight: Invalid value: -1: weight must be an integer between 0 and 256',
        'spec.alternateBackends[1].name: Required value',
      ],
    ],
    [{ alternateBackends: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] }, []],
    [
      { alternateBackends: [{ name: 'a' }, { name: 'b' }, { name: 'c' }, { name: 'd' }] },
      ['spec.alternateBackends: Required value: cannot specify more than 3 alternate backends'],
    ],
    [{ port: { targetPort: 'http' } }, []],
    [{ port: { targetPort: 8080 } }, []],
    [{ port: { targetPort: 0 } }, ['spec.port.targetPort: Required value']],
    [{ port: { targetPort: '' } }, ['spec.port.targetPort: Required value']],
    [
      { wildcardPolicy: 'All', host: 'x.test' },
      ['spec.wildcardPolicy: Unsupported value: "All": supported values: "None", "Subdomain"'],
    ],
  ])('%j', (spec, errors) => {
    expect(created(spec).errors).toEqual(errors);
  });

  it('characters of a path that stays are not checked again', () => {
    const { stored } = created({ host: 'x.test', path: '/x' });
    Object.assign(memberOf(stored, 'spec'), { path: '/a#b' });
    const next = (path: string) => update(free, stored, { spec: { host: 'x.test', to, path } }).errors;
    expect(next('/a#b')).toEqual([]);
    expect(next('/a#c')).toEqual(['spec.path: Invalid value: "/a#c": cannot contain # or spaces']);
  });
});

describe('header actions', () => {
  const set = (name: string, value: string) => ({ name, action: { type: 'Set', set: { value } } });
  const remove = (name: string) => ({ name, action: { type: 'Delete' } });
  const errorsOf = (list: 'request' | 'response', ...actions: object[]) =>
    created({ httpHeaders: { actions: { [list]: actions } } }).errors;

  it.each([
    ['request', 'text'],
    ['request', '%[req.hdr(X-Target),lower]'],
    ['response', '%[res.hdr(X-Target),lower,base64]'],
    ['request', '%{+Q}[ssl_c_der,base64]'],
    ['request', 'a%%b'],
    ['request', 'Grüße'],
    ['response', '%%%%'],
    ['request', '%%[req.hdr(Host)] %[req.hdr(Host)]'],
    ['request', '%[req.hdr(Host)] if ${X'],
    ['request', '{+Q}[ssl_c_der,base64]'],
    ['request', '  a\\ "b "  '],
  ] as const)('of a %s may set %s', (list, value) => {
    expect(errorsOf(list, set('X-A', value))).toEqual([]);
  });

  it.each([
    ['request', '%[res.hdr(X-Target)]'],
    ['response', '%[req.hdr(X-Target)]'],
    ['request', '%[src]'],
    ['request', '%[req.hdr(X),upper]'],
    ['request', '%+Q[ssl_c_der,base64]'],
    ['request', '%[req.hdr(Host),lower'],
    ['request', '%[ssl_c_der,base_64]'],
    ['response', '%[res.hdr(server),tolower]'],
    ['request', '100%'],
    ['request', '%%%'],
    ['request', '%[]'],
    ['request', '%[%[]]'],
    ['request', '%{+Q}a'],
    ['request', '%{{Q}[req.hdr(Host)]'],
    ['request', '%{Q[req.hdr(Host)]'],
    ['request', '%{req.hdr(Host)}'],
    ['request', '%[req.hdr()]'],
    ['request', '%[req.hdr(%)]'],
    ['request', '%[req.hdr(%{+Q}Host)]'],
    ['request', '%[req.hdr(Host)'],
    ['request', '%[req.hdr(Host),,lower]'],
    ['request', '%[req.hdr(Host),debug()]'],
    ['request', '%[ssl_c_der(Host)]'],
    ['response', '%[env(X)]'],
    ['response', '%T'],
    ['response', '%ci:%cp'],
    ['response', '\ta'],
    ['response', 'a\r\n'],
    ['request', 'a\nb'],
    ['request', 'a\u007fb'],
  ] as const)('of a %s may not set %j', (list, value) => {
    const [error = '', ...more] = errorsOf(list, set('X-A', value));
    expect(error).toContain(`spec.httpHeaders.actions.${list}[0].action.set.value: Invalid value:`);
    expect(error).toContain('Converters allowed are lower, base64.');
    expect(more).toEqual([]);
  });

  it.each(['Strict-Transport-Security', 'proxy', 'Cookie', 'SET-COOKIE'])('may not touch %s', (name) => {
    expect(errorsOf('response', remove(name))).toEqual([
      'spec.httpHeaders.actions.response[0].name: Forbidden: the following headers may not be modified using this API: strict-transport-security, proxy, cookie, set-cookie',
    ]);
  });

  const at = 'spec.httpHeaders.actions.request[0]';
  const setRule = `${at}.action.set: Required value: set is required when type is Set, and forbidden otherwise`;

  it.each<[object, string[]]>([
    [remove(''), [`${at}.name: Required value`]],
    [remove('n'.repeat(255)), []],
    [
      remove('n'.repeat(256)),
      [`${at}.name: Invalid value: "${'n'.repeat(256)}": name exceeds the maximum length, which is 255`],
    ],
    [
      remove('a b'),
      [
        `${at}.name: Invalid value: "a b": name must be a valid HTTP header name as defined in RFC 2616 section 4.2`,
      ],
    ],
    [{ name: 'x', action: { type: 'Set' } }, [setRule]],
    [{ name: 'x', action: { type: 'Delete', set: { value: 'v' } } }, [setRule]],
    [
      { name: 'x', action: { type: 'Add' } },
      [`${at}.action.type: Invalid value: "Add": type must be "Set" or "Delete"`],
    ],
    [set('x', ''), [`${at}.action.set.value: Required value`]],
    [set('x', 'v'.repeat(16_384)), []],
  ])('%j', (action, errors) => {
    expect(errorsOf('request', action)).toEqual(errors);
  });

  it('are at most 20, and one for a name', () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => remove(`x-${i}`));
    expect(errorsOf('response', ...many(20))).toEqual([]);
    const [error = '', ...more] = errorsOf('response', ...many(21));
    expect(error).toContain("response headers list can't exceed 20 items");
    expect(more).toEqual([]);
    expect(errorsOf('response', set('x', '1'), remove('x'))).toEqual([
      'spec.httpHeaders.actions.response[1].name: Duplicate value: "x"',
    ]);
  });

  it('are not for passthrough', () => {
    const spec = {
      tls: { termination: 'passthrough' },
      httpHeaders: { actions: { request: [remove('x')] } },
    };
    expect(created(spec).errors).toEqual([
      'spec.tls.termination: Invalid value: "passthrough": only edge and re-encrypt routes are supported for providing customized headers.',
    ]);
  });
});

describe('changes', () => {
  const { stored } = created({ host: 'x.test' });

  it('of the spec raise the generation, others do not', () => {
    const same = update(free, stored, { spec: { host: 'x.test', to } });
    expect(same.stored.metadata.generation).toBe(1);
    const labelled = update(free, stored, {
      metadata: { ...stored.metadata, labels: { a: 'b' } },
      spec: { host: 'x.test', to },
    });
    expect(labelled.stored.metadata.generation).toBe(1);
    const other = update(free, stored, { spec: { host: 'x.test', to: { name: 'b' } } });
    expect(other.stored.metadata.generation).toBe(2);
    const admitted = update(free, stored, { spec: {}, status: { ingress: [{ host: 'x.test' }] } }, 'status');
    expect(admitted.stored.metadata.generation).toBe(1);
    expect(memberOf(admitted.stored, 'spec')).toEqual(memberOf(stored, 'spec'));
  });

  it('of the wildcard policy are refused, and the status is kept', () => {
    const { errors } = update(free, stored, { spec: { host: 'x.test', to, wildcardPolicy: 'Subdomain' } });
    expect(errors).toEqual(['spec.wildcardPolicy: Invalid value: "Subdomain": field is immutable']);
    const next = update(free, stored, { spec: { host: 'x.test', to }, status: { ingress: [{ host: 'y' }] } });
    expect(memberOf(next.stored, 'status')).toEqual({});
  });
});

test('the strategy is that of OpenShift: no create by update, no update without a version, three field labels', () => {
  const { strategy } = free;
  expect(strategy).toMatchObject({ allowCreateOnUpdate: false, allowUnconditionalUpdate: false });
  expect(strategy.fields?.(created({ host: 'x.test', path: '/p' }).stored)).toEqual({
    'spec.host': 'x.test',
    'spec.path': '/p',
    'spec.to.name': 'web',
  });
});
