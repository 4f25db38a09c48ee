import { describe, expect, it } from 'vitest';
import {
  isMirrored,
  planMirror,
} from '../../../../../src/controllers/service-endpoints/endpoint-slice-mirroring/plan.ts';
import type { Endpoints } from '../../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../../src/objects/types/discovery.generated.ts';

function endpoints(subsets: Endpoints['subsets'], metadata: Endpoints['metadata'] = {}): Endpoints {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'web', namespace: 'ns', uid: 'e1', ...metadata },
    ...(subsets === undefined ? {} : { subsets }),
  };
}

const plan = (object: Endpoints, existing: EndpointSlice[] = [], maxPerSubset = 1000) =>
  planMirror({ endpoints: object, existing, maxPerSubset });

function stored(slices: EndpointSlice[]): EndpointSlice[] {
  return slices.map((slice, i) => ({
    ...slice,
    metadata: {
      ...slice.metadata,
      name: slice.metadata.name ?? `web-${i}`,
      uid: `s${i}`,
      resourceVersion: '3',
    },
  }));
}

/** The host names of a slice's endpoints. */
const hostnames = (slice: EndpointSlice | undefined): unknown[] =>
  (slice?.endpoints ?? []).map(({ hostname }) => hostname);

const one = [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80, protocol: 'TCP' }] }];

