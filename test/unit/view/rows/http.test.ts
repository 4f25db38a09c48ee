import { expect, test } from 'vitest';
import type { Ingress, IngressClass } from '../../../../src/objects/types/networking.generated.ts';
import { httpRuleRows } from '../../../../src/view/rows/http.ts';

const ours: IngressClass = {
  metadata: { name: 'servicenet' },
  spec: { controller: 'servicenet.dev/router' },
};

function ingress(
  namespace: string,
  name: string,
  ingressClassName: string,
  host: string,
  at: string,
): Ingress {
  const backend = { service: { name: 'web', port: { number: 80 } } };
  return {
    metadata: { namespace, name, uid: name, creationTimestamp: at },
    spec: {
      ingressClassName,
      tls: [{ hosts: [host], secretName: 'cert' }],
      rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
    status: {},
  };
}

test('a host is of the first namespace, and of our class alone', () => {
  const rows = httpRuleRows(
    {
      ingresses: [
        ingress('late', 'b', 'servicenet', 'a.example', '2026-01-02T00:00:00Z'),
        ingress('shop', 'a', 'servicenet', 'a.example', '2026-01-01T00:00:00Z'),
        ingress('shop', 'c', 'nginx', 'b.example', '2026-01-01T00:00:00Z'),
      ],
      classes: [ours],
      routes: [],
    },
    { service: () => undefined, slicesOf: () => [] },
  );
  const told = rows.map(({ source, host, trouble, tls, backends }) => [
    ...[`${source.namespace}/${source.name}`, host, trouble?.reason, tls?.secret],
    backends.map((backend) => `${backend.service}:${backend.port} ${backend.trouble?.reason ?? ''}`).join(),
  ]);
  expect(told).toEqual([
    ['late/b', 'a.example', 'HostAlreadyClaimed', 'cert', 'late/web:80 NoService'],
    ['shop/a', 'a.example', undefined, 'cert', 'shop/web:80 NoService'],
    ['shop/c', 'b.example', 'OtherIngressClass', 'cert', 'shop/web:80 NoService'],
  ]);
  expect(new Set(rows.map(({ key }) => key)).size).toBe(3);
});
