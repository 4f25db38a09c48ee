/** Rules in the manner of those that Gateway API, Cilium, Karpenter and Crossplane ship: each must compile and decide. */
import type { JSONSchemaProps } from '../../../../../src/objects/types/apiextensions.generated.ts';
import { expect, test } from 'vitest';
import { validateRules } from '../../../../../src/registry/apiextensions/rules/validate-rules.ts';

const text: JSONSchemaProps = { type: 'string' };
const number: JSONSchemaProps = { type: 'integer' };

function object(properties: Readonly<Record<string, JSONSchemaProps>>): JSONSchemaProps {
  return { type: 'object', properties };
}

function list(items: JSONSchemaProps): JSONSchemaProps {
  return { type: 'array', items };
}

const path = object({ type: text, value: text, replacePrefixMatch: text });
const filter = object({
  type: text,
  requestRedirect: object({ path }),
  urlRewrite: object({ path }),
  cors: object({ allowOrigins: list(text) }),
});
const reference = object({
  group: text,
  kind: text,
  name: text,
  namespace: text,
  port: number,
  sectionName: text,
});
const schema = object({
  name: text,
  filters: list(filter),
  backendRefs: list(reference),
  parentRefs: list(reference),
  matches: list(object({ path })),
  timeouts: object({ request: { type: 'string', format: 'duration' }, backendRequest: text }),
  listeners: list(
    object({
      name: text,
      port: number,
      protocol: text,
      hostname: text,
      tls: object({
        mode: text,
        certificateRefs: list(reference),
        options: { type: 'object', additionalProperties: text },
      }),
    }),
  ),
  addresses: list(object({ type: text, value: text })),
  from: object({ cidr: text, except: list(text) }),
  budgets: list(object({ schedule: text, duration: text, nodes: { 'x-kubernetes-int-or-string': true } })),
  limits: { type: 'object', additionalProperties: { 'x-kubernetes-int-or-string': true } },
  size: text,
});

function holds(rule: string, value: object, old?: object): boolean {
  const { errors } = validateRules({ ...schema, 'x-kubernetes-validations': [{ rule }] }, value, old);
  for (const { body } of errors) expect(body).toContain('failed rule');
  return errors.length === 0;
}

const prefix = { type: 'ReplacePrefixMatch', replacePrefixMatch: '/x' };

