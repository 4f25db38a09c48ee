import { describe, expect, it } from 'vitest';
import { setDefaultClass } from '../../../../../src/registry/networking/ingress.ts';
import { contextOf, create, definitionOf, update } from '../../decide.ts';

const ingresses = definitionOf('Ingress');
const backend = { service: { name: 'a', port: { number: 80 } } };
const spec = { defaultBackend: backend };

function ingressClass(name: string, creationTimestamp: string, isDefault = 'true') {
  const annotations = { 'ingressclass.kubernetes.io/is-default-class': isDefault };
  return { metadata: { name, creationTimestamp, annotations } };
}

describe('the default class', () => {
  const older = '2020-01-01T00:00:00Z';
  const newer = '2021-01-01T00:00:00Z';

  it.each([
    ['no class', [], undefined],
    ['no default', [ingressClass('a', newer, 'false')], undefined],
    ['the newest', [ingressClass('a', older), ingressClass('b', newer)], 'b'],
    ['the first by name of equals', [ingressClass('b', newer), ingressClass('a', newer)], 'a'],
  ])('is %s', (_, classes, name) => {
    const ingress = { metadata: {}, spec: {} };
    setDefaultClass(ingress, contextOf(classes).cluster);
    expect(ingress.spec).toEqual(name === undefined ? {} : { ingressClassName: name });
  });

  it.each([
    { metadata: {}, spec: { ingressClassName: 'x' } },
    { metadata: { annotations: { 'kubernetes.io/ingress.class': 'x' } }, spec: {} },
  ])('is not filled in beside the class or the old annotation of %j', (ingress) => {
    const filled = structuredClone(ingress);
    setDefaultClass(filled, contextOf([ingressClass('a', newer)]).cluster);
    expect(filled).toEqual(ingress);
  });

  it('named by the old annotation is warned of', () => {
    const metadata = { name: 'a', annotations: { 'kubernetes.io/ingress.class': 'x' } };
    expect(create(ingresses, { metadata, spec }).warnings).toEqual([
      `annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`,
    ]);
  });
});

function path(item: object): object {
  return { rules: [{ http: { paths: [{ backend, ...item }] } }] };
}
const at = 'spec.rules[0].http.paths[0]';

describe('an Ingress', () => {
  it.each([
    [{}, ['spec: Invalid value: null: either `defaultBackend` or `rules` must be specified']],
    [{ rules: [] }, ['spec: Invalid value: []: either `defaultBackend` or `rules` must be specified']],
    [path({ path: '/' }), [`${at}.pathType: Required value: pathType must be specified`]],
    [path({ path: 'x', pathType: 'Exact' }), [`${at}.path: Invalid value: "x": must be an absolute path`]],
    [
      path({ path: '/a//b/..', pathType: 'Prefix' }),
      [
        `${at}.path: Invalid value: "/a//b/..": must not contain '//'`,
        `${at}.path: Invalid value: "/a//b/..": cannot end with '/..'`,
      ],
    ],
    [{ rules: [{ http: { paths: [] } }] }, ['spec.rules[0].http.paths: Required value']],
    [
      { rules: [{ host: '10.0.0.1' }] },
      ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'],
    ],
    [
      { defaultBackend: { service: { name: 'a' } } },
      ['spec.defaultBackend: Required value: port name or number is required'],
    ],
    [
      { defaultBackend: { service: { name: 'a', port: { name: 'http', number: 80 } } } },
      ['spec.defaultBackend: Invalid value: "": cannot set both port name & port number'],
    ],
    [
      { defaultBackend: {} },
      ['spec.defaultBackend: Invalid value: "": resource or service backend is required'],
    ],
    [
      { defaultBackend: { resource: {} } },
      [
        'spec.defaultBackend.resource.kind: Required value',
        'spec.defaultBackend.resource.name: Required value: name is required',
      ],
    ],
  ])('%j is refused', (given, errors) => {
    expect(create(ingresses, { spec: given }).errors).toEqual(errors);
  });

  it('takes its status through /status only', () => {
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
    const old = create(ingresses, { spec, status }).stored;
    expect(old).toMatchObject({ status: {} });
    expect(update(ingresses, old, { spec, status }).object).toMatchObject({ status: { loadBalancer: {} } });
    const written = update(ingresses, old, { status }, 'status');
    expect(written.object).toMatchObject({ metadata: { generation: 1 }, spec, status });
    const bad = { loadBalancer: { ingress: [{ ip: 'x' }, { hostname: '10.0.0.1' }] } };
    expect(update(ingresses, old, { status: bad }, 'status').errors).toEqual([
      'status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'status.loadBalancer.ingress[1].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address',
    ]);
  });
});