describe('planMirror', () => {
  it('lets the first of equal addresses speak for all, under every port', () => {
    const subset = (hostname: string, port: number, more: string) => ({
      addresses: [{ ip: '10.0.0.1', hostname }, { ip: more }],
      ports: [{ name: `p${port}`, port, protocol: 'TCP' }],
    });
    const { create } = plan(endpoints([subset('first', 80, '10.0.0.2'), subset('second', 81, '10.0.0.3')]));
    expect(create.map(hostnames)).toEqual([
      ['first', undefined],
      ['first', undefined],
    ]);
  });

  it('takes an address that is said to be ready and not ready for one that is not ready', () => {
    const address = { ip: '10.0.0.2' };
    const ports = [{ name: 'a', port: 80, protocol: 'TCP' }];
    const [slice] = plan(endpoints([{ addresses: [address], notReadyAddresses: [address], ports }])).create;
    expect(slice?.endpoints).toEqual([{ addresses: ['10.0.0.2'], conditions: { ready: false } }]);
  });

  it('copies labels, annotations but two, addresses and ports', () => {
    const object = endpoints(
      [
        {
          addresses: [
            { ip: '10.0.0.1', hostname: 'h', nodeName: 'n', targetRef: { kind: 'Pod', name: 'x' } },
          ],
          notReadyAddresses: [{ ip: '10.0.0.2' }],
          ports: [{ name: 'a', port: 80, protocol: 'TCP', appProtocol: 'http' }],
        },
      ],
      {
        labels: { team: 'a', 'endpointslice.kubernetes.io/managed-by': 'me' },
        annotations: {
          note: 'x',
          'endpoints.kubernetes.io/last-change-trigger-time': 't',
          'kubectl.kubernetes.io/last-applied-configuration': '{}',
        },
      },
    );
    expect(plan(object).create).toEqual([
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          generateName: 'web-',
          namespace: 'ns',
          labels: {
            team: 'a',
            'kubernetes.io/service-name': 'web',
            'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
          },
          annotations: { note: 'x' },
          ownerReferences: [
            {
              apiVersion: 'v1',
              kind: 'Endpoints',
              name: 'web',
              uid: 'e1',
              controller: true,
              blockOwnerDeletion: true,
            },
          ],
        },
        addressType: 'IPv4',
        endpoints: [
          {
            addresses: ['10.0.0.1'],
            conditions: { ready: true },
            hostname: 'h',
            nodeName: 'n',
            targetRef: { kind: 'Pod', name: 'x' },
          },
          { addresses: ['10.0.0.2'], conditions: { ready: false } },
        ],
        ports: [{ name: 'a', port: 80, protocol: 'TCP', appProtocol: 'http' }],
      },
    ]);
  });

  it('makes a slice per family and port list, after repacking', () => {
    const object = endpoints([
      { addresses: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }], ports: [{ name: 'a', port: 80 }] },
      { addresses: [{ ip: '10.0.0.1' }], ports: [{ name: 'b', port: 81 }] },
    ]);
    const shapes = plan(object).create.map(({ addressType, ports, endpoints: list }) => [
      addressType,
      ports?.map(({ name }) => name),
      list?.flatMap(({ addresses }) => addresses),
    ]);
    expect(shapes.length).toBe(3);
    expect(shapes).toEqual(
      expect.arrayContaining([
        ['IPv4', ['a'], ['10.0.0.1']],
        ['IPv6', ['a'], ['fd00::1']],
        ['IPv4', ['b'], ['10.0.0.1']],
      ]),
    );
    const joined = endpoints([
      { addresses: [{ ip: '10.0.0.1' }], ports: [{ name: 'a', port: 80 }] },
      { addresses: [{ ip: '10.0.0.1' }], ports: [{ name: 'b', port: 81 }] },
    ]);
    expect(plan(joined).create.map(({ ports }) => ports?.length)).toEqual([2]);
  });

  it('writes nothing on its own result, and a whole new body without generateName on a change', () => {
    const object = endpoints(one);
    const existing = stored(plan(object).create);
    const again = plan(object, existing);
    expect([again.create, again.update, again.delete]).toEqual([[], [], []]);
    const changed = plan(endpoints(one, { labels: { new: 'x' } }), existing);
    expect(changed.update[0]?.metadata).not.toHaveProperty('generateName');
    expect(changed.update[0]?.metadata).toMatchObject({
      name: 'web-0',
      resourceVersion: '3',
      labels: { new: 'x' },
    });
  });

  it('takes over the slices of Endpoints that were deleted and made again', () => {
    const existing = stored(plan(endpoints(one)).create);
    const next = plan(endpoints(one, { uid: 'e2' }), existing);
    expect(next.update[0]?.metadata.ownerReferences?.[0]?.uid).toBe('e2');
  });

  it('turns a slice to delete and one to create into an update; without addresses there is none', () => {
    const existing = stored(plan(endpoints(one)).create);
    const other = endpoints([{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 81 }] }]);
    const moved = plan(other, existing);
    expect([moved.create.length, moved.update.length, moved.delete.length]).toEqual([0, 1, 0]);
    const emptied = plan(endpoints(undefined), existing);
    expect([emptied.create.length, emptied.update.length, emptied.delete.length]).toEqual([0, 0, 1]);
  });

  it('tells about invalid addresses and about too many', () => {
    const addresses = [{ ip: 'nonsense' }, { ip: '10.0.0.1' }, { ip: '10.0.0.2' }, { ip: '10.0.0.3' }];
    const { create, events } = plan(endpoints([{ addresses, ports: [{ port: 80 }] }]), [], 2);
    expect(create[0]?.endpoints?.length).toBe(2);
    expect(events.map(({ reason }) => reason)).toEqual(['TooManyAddressesToMirror']);
    const invalid = plan(endpoints([{ addresses: [{ ip: '1.2.3' }], ports: [{ port: 80 }] }])).events;
    expect(invalid).toEqual([
      {
        type: 'Warning',
        reason: 'InvalidIPAddress',
        message: 'Skipped 1 invalid IP addresses when mirroring to EndpointSlices',
      },
    ]);
  });

  it('leaves out what opts out', () => {
    expect(isMirrored(endpoints(one))).toBe(true);
    expect(
      isMirrored(endpoints(one, { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } })),
    ).toBe(false);
    expect(isMirrored(endpoints(one, { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'yes' } }))).toBe(
      true,
    );
    expect(
      isMirrored(endpoints(one, { annotations: { 'control-plane.alpha.kubernetes.io/leader': '{}' } })),
    ).toBe(false);
  });
});
