import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { tableConverter } from '../../../../src/apiserver/tables/converters.ts';

const now = Date.parse('2026-01-01T01:00:00Z');

/** An object that is an hour old. */
function object(rest: Record<string, unknown>, metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z', ...metadata }, ...rest };
}

function cells(group: string, kind: string, rest: Record<string, unknown>, metadata = {}): unknown[] {
  return tableConverter(group, kind).cells(object(rest, metadata), now);
}

describe('columns', () => {
  test.each([
    ['', 'Service', 'Name,Type,Cluster-IP,External-IP,Port(s),Age,[Selector]'],
    ['', 'Endpoints', 'Name,Endpoints,Age'],
    ['discovery.k8s.io', 'EndpointSlice', 'Name,AddressType,Ports,Endpoints,Age'],
    ['', 'Pod', 'Name,Ready,Status,Restarts,Age,[IP],[Node],[Nominated Node],[Readiness Gates]'],
    [
      '',
      'Node',
      'Name,Status,Roles,Age,Version,[Internal-IP],[External-IP],[OS-Image],[Kernel-Version],[Container-Runtime]',
    ],
    ['', 'Namespace', 'Name,Status,Age'],
    ['', 'Event', 'Last Seen,Type,Reason,Object,[Subobject],[Source],Message,[First Seen],[Count],[Name]'],
    ['networking.k8s.io', 'Ingress', 'Name,Class,Hosts,Address,Ports,Age'],
    ['networking.k8s.io', 'IngressClass', 'Name,Controller,Parameters,Age'],
    ['networking.k8s.io', 'NetworkPolicy', 'Name,Pod-Selector,Age'],
    ['networking.k8s.io', 'ServiceCIDR', 'Name,CIDRs,Age'],
    ['networking.k8s.io', 'IPAddress', 'Name,ParentRef'],
    [
      '',
      'PersistentVolume',
      'Name,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,VolumeAttributesClass,Reason,Age,[VolumeMode]',
    ],
    [
      '',
      'PersistentVolumeClaim',
      'Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,[VolumeMode]',
    ],
    ['', 'ComponentStatus', 'Name,Status,Message,Error'],
    ['', 'ConfigMap', 'Name,Data,Age'],
    ['', 'Secret', 'Name,Type,Data,Age'],
    ['', 'ServiceAccount', 'Name,Age'],
    ['coordination.k8s.io', 'Lease', 'Name,Holder,Age'],
    ['apps', 'Deployment', 'Name,Ready,Up-to-date,Available,Age,[Containers],[Images],[Selector]'],
    ['apps', 'ReplicaSet', 'Name,Desired,Current,Ready,Age,[Containers],[Images],[Selector]'],
    ['apps', 'StatefulSet', 'Name,Ready,Age,[Containers],[Images]'],
    [
      'apps',
      'DaemonSet',
      'Name,Desired,Current,Ready,Up-to-date,Available,Node Selector,Age,[Containers],[Images],[Selector]',
    ],
    ['batch', 'Job', 'Name,Status,Completions,Duration,Age,[Containers],[Images],[Selector]'],
    [
      'batch',
      'CronJob',
      'Name,Schedule,Timezone,Suspend,Active,Last Schedule,Age,[Containers],[Images],[Selector]',
    ],
    ['policy', 'PodDisruptionBudget', 'Name,Min Available,Max Unavailable,Allowed Disruptions,Age'],
    ['rbac.authorization.k8s.io', 'RoleBinding', 'Name,Role,Age,[Users],[Groups],[ServiceAccounts]'],
    ['rbac.authorization.k8s.io', 'Role', 'Name,Created At'],
    ['admissionregistration.k8s.io', 'ValidatingWebhookConfiguration', 'Name,Webhooks,Age'],
    ['admissionregistration.k8s.io', 'ValidatingAdmissionPolicy', 'Name,Validations,ParamKind,Age'],
    ['admissionregistration.k8s.io', 'MutatingAdmissionPolicy', 'Name,Mutations,ParamKind,Age'],
    ['admissionregistration.k8s.io', 'MutatingAdmissionPolicyBinding', 'Name,PolicyName,ParamRef,Age'],
    [
      'apiextensions.k8s.io',
      'CustomResourceDefinition',
      'Name,Scope,Versions,Created At,[Group],[Kind],[ShortNames],[Established]',
    ],
    ['', 'constructor', 'Name,Created At'],
  ])('of %s/%s are %s', (group, kind, expected) => {
    const { columns, cells: cellsOf } = tableConverter(group, kind);
    expect(columns.map(({ name, priority }) => (priority === 0 ? name : `[${name}]`)).join(',')).toBe(
      expected,
    );
    for (const { description } of columns) expect(description).not.toBe('');
    // an object that lacks everything has a cell for every column, and an IPAddress one more
    expect(cellsOf({ metadata: {} }, now)).toHaveLength(columns.length + (kind === 'IPAddress' ? 1 : 0));
  });

  test('name and age have their types', () => {
    expect(tableConverter('', 'Service').columns[0]).toMatchObject({
      type: 'string',
      format: 'name',
      priority: 0,
    });
    expect(tableConverter('', 'x').columns[1]).toMatchObject({ type: 'date' });
  });
});

