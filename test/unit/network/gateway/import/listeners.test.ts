import { expect, test } from 'vitest';
import { ImportedListeners, UniqueNames } from '../../../../../src/network/gateway/import/listeners.ts';
import type { ListenerSet, ReferenceGrant } from '../../../../../src/objects/types/gateway.ts';
import { keyOf } from '../../../../../src/objects/meta.ts';

test('beyond 64 listeners there are ListenerSets, and a ReferenceGrant names 16 Secrets', () => {
  const listeners = new ImportedListeners('nginx', 'edge', 'servicenet');
  const hosts = Array.from({ length: 130 }, (_, i) => `h${String(i).padStart(3, '0')}.example.com`);
  const notes: string[] = [];
  for (const [i, host] of hosts.entries()) {
    const spec = { tls: [{ hosts: [host], secretName: `s${i}` }] };
    const metadata = { name: 'a', namespace: 'shop' };
    listeners.addCertificates({ metadata, spec, status: {} }, [host], [], (note) => notes.push(note));
  }
  listeners.place();
  expect(notes).toEqual([]);
  expect(listeners.secureParents(['h062.example.com', 'h063.example.com', 'none'], 'shop')).toEqual([
    { name: 'nginx', namespace: 'edge', sectionName: 'https-h062.example.com' },
    { kind: 'ListenerSet', name: 'nginx-2', namespace: 'edge', sectionName: 'https-h063.example.com' },
  ]);
  const objects = listeners.objects();
  expect(objects[0]).toMatchObject({ spec: { allowedListeners: { namespaces: { from: 'Same' } } } });
  const sets = objects.filter((one): one is ListenerSet => one.kind === 'ListenerSet');
  expect(sets.map(({ spec }) => [spec.parentRef, spec.listeners.length])).toEqual([
    [{ name: 'nginx' }, 64],
    [{ name: 'nginx' }, 3],
  ]);
  expect(objects[0]).toHaveProperty('spec.listeners.length', 64);
  const grants = objects.filter((one): one is ReferenceGrant => one.kind === 'ReferenceGrant');
  expect(grants.map(({ spec }) => spec.to.length)).toEqual([16, 16, 16, 16, 16, 16, 16, 16, 2]);
  expect(new Set(grants.map(keyOf)).size).toBe(9);
  expect(grants[0]?.spec.from.map(({ kind }) => kind)).toEqual(['Gateway', 'ListenerSet']);
});

test('names are unique, and not too long', () => {
  const names = new UniqueNames();
  expect([names.of('a', 'x'), names.of('b', 'x'), names.of('a', 'x'), names.of('a', 'x-2')]).toEqual([
    ...['x', 'x', 'x-2', 'x-2-2'],
  ]);
  const long = names.of('a', `${'y'.repeat(239)}.${'z'.repeat(100)}`);
  expect(long).toBe('y'.repeat(239));
});