test.each<[string, object, object]>([
  [
    '(has(self.backendRefs) && size(self.backendRefs) > 0) ? (!has(self.filters) || self.filters.all(f, !has(f.requestRedirect))): true',
    { backendRefs: [{ name: 'a' }], filters: [{ type: 'URLRewrite' }] },
    { backendRefs: [{ name: 'a' }], filters: [{ requestRedirect: {} }] },
  ],
  [
    "(has(self.filters) && self.filters.exists_one(f, has(f.requestRedirect) && has(f.requestRedirect.path) && f.requestRedirect.path.type == 'ReplacePrefixMatch' && has(f.requestRedirect.path.replacePrefixMatch))) ? ((size(self.matches) != 1 || !has(self.matches[0].path) || self.matches[0].path.type != 'PathPrefix') ? false : true) : true",
    { filters: [{ requestRedirect: { path: prefix } }], matches: [{ path: { type: 'PathPrefix' } }] },
    { filters: [{ requestRedirect: { path: prefix } }], matches: [{ path: { type: 'Exact' } }] },
  ],
  [
    "!(self.filters.exists(f, f.type == 'RequestRedirect') && self.filters.exists(f, f.type == 'URLRewrite'))",
    { filters: [{ type: 'RequestRedirect' }] },
    { filters: [{ type: 'RequestRedirect' }, { type: 'URLRewrite' }] },
  ],
  [
    "self.backendRefs.all(r, (size(r.group) == 0 && r.kind == 'Service') ? has(r.port) : true)",
    { backendRefs: [{ group: '', kind: 'Service', port: 80 }] },
    { backendRefs: [{ group: '', kind: 'Service' }] },
  ],
  [
    `self.matches.all(m, (m.path.type in ['Exact','PathPrefix']) ? m.path.value.matches(r"""^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$""") : true)`,
    { matches: [{ path: { type: 'Exact', value: '/a%20b' } }] },
    { matches: [{ path: { type: 'Exact', value: '/a b' } }] },
  ],
  [
    "!(has(self.timeouts) && self.timeouts.request != duration('0s') && duration(self.timeouts.backendRequest) > self.timeouts.request)",
    { timeouts: { request: '2s', backendRequest: '1s' } },
    { timeouts: { request: '1s', backendRequest: '2s' } },
  ],
  [
    'self.listeners.all(l1, self.listeners.exists_one(l2, l1.port == l2.port && l1.protocol == l2.protocol && (has(l1.hostname) && has(l2.hostname) ? l1.hostname == l2.hostname : !has(l1.hostname) && !has(l2.hostname))))',
    {
      listeners: [
        { port: 80, protocol: 'HTTP' },
        { port: 80, protocol: 'HTTP', hostname: 'a' },
      ],
    },
    {
      listeners: [
        { port: 80, protocol: 'HTTP' },
        { port: 80, protocol: 'HTTP' },
      ],
    },
  ],
  [
    "self.listeners.all(l, l.protocol in ['HTTP', 'TCP', 'UDP'] ? !has(l.tls) : true) && self.listeners.all(l, (l.protocol == 'HTTPS' && has(l.tls)) ? (l.tls.mode == '' || l.tls.mode == 'Terminate') && (size(l.tls.certificateRefs) > 0 || size(l.tls.options) > 0) : true)",
    {
      listeners: [
        { protocol: 'HTTPS', tls: { mode: 'Terminate', certificateRefs: [], options: { a: 'b' } } },
      ],
    },
    { listeners: [{ protocol: 'HTTP', tls: {} }] },
  ],
  [
    "self.addresses.all(a1, a1.type == 'IPAddress' && has(a1.value) ? self.addresses.exists_one(a2, a2.type == a1.type && has(a2.value) && a2.value == a1.value) : true)",
    { addresses: [{ type: 'IPAddress', value: '1.1.1.1' }, { type: 'IPAddress' }] },
    {
      addresses: [
        { type: 'IPAddress', value: '1.1.1.1' },
        { type: 'IPAddress', value: '1.1.1.1' },
      ],
    },
  ],
  [
    "self.parentRefs.all(p1, self.parentRefs.exists_one(p2, p1.group == p2.group && p1.kind == p2.kind && p1.name == p2.name && (((!has(p1.__namespace__) || p1.__namespace__ == '') && (!has(p2.__namespace__) || p2.__namespace__ == '')) || (has(p1.__namespace__) && has(p2.__namespace__) && p1.__namespace__ == p2.__namespace__))))",
    {
      parentRefs: [
        { group: 'g', kind: 'k', name: 'a' },
        { group: 'g', kind: 'k', name: 'a', namespace: 'x' },
      ],
    },
    {
      parentRefs: [
        { group: 'g', kind: 'k', name: 'a' },
        { group: 'g', kind: 'k', name: 'a', namespace: '' },
      ],
    },
  ],
  [
    'self.from.except.all(e, cidr(self.from.cidr).containsCIDR(e))',
    { from: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } },
    { from: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] } },
  ],
  [
    'self.budgets.all(x, has(x.schedule) == has(x.duration))',
    { budgets: [{ schedule: '@daily', duration: '1h' }, { nodes: '10%' }] },
    { budgets: [{ schedule: '@daily' }] },
  ],
  [
    "self.budgets.all(b, type(b.nodes) == int ? b.nodes >= 0 : b.nodes.matches('^(100|[0-9]{1,2})%$'))",
    { budgets: [{ nodes: 5 }, { nodes: '10%' }] },
    { budgets: [{ nodes: '101%' }] },
  ],
  [
    "self.limits.all(k, k in ['cpu', 'memory'] || k.startsWith('example.com/'))",
    { limits: { cpu: 1, 'example.com/x': '2' } },
    { limits: { disk: 1 } },
  ],
  [
    "!has(self.size) || (isQuantity(self.size) && quantity(self.size).isGreaterThan(quantity('1Gi')))",
    { size: '2Gi' },
    { size: '1Mi' },
  ],
  [
    "self.name.find('^[a-z]+') == self.name && self.name.split('-').size() <= 2",
    { name: 'abc' },
    { name: 'a-b' },
  ],
])('%s', (rule, good, bad) => {
  expect(holds(rule, good)).toBe(true);
  expect(holds(rule, bad)).toBe(false);
});

test.each<[string, object, object, object]>([
  ['self.name == oldSelf.name', { name: 'a' }, { name: 'a' }, { name: 'b' }],
  ['!has(oldSelf.size) || has(self.size)', { size: '1' }, { size: '2' }, {}],
  [
    'oldSelf.addresses.all(a, a in self.addresses)',
    { addresses: [{ type: 'x' }] },
    { addresses: [{ type: 'y' }, { type: 'x' }] },
    { addresses: [{ type: 'y' }] },
  ],
  [
    'quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0',
    { size: '1Gi' },
    { size: '1024Mi' },
    { size: '1000Mi' },
  ],
])('%s', (rule, old, good, bad) => {
  expect(holds(rule, good, old)).toBe(true);
  expect(holds(rule, bad, old)).toBe(false);
});