describe('services', () => {
  const service = (spec: Record<string, unknown>, status = {}): unknown[] =>
    cells('', 'Service', { spec, status });

  test.each([
    [
      {
        type: 'ClusterIP',
        clusterIPs: ['10.96.0.1'],
        ports: [
          { port: 80, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
        ],
        selector: { b: '2', a: '1' },
      },
      {},
      ['a', 'ClusterIP', '10.96.0.1', '<none>', '80/TCP,53/UDP', '60m', 'a=1,b=2'],
    ],
    [
      {
        type: 'NodePort',
        clusterIPs: ['10.96.0.1'],
        externalIPs: ['192.0.2.1', '192.0.2.0'],
        ports: [{ port: 80, nodePort: 30080, protocol: 'TCP' }],
      },
      {},
      ['a', 'NodePort', '10.96.0.1', '192.0.2.1,192.0.2.0', '80:30080/TCP', '60m', '<none>'],
    ],
    [
      { type: 'LoadBalancer', clusterIPs: ['10.96.0.1'], externalIPs: ['192.0.2.9'], ports: [] },
      {
        loadBalancer: {
          ingress: [{ hostname: 'lb.example.com' }, { ip: '198.51.100.1' }, { ip: '198.51.100.1' }],
        },
      },
      ['a', 'LoadBalancer', '10.96.0.1', '198.51.100.1,lb.example.com,192.0.2.9', '<none>', '60m', '<none>'],
    ],
    [{ type: 'LoadBalancer' }, {}, ['a', 'LoadBalancer', '<none>', '<pending>', '<none>', '60m', '<none>']],
    [
      { type: 'ExternalName', externalName: 'x.example.com' },
      {},
      ['a', 'ExternalName', '<none>', 'x.example.com', '<none>', '60m', '<none>'],
    ],
    [
      { type: 'ClusterIP', clusterIPs: ['None'] },
      {},
      ['a', 'ClusterIP', 'None', '<none>', '<none>', '60m', '<none>'],
    ],
  ])('%j', (spec, status, expected) => {
    expect(service(spec, status)).toEqual(expected);
  });

  test('endpoints show three addresses, IPv6 ones in brackets', () => {
    const addresses = ['10.1.0.1', 'fd00::1'].map((ip) => ({ ip }));
    const two = [{ addresses, ports: [{ port: 80 }, { port: 81 }] }];
    expect(cells('', 'Endpoints', { subsets: two })[1]).toBe(
      '10.1.0.1:80,[fd00::1]:80,10.1.0.1:81 + 1 more...',
    );
    expect(cells('', 'Endpoints', { subsets: [{ addresses }] })[1]).toBe('10.1.0.1,fd00::1');
    expect(
      cells('', 'Endpoints', { subsets: [{ notReadyAddresses: addresses, ports: [{ port: 80 }] }] })[1],
    ).toBe('');
    expect(cells('', 'Endpoints', {})[1]).toBe('<none>');
  });

  test('slices are unset where they are empty', () => {
    const endpoints = ['10.1.0.1', '10.1.0.2', '10.1.0.3', '10.1.0.4'].map((ip) => ({ addresses: [ip] }));
    const ports = [{ port: 80 }, { name: 'http' }, {}, { port: 1 }, { port: 2 }];
    const slice = { addressType: 'IPv4', endpoints, ports };
    expect(cells('discovery.k8s.io', 'EndpointSlice', slice).slice(1, 4)).toEqual([
      'IPv4',
      '80,http,* + 2 more...',
      '10.1.0.1,10.1.0.2,10.1.0.3 + 1 more...',
    ]);
    const empty = { addressType: 'IPv6', endpoints: null, ports: null };
    expect(cells('discovery.k8s.io', 'EndpointSlice', empty).slice(1, 4)).toEqual([
      'IPv6',
      '<unset>',
      '<unset>',
    ]);
  });
});

describe('pods', () => {
  const pod = (spec: Record<string, unknown>, status: Record<string, unknown>, metadata = {}): unknown[] =>
    cells('', 'Pod', { spec: { containers: [{ name: 'c' }], ...spec }, status }, metadata);
  const running = { name: 'c', ready: true, state: { running: {} } };

  test.each([
    ['pending', {}, { phase: 'Pending' }, {}, ['0/1', 'Pending', '0']],
    ['running', {}, { phase: 'Running', containerStatuses: [running] }, {}, ['1/1', 'Running', '0']],
    ['evicted', {}, { phase: 'Failed', reason: 'Evicted' }, {}, ['0/1', 'Evicted', '0']],
    [
      'gated',
      {},
      { phase: 'Pending', conditions: [{ type: 'PodScheduled', reason: 'SchedulingGated' }] },
      {},
      ['0/1', 'SchedulingGated', '0'],
    ],
    [
      'crashing',
      {},
      {
        phase: 'Running',
        containerStatuses: [
          {
            name: 'c',
            restartCount: 3,
            state: { waiting: { reason: 'CrashLoopBackOff' } },
            lastState: { terminated: { finishedAt: '2026-01-01T00:55:00Z' } },
          },
        ],
      },
      {},
      ['0/1', 'CrashLoopBackOff', '3 (5m ago)'],
    ],
    [
      'killed',
      {},
      { phase: 'Failed', containerStatuses: [{ state: { terminated: { signal: 9, exitCode: 137 } } }] },
      {},
      ['0/1', 'Signal:9', '0'],
    ],
    [
      'initializing',
      { initContainers: [{ name: 'i' }, { name: 'j' }] },
      {
        phase: 'Pending',
        initContainerStatuses: [
          { name: 'i', state: { terminated: { exitCode: 0, reason: 'Completed' } } },
          { name: 'j', state: { running: {} } },
        ],
        containerStatuses: [{ name: 'c', state: { waiting: { reason: 'PodInitializing' } } }],
      },
      {},
      ['0/1', 'Init:1/2', '0'],
    ],
    [
      'failing to initialize',
      { initContainers: [{ name: 'i' }] },
      { phase: 'Pending', initContainerStatuses: [{ name: 'i', state: { terminated: { exitCode: 2 } } }] },
      {},
      ['0/1', 'Init:ExitCode:2', '0'],
    ],
    [
      'with a sidecar',
      { initContainers: [{ name: 's', restartPolicy: 'Always' }] },
      {
        phase: 'Running',
        initContainerStatuses: [
          { name: 's', started: true, ready: true, restartCount: 2, state: { running: {} } },
        ],
        containerStatuses: [running],
      },
      {},
      ['2/2', 'Running', '2'],
    ],
    [
      'half completed',
      { containers: [{ name: 'c' }, { name: 'e' }] },
      {
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'True' }],
        containerStatuses: [
          { name: 'c', state: { terminated: { reason: 'Completed' } } },
          { ...running, name: 'e' },
        ],
      },
      {},
      ['1/2', 'Running', '0'],
    ],
    [
      'completed where another container failed',
      { containers: [{ name: 'c' }, { name: 'e' }, { name: 'f' }] },
      {
        phase: 'Running',
        containerStatuses: [
          { name: 'c', state: { terminated: { reason: 'Completed', exitCode: 0 } } },
          { name: 'e', state: { terminated: { reason: 'OOMKilled', exitCode: 137 } } },
          { ...running, name: 'f' },
        ],
      },
      {},
      ['1/3', 'OOMKilled', '0'],
    ],
    [
      'completed but for one that is not ready',
      { containers: [{ name: 'c' }, { name: 'e' }] },
      {
        phase: 'Running',
        containerStatuses: [
          { name: 'c', state: { terminated: { reason: 'Completed', exitCode: 0 } } },
          { ...running, name: 'e' },
        ],
      },
      {},
      ['1/2', 'NotReady', '0'],
    ],
    [
      'initialized, whose init container starts again',
      { initContainers: [{ name: 'i' }, { name: 's', restartPolicy: 'Always' }] },
      {
        phase: 'Running',
        conditions: [{ type: 'Initialized', status: 'True' }],
        initContainerStatuses: [
          { name: 'i', restartCount: 4, state: { running: {} } },
          { name: 's', restartCount: 2, state: { running: {} } },
        ],
        containerStatuses: [{ ...running, restartCount: 1 }],
      },
      {},
      ['1/2', 'Init:0/2', '1'],
    ],
    [
      'with a condition of others for the same reason',
      {},
      { phase: 'Pending', conditions: [{ type: 'Ready', reason: 'SchedulingGated' }] },
      {},
      ['0/1', 'Pending', '0'],
    ],
    [
      'terminating',
      {},
      { phase: 'Running', containerStatuses: [running] },
      { deletionTimestamp: '2026-01-01T01:00:00Z' },
      ['1/1', 'Terminating', '0'],
    ],
    [
      'lost',
      {},
      { phase: 'Running', reason: 'NodeLost' },
      { deletionTimestamp: '2026-01-01T01:00:00Z' },
      ['0/1', 'Unknown', '0'],
    ],
    [
      'done and deleted',
      {},
      { phase: 'Succeeded' },
      { deletionTimestamp: '2026-01-01T01:00:00Z' },
      ['0/1', 'Succeeded', '0'],
    ],
  ])('%s', (_name, spec, status, metadata, expected) => {
    expect(pod(spec, status, metadata).slice(1, 4)).toEqual(expected);
  });

  test('wide columns', () => {
    const spec = { nodeName: 'n1', readinessGates: [{ conditionType: 'a' }, { conditionType: 'b' }] };
    const status = {
      podIPs: [{ ip: '10.1.0.1' }, { ip: 'fd00::1' }],
      conditions: [{ type: 'a', status: 'True' }],
    };
    expect(pod(spec, status).slice(5)).toEqual(['10.1.0.1', 'n1', '<none>', '1/2']);
    expect(pod({}, {}).slice(5)).toEqual(['<none>', '<none>', '<none>', '<none>']);
  });

  test('that have ended are marked', () => {
    const { conditions } = tableConverter('', 'Pod');
    const of = (phase: string): unknown => conditions?.(object({ status: { phase } }))?.[0]?.reason;
    expect([of('Succeeded'), of('Failed'), of('Running')]).toEqual(['Succeeded', 'Failed', undefined]);
  });
});

