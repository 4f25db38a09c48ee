import { expect, test } from 'vitest';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { modification, modifiedFields } from '../../../../src/view/journal/journal.ts';

function objectOf(kind: string, members: object): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { name: 'a', resourceVersion: '1' }, ...members };
}

function said(kind: string, before: object, after: object): string {
  const [was, is] = [objectOf(kind, before), objectOf(kind, after)];
  return modification(was, is, modifiedFields(was, is));
}

const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
const notReady = { conditions: [{ type: 'Ready', status: 'False' }] };
const labelled = { metadata: { name: 'a', labels: { a: '1' }, generation: 2 } };
const written = { metadata: { name: 'a', resourceVersion: '2' } };
const ending = { metadata: { name: 'a', deletionTimestamp: '2026-11-27T20:41:05Z' } };
const endpoints = (...states: readonly (boolean | undefined)[]): object => ({
  endpoints: states.map((state) => ({ conditions: state === undefined ? {} : { ready: state } })),
});

test.each([
  ['Service', { spec: { selector: { app: 'a' } } }, { spec: { selector: { app: 'b' } } }, 'spec.selector'],
  ['Service', { status: {} }, { status: { loadBalancer: {} } }, 'status.loadBalancer'],
  ['Service', {}, labelled, 'metadata.labels'],
  [
    'Pod',
    { status: { phase: 'Pending' } },
    { status: { phase: 'Running', ...notReady } },
    'Running, not ready',
  ],
  ['Pod', { status: notReady }, { status: ready }, 'ready'],
  ['Pod', {}, ending, 'is ending'],
  ['Pod', { spec: { nodeName: 'a' } }, { spec: { nodeName: 'b' } }, 'spec.nodeName'],
  ['EndpointSlice', endpoints(true, false), endpoints(true, undefined), 'ready endpoints 1 → 2'],
  ['EndpointSlice', { ports: [] }, { ports: [{ port: 1 }] }, 'ports'],
  ['Node', {}, written, ''],
])('%s: %j to %j is said as %s', (kind, before, after, words) => {
  expect(said(kind, before, after)).toBe(words);
});
