import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { yamlText } from '../../../../../src/client/yaml.ts';
import { linesOfField, withoutServerFields } from '../../../../../src/page/browser/views/yaml-field.ts';

const policy = {
  metadata: { name: 'catalog', labels: { spec: 'no' } },
  spec: {
    podSelector: { matchLabels: { app: 'catalog' } },
    ingress: [
      { from: [{ podSelector: { matchLabels: { app: 'cart' } } }, { ipBlock: { cidr: '10.0.0.0/8' } }] },
      { ports: [{ port: 'http' }] },
    ],
    egress: [],
  },
};

describe.each([true, false])('lists that are indented: %s', (indentSeq) => {
  const yaml = stringify(policy, { indentSeq });

  test.each([
    ['spec.podSelector', 'podSelector:\n  matchLabels:\n    app: catalog'],
    ['spec.ingress[0].from[1]', '- ipBlock:\n    cidr: 10.0.0.0/8'],
    ['spec.ingress[1].ports[0]', '- port: http'],
    ['spec.ingress[1].ports[0].port', 'port: http'],
    ['spec.egress', 'egress: []'],
  ])('%s', (field, lines) => {
    expect(linesOfField(yaml, field)).toBe(lines);
  });

  test('a list with all of its items', () => {
    expect(linesOfField(yaml, 'spec.ingress')).toBe(
      stringify({ ingress: policy.spec.ingress }, { indentSeq }).trim(),
    );
  });

  test.each(['spec.nothing', 'spec.ingress[2]', 'spec.podSelector[0]', 'spec.egress[0]', 'metadata.spec'])(
    '%s is not there',
    (field) => {
      expect(linesOfField(yaml, field)).toBe('');
    },
  );
});

test('an object is edited without what the server has added', () => {
  const pool = {
    ...{ apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool' },
    metadata: {
      ...{ creationTimestamp: '2026-11-29T08:50:19Z', generation: 1, labels: { uid: 'a' } },
      ...{ name: 'default', resourceVersion: '311', uid: '575eed27' },
    },
    spec: { addresses: ['192.0.2.0/24'], status: 'is a word here', uid: 'too' },
    status: { conditions: [{ type: 'Ready', message: 'two\nlines' }], ipv4: { free: 251 } },
  };
  const { labels, name } = pool.metadata;
  const { status: _, ...rest } = { ...pool, metadata: { labels, name } };
  expect(parse(withoutServerFields(yamlText(pool)))).toEqual(rest);
});