describe('others', () => {
  test('nodes', () => {
    const labels = {
      'node-role.kubernetes.io/worker': '',
      'node-role.kubernetes.io/control-plane': '',
      x: 'y',
    };
    const status = {
      conditions: [{ type: 'Ready', status: 'True' }],
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      nodeInfo: { kubeletVersion: 'v1.36.0', osImage: 'x' },
    };
    expect(cells('', 'Node', { spec: { unschedulable: true }, status }, { labels })).toEqual([
      'a',
      'Ready,SchedulingDisabled',
      'control-plane,worker',
      '60m',
      'v1.36.0',
      '10.0.0.1',
      '<none>',
      'x',
      '<unknown>',
      '<unknown>',
    ]);
    const nodeInfo = { kernelVersion: '6.1', architecture: 'amd64' };
    expect(cells('', 'Node', { status: { nodeInfo } })[8]).toBe('6.1 (amd64)');
    expect(cells('', 'Node', {}).slice(1, 3)).toEqual(['Unknown', '<none>']);
    expect(cells('', 'Node', { status: { conditions: [{ type: 'Ready', status: 'False' }] } })[1]).toBe(
      'NotReady',
    );
  });

  test('policies and their bindings', () => {
    const group = 'admissionregistration.k8s.io';
    const paramKind = { apiVersion: 'example.com/v1', kind: 'Limit' };
    expect(cells(group, 'ValidatingAdmissionPolicy', { spec: { validations: [{}, {}], paramKind } })).toEqual(
      ['a', 2, 'example.com/v1/Limit', '60m'],
    );
    expect(cells(group, 'MutatingAdmissionPolicy', { spec: { mutations: [{}] } }).slice(1, 3)).toEqual([
      1,
      '<unset>',
    ]);
    const reference = (paramRef?: object): unknown =>
      cells(group, 'ValidatingAdmissionPolicyBinding', { spec: { policyName: 'p', paramRef } })[2];
    expect(reference()).toBe('<unset>');
    expect(reference({ name: 'n' })).toBe('*/n');
    expect(reference({ name: 'n', namespace: 'ns' })).toBe('ns/n');
    const matchExpressions = [{ key: 'k', operator: 'In', values: ['x', 'y'] }];
    expect(reference({ selector: { matchLabels: { b: '2', a: '1' }, matchExpressions } })).toBe(
      '&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}',
    );
  });

  test('jobs whose rule of success is met go on until their Pods have ended', () => {
    const conditions = [{ type: 'SuccessCriteriaMet', status: 'True' }];
    expect(cells('batch', 'Job', { status: { conditions } })[1]).toBe('SuccessCriteriaMet');
  });

  test('events in both forms', () => {
    const core = {
      involvedObject: { kind: 'Service', name: 's', fieldPath: 'spec' },
      source: { component: 'c', host: 'h' },
      type: 'Warning',
      reason: 'R',
      message: ' text\n',
      count: 3,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:30:00Z',
    };
    const expected = ['30m', 'Warning', 'R', 'service/s', 'spec', 'c, h', 'text', '60m', 3, 'a'];
    expect(cells('', 'Event', core)).toEqual(expected);
    const served = {
      regarding: core.involvedObject,
      deprecatedSource: core.source,
      type: 'Warning',
      reason: 'R',
      note: 'text',
      deprecatedCount: 3,
      deprecatedFirstTimestamp: core.firstTimestamp,
      deprecatedLastTimestamp: core.lastTimestamp,
    };
    expect(cells('events.k8s.io', 'Event', served)).toEqual(expected);
    const series = {
      regarding: { kind: 'Pod' },
      reportingController: 'r',
      reportingInstance: 'i',
      eventTime: '2026-01-01T00:00:00.000000Z',
      series: { count: 7, lastObservedTime: '2026-01-01T00:59:00.000000Z' },
    };
    expect(cells('events.k8s.io', 'Event', series)).toEqual([
      '60s',
      '',
      '',
      'pod',
      '',
      'r, i',
      '',
      '60m',
      7,
      'a',
    ]);
    expect(cells('', 'Event', {}).slice(7, 9)).toEqual(['<unknown>', 1]);
  });

  test('ingresses count rules behind the third host', () => {
    const rules = ['a', 'b', 'c', 'd'].map((host) => ({ host }));
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
    expect(
      cells('networking.k8s.io', 'Ingress', { spec: { ingressClassName: 'x', rules, tls: [{}] }, status }),
    ).toEqual(['a', 'x', 'a,b,c + 1 more...', '192.0.2.1', '80, 443', '60m']);
    expect(cells('networking.k8s.io', 'Ingress', { spec: { rules: [{}] } }).slice(1, 5)).toEqual([
      '<none>',
      '*',
      '',
      '80',
    ]);
  });

  test('ingress classes, addresses and ranges', () => {
    const parameters = { apiGroup: 'example.com', kind: 'P', name: 'p' };
    expect(cells('networking.k8s.io', 'IngressClass', { spec: { controller: 'c', parameters } })[2]).toBe(
      'P.example.com/p',
    );
    const parentRef = { group: '', resource: 'services', namespace: 'ns', name: 'a' };
    expect(cells('networking.k8s.io', 'IPAddress', { spec: { parentRef } })).toEqual([
      'a',
      'services/ns/a',
      '60m',
    ]);
    expect(
      cells('networking.k8s.io', 'ServiceCIDR', { spec: { cidrs: ['10.96.0.0/16', 'fd00::/112'] } })[1],
    ).toBe('10.96.0.0/16,fd00::/112');
  });

  test('selectors are sorted and complete', () => {
    const podSelector = {
      matchLabels: { m: '1' },
      matchExpressions: [
        { key: 'z', operator: 'Exists' },
        { key: 'a', operator: 'NotIn', values: ['2', '1'] },
        { key: 'b', operator: 'DoesNotExist' },
      ],
    };
    expect(cells('networking.k8s.io', 'NetworkPolicy', { spec: { podSelector } })[1]).toBe(
      'a notin (1,2),!b,m=1,z',
    );
    expect(cells('networking.k8s.io', 'NetworkPolicy', { spec: { podSelector: {} } })[1]).toBe('<none>');
  });

  test('workloads', () => {
    const template = {
      spec: {
        containers: [
          { name: 'c', image: 'i' },
          { name: 'd', image: 'j' },
        ],
      },
    };
    const spec = { replicas: 3, template, selector: { matchLabels: { app: 'a' } } };
    const status = { readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2, replicas: 3 };
    expect(cells('apps', 'Deployment', { spec, status })).toEqual([
      'a',
      '2/3',
      1,
      2,
      '60m',
      'c,d',
      'i,j',
      'app=a',
    ]);
    expect(cells('apps', 'ReplicaSet', { spec, status })).toEqual([
      'a',
      3,
      3,
      2,
      '60m',
      'c,d',
      'i,j',
      'app=a',
    ]);
    expect(cells('apps', 'StatefulSet', { spec, status })).toEqual(['a', '2/3', '60m', 'c,d', 'i,j']);
    const job = {
      spec: { completions: 2, template },
      status: { succeeded: 1, startTime: '2026-01-01T00:30:00Z' },
    };
    expect(cells('batch', 'Job', job).slice(1, 4)).toEqual(['Running', '1/2', '30m']);
    const done = { spec: {}, status: { conditions: [{ type: 'Complete', status: 'True' }] } };
    expect(cells('batch', 'Job', done).slice(1, 4)).toEqual(['Complete', '0/1', '']);
    const cron = { spec: { schedule: '* * * * *', suspend: false }, status: { active: [{}] } };
    expect(cells('batch', 'CronJob', cron).slice(1, 6)).toEqual([
      '* * * * *',
      '<none>',
      'False',
      1,
      '<none>',
    ]);
  });

  test('storage', () => {
    const modes = ['ReadWriteMany', 'ReadWriteOnce'];
    const volume = {
      spec: {
        capacity: { storage: '5Gi' },
        accessModes: modes,
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace: 'n', name: 'c' },
        storageClassName: 'fast',
        volumeMode: 'Block',
      },
      status: { phase: 'Bound' },
    };
    expect(cells('', 'PersistentVolume', volume)).toEqual([
      'a',
      '5Gi',
      'RWO,RWX',
      'Retain',
      'Bound',
      'n/c',
      'fast',
      '<unset>',
      '',
      '60m',
      'Block',
    ]);
    const claim = {
      spec: { volumeName: 'v', volumeAttributesClassName: 'gold' },
      status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOncePod'] },
    };
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'old' };
    expect(cells('', 'PersistentVolumeClaim', claim, { annotations })).toEqual([
      'a',
      'Bound',
      'v',
      '1Gi',
      'RWOP',
      'old',
      'gold',
      '60m',
      '<unset>',
    ]);
    const going = { deletionTimestamp: '2026-01-01T00:30:00Z' };
    expect(cells('', 'PersistentVolumeClaim', { status: { capacity: {} } }, going).slice(1, 5)).toEqual([
      'Terminating',
      '',
      '',
      '',
    ]);
  });

  test.each([
    [[{ type: 'Healthy', status: 'True', message: 'ok' }], ['a', 'Healthy', 'ok', '']],
    [[{ type: 'Healthy', status: 'False', error: 'down' }], ['a', 'Unhealthy', '', 'down']],
    [[{ type: 'Other', status: 'True' }], ['a', 'Unknown', '', '']],
  ])('component status of %j', (conditions, expected) => {
    expect(cells('', 'ComponentStatus', { conditions })).toEqual(expected);
  });

  test('configuration and access', () => {
    expect(cells('', 'ConfigMap', { data: { k: 'v' }, binaryData: { b: '' } })[1]).toBe(2);
    expect(cells('', 'Secret', { type: 'Opaque', data: { k: 'dg==' } }).slice(1, 3)).toEqual(['Opaque', 1]);
    expect(cells('coordination.k8s.io', 'Lease', { spec: { holderIdentity: 'x' } })[1]).toBe('x');
    const subjects = [
      { kind: 'User', name: 'u' },
      { kind: 'ServiceAccount', namespace: 'n', name: 's' },
      { kind: 'User', name: 'v' },
    ];
    const binding = { roleRef: { kind: 'ClusterRole', name: 'r' }, subjects };
    expect(cells('rbac.authorization.k8s.io', 'RoleBinding', binding)).toEqual([
      'a',
      'ClusterRole/r',
      '60m',
      'u, v',
      '',
      'n/s',
    ]);
    expect(cells('policy', 'PodDisruptionBudget', { spec: { minAvailable: 1 } }).slice(1, 4)).toEqual([
      '1',
      'N/A',
      0,
    ]);
    const names = { kind: 'Widget', shortNames: ['w', 'wd'] };
    const versions = [
      { name: 'v2', served: true },
      { name: 'v1beta1', served: false },
      { name: 'v1', served: true, storage: true },
    ];
    const definition = {
      spec: { group: 'x.dev', scope: 'Namespaced', names, versions },
      status: { conditions: [{ type: 'Established', status: 'True' }] },
    };
    expect(cells('apiextensions.k8s.io', 'CustomResourceDefinition', definition)).toEqual([
      'a',
      'Namespaced',
      'v1(storage),v2',
      '2026-01-01T00:00:00Z',
      'x.dev',
      'Widget',
      'w,wd',
      true,
    ]);
  });

  test('of the default StorageClasses of a list only the newest is called so, of one alone none', () => {
    const of = (name: string, creationTimestamp: string, isDefault = true): KubeObject => ({
      metadata: {
        name,
        creationTimestamp,
        annotations: isDefault ? { 'storageclass.kubernetes.io/is-default-class': 'true' } : {},
      },
    });
    const classes = [
      of('newest', '2026-03-01T00:00:00Z', false),
      of('c', '2026-02-01T00:00:00Z'),
      of('b', '2026-02-01T00:00:00Z'),
      of('a', '2026-01-01T00:00:00Z'),
    ];
    const alone = tableConverter('storage.k8s.io', 'StorageClass');
    const listed = alone.ofList?.(classes) ?? alone;
    expect(classes.map((each) => listed.cells(each, 0)[0])).toEqual(['newest', 'c', 'b (default)', 'a']);
    expect(classes.map((each) => alone.cells(each, 0)[0])).toEqual(['newest', 'c', 'b', 'a']);
  });
});
