import { describe, expect, it } from 'vitest';
import { defaultPullPolicy } from '../../../../../src/registry/core/pod/volumes.ts';
import { contextOf, create, definitionOf, memberOf, now, read, update } from '../../decide.ts';

const pod = definitionOf('Pod');
const container = { name: 'c', image: 'example.com/c' };
const spec = { containers: [container] };
const claimTemplate = {
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
};

describe('a new Pod', () => {
  it('shows all that kube-apiserver fills in', () => {
    expect(create(pod, { spec }).object).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', namespace: 'ns', uid: 'uid', generation: 1 },
      spec: {
        containers: [
          {
            ...container,
            resources: {},
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
            imagePullPolicy: 'Always',
          },
        ],
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 30,
        dnsPolicy: 'ClusterFirst',
        securityContext: {},
        schedulerName: 'default-scheduler',
        enableServiceLinks: true,
      },
      status: { phase: 'Pending', qosClass: 'BestEffort' },
    });
  });

  it('shows both names of its service account and fills in volumes, probes and requests', () => {
    const { object } = create(pod, {
      spec: {
        serviceAccountName: 'robot',
        volumes: [{ name: 'v' }, { name: 's', secret: { secretName: 's' } }],
        containers: [
          {
            ...container,
            resources: { limits: { cpu: '1' } },
            readinessProbe: { httpGet: { port: 80 } },
          },
        ],
      },
    });
    expect(object).toMatchObject({
      spec: {
        serviceAccountName: 'robot',
        serviceAccount: 'robot',
        volumes: [{ name: 'v', emptyDir: {} }, { secret: { defaultMode: 420 } }],
        containers: [
          {
            resources: { limits: { cpu: '1' }, requests: { cpu: '1' } },
            readinessProbe: {
              httpGet: { path: '/', scheme: 'HTTP', port: 80 },
              timeoutSeconds: 1,
              periodSeconds: 10,
              successThreshold: 1,
              failureThreshold: 3,
            },
          },
        ],
      },
    });
  });

  it.each([
    [{ containers: [] }, ['spec.containers: Required value']],
    [{ containers: [{ name: 'c' }] }, ['spec.containers[0].image: Required value']],
    [
      { ...spec, restartPolicy: 'Sometimes' },
      [
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
      ],
    ],
    [
      { ...spec, dnsPolicy: 'None' },
      ['spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None'],
    ],
    [
      { containers: [{ ...container, ports: [{ containerPort: 80, hostPort: 81 }] }], hostNetwork: true },
      [
        'spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true',
      ],
    ],
    [
      { containers: [{ ...container, resources: { limits: { cpu: '1' }, requests: { cpu: '1500m' } } }] },
      [
        'spec.containers[0].resources.requests: Invalid value: "1500m": must be less than or equal to cpu limit of 1',
      ],
    ],
    [
      { containers: [{ ...container, volumeMounts: [{ name: 'x', mountPath: '/x' }] }] },
      ['spec.containers[0].volumeMounts[0].name: Not found: "x"'],
    ],
    [
      {
        volumes: [
          { name: 'c', persistentVolumeClaim: { claimName: 'c' } },
          { name: 'd', ephemeral: { volumeClaimTemplate: claimTemplate } },
          { name: 'e', emptyDir: {} },
        ],
        containers: [
          {
            ...container,
            volumeMounts: [{ name: 'd', mountPath: '/m' }],
            volumeDevices: [
              { name: 'c', devicePath: '/dev/c' },
              { name: 'c', devicePath: '/dev/c' },
              { name: 'd', devicePath: '/m' },
              { name: 'e', devicePath: '/dev/../e' },
              { name: 'f', devicePath: '' },
            ],
          },
        ],
      },
      [
        'spec.containers[0].volumeMounts[0].name: Invalid value: "d": must not already exist in volumeDevices',
        'spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/m": must not already exist as a path in volumeDevices',
        'spec.containers[0].volumeDevices[1].name: Invalid value: "c": must be unique',
        'spec.containers[0].volumeDevices[1].devicePath: Invalid value: "/dev/c": must be unique',
        'spec.containers[0].volumeDevices[2].name: Invalid value: "d": must not already exist in volumeMounts',
        'spec.containers[0].volumeDevices[2].devicePath: Invalid value: "/m": must not already exist as a path in volumeMounts',
        'spec.containers[0].volumeDevices[3].name: Invalid value: "e": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
        'spec.containers[0].volumeDevices[3].devicePath: Invalid value: "/dev/../e": can not contain backsteps (\'..\')',
        'spec.containers[0].volumeDevices[4].name: Not found: "f"',
        'spec.containers[0].volumeDevices[4].devicePath: Required value',
      ],
    ],
    [
      {
        containers: [
          {
            ...container,
            env: [
              { name: 'A', value: 'v', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              { name: 'B', valueFrom: { fieldRef: { fieldPath: 'status.phase' } } },
              { name: 'C', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a b']" } } },
              { name: 'D', valueFrom: { fieldRef: { fieldPath: 'spec.nope' } } },
              { name: 'E', valueFrom: { configMapKeyRef: { name: 'x' } } },
              { name: 'F', valueFrom: { resourceFieldRef: { resource: 'limits.pods' } } },
            ],
          },
        ],
      },
      [
        'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        'spec.containers[0].env[1].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"',
        "spec.containers[0].env[2].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: Invalid value: "spec.nope": error converting fieldPath: field label not supported: spec.nope',
        'spec.containers[0].env[4].valueFrom.configMapKeyRef.key: Required value',
        'spec.containers[0].env[5].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.pods": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
      ],
    ],
    [
      { containers: [{ ...container, envFrom: [{}, { configMapRef: {} }] }] },
      [
        'spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
        'spec.containers[0].envFrom[1].configMapRef.name: Required value',
      ],
    ],
    [
      {
        containers: [
          {
            ...container,
            livenessProbe: { exec: {}, tcpSocket: { port: 1 }, terminationGracePeriodSeconds: 0 },
            readinessProbe: {
              httpGet: { port: 0, scheme: 'FTP', httpHeaders: [{ name: 'a b' }] },
              terminationGracePeriodSeconds: 3,
            },
            lifecycle: { postStart: {}, preStop: { sleep: { seconds: 31 } } },
          },
        ],
      },
      [
        'spec.containers[0].lifecycle.postStart: Required value: must specify a handler type',
        'spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)',
        'spec.containers[0].livenessProbe.exec.command: Required value',
        'spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type',
        'spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0',
        'spec.containers[0].readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
        "spec.containers[0].readinessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
        'spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 3: must not be set for readinessProbes',
      ],
    ],
    [
      {
        ...spec,
        volumes: [
          { name: 'a', hostPath: { path: '/../x', type: 'Pipe' } },
          { name: 'b', configMap: { items: [{ key: 'k', path: '..x', mode: 512 }] } },
          { name: 'c', secret: { secretName: 's', defaultMode: -1 } },
          { name: 'd', persistentVolumeClaim: {} },
          { name: 'e', downwardAPI: { items: [{ path: '/x' }] } },
          {
            name: 'f',
            projected: { sources: [{ serviceAccountToken: { expirationSeconds: 1, path: 't' } }] },
          },
          { name: 'g', emptyDir: {}, nfs: {} },
        ],
      },
      [
        'spec.volumes[0].hostPath.path: Invalid value: "/../x": must not contain \'..\'',
        'spec.volumes[0].hostPath.type: Unsupported value: "Pipe": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
        'spec.volumes[1].configMap.name: Required value',
        'spec.volumes[1].configMap.items[0].path: Invalid value: "..x": must not start with \'..\'',
        'spec.volumes[1].configMap.items[0].mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive',
        'spec.volumes[2].secret.defaultMode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive',
        'spec.volumes[3].persistentVolumeClaim.claimName: Required value',
        'spec.volumes[4].downwardAPI.path: Invalid value: "/x": must be a relative path',
        'spec.volumes[4].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required',
        'spec.volumes[5].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes',
        'spec.volumes[6].nfs: Forbidden: may not specify more than 1 volume type',
        'spec.volumes[5].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set',
      ],
    ],
    [
      { ...spec, schedulingGates: [{ name: 'x' }, { name: 'x' }] },
      ['spec.schedulingGates[1]: Duplicate value: "x"'],
    ],
    [
      { ...spec, ephemeralContainers: [{ name: 'd', image: 'x' }] },
      ['spec.ephemeralContainers: Forbidden: cannot be set on create'],
    ],
  ])('%j is refused', (given, errors) => {
    expect(create(pod, { spec: given }).errors).toEqual(errors);
  });

  describe('while it is gated', () => {
    const terms = (...requirements: object[]) => ({
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: requirements }],
        },
      },
    });
    const a = { key: 'a', operator: 'Exists' };
    const b = { key: 'b', operator: 'Exists' };
    const gated = { ...spec, schedulingGates: [{ name: 'example.com/g' }] };
    const narrow = (before: object, after: object, gates: object = gated) =>
      update(pod, create(pod, { spec: { ...gates, ...before } }).stored, { spec: { ...gates, ...after } });

    it.each([
      [{}, { nodeSelector: { a: 'b' } }],
      [{ nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'b', c: 'd' } }],
      [{}, { affinity: terms(a) }],
      [{ affinity: terms(a) }, { affinity: terms(a, b) }],
    ])('it may be narrowed down from %j to %j', (before, after) => {
      const { errors, object } = narrow(before, after);
      expect(errors).toEqual([]);
      expect(object).toMatchObject({ spec: after });
      expect(narrow(before, after, spec).errors).toEqual([
        expect.stringMatching(/^spec: Forbidden: pod updates may not change fields other than/),
      ]);
    });

    it.each([
      [
        { nodeSelector: { a: 'b' } },
        { nodeSelector: { a: 'c' } },
        [
          'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
        ],
      ],
      [
        { affinity: terms(a) },
        { affinity: terms(b) },
        [
          'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: Invalid value: {"MatchExpressions":[{"Key":"b","Operator":"Exists","Values":null}],"MatchFields":null}: only additions are allowed (no mutations or deletions)',
        ],
      ],
      [
        { affinity: terms(a) },
        {},
        [
          'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed',
        ],
      ],
    ])('it may not be widened from %j to %j', (before, after, errors) => {
      expect(narrow(before, after).errors).toEqual(errors);
    });
  });

  it('waits with a condition while it is gated', () => {
    const { object } = create(pod, { spec: { ...spec, schedulingGates: [{ name: 'example.com/g' }] } });
    expect(object).toMatchObject({
      status: { conditions: [{ type: 'PodScheduled', reason: 'SchedulingGated' }] },
    });
  });
});

it.each([
  ['a', 'Always'],
  ['a:latest', 'Always'],
  ['a:1', 'IfNotPresent'],
  ['localhost:5000/a', 'Always'],
  ['localhost:5000/a:1', 'IfNotPresent'],
  ['a@sha256:0123', 'IfNotPresent'],
  ['', 'IfNotPresent'],
])('the image %j is pulled %s', (image, policy) => {
  expect(defaultPullPolicy(image)).toBe(policy);
});

it.each([
  [[{}], 'BestEffort'],
  [[{ requests: { cpu: '1' } }], 'Burstable'],
  [[{ limits: { cpu: '1', memory: '1Gi' } }], 'Guaranteed'],
  [[{ limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } }], 'Burstable'],
  [[{ limits: { cpu: '1', memory: '1Gi' } }, {}], 'Burstable'],
  [[{ requests: { cpu: '0' } }], 'BestEffort'],
])('resources %j make a Pod %s', (list, quality) => {
  const containers = list.map((resources, i) => ({ ...container, name: `c${i}`, resources }));
  expect(create(pod, { spec: { containers } }).object).toMatchObject({ status: { qosClass: quality } });
});

describe('a Pod that is there', () => {
  const toleration = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };
  const old = create(pod, { spec: { ...spec, tolerations: [toleration] } }).stored;
  const same = { spec: structuredClone(memberOf(old, 'spec')), status: {} };

  it('changes its image, and counts that', () => {
    const next = { spec: { ...same.spec, containers: [{ ...container, image: 'example.com/d' }] } };
    const { errors, object } = update(pod, old, next);
    expect(errors).toEqual([]);
    expect(object).toMatchObject({ metadata: { generation: 2 }, status: { phase: 'Pending' } });
  });

  it.each([{ hostNetwork: true }, { nodeName: 'n1' }, { hostname: 'h' }])('does not change %j', (change) => {
    const { errors } = update(pod, old, { spec: { ...same.spec, ...change } });
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(/^spec: Forbidden: pod updates may not change fields other than/);
  });

  it('neither gains nor loses containers', () => {
    const { errors } = update(pod, old, {
      spec: { ...same.spec, containers: [container, { ...container, name: 'd' }] },
    });
    expect(errors).toEqual(['spec.containers: Forbidden: pod updates may not add or remove containers']);
  });

  it('gets more tolerations, and keeps those it has', () => {
    const tolerations = [toleration, { key: 'k', operator: 'Exists' }];
    expect(update(pod, old, { spec: { ...same.spec, tolerations } }).errors).toEqual([]);
    expect(update(pod, old, { spec: { ...same.spec, tolerations: [] } }).errors).toEqual([
      'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
    ]);
  });

  it('keeps spec, owners and quality in a write of its status', () => {
    const status = { phase: 'Running', podIP: '10.1.0.5' };
    const { errors, object } = update(pod, old, { spec: { nodeName: 'x' }, status }, 'status');
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      spec: { schedulerName: 'default-scheduler' },
      status: { phase: 'Running', podIP: '10.1.0.5', podIPs: [{ ip: '10.1.0.5' }], qosClass: 'BestEffort' },
    });
    expect(object).not.toHaveProperty('spec.nodeName');
  });

  it.each([
    [
      { podIPs: [{ ip: '10.1.0.8' }, { ip: '10.1.0.9' }] },
      'status.podIPs: Invalid value: [{"IP":"10.1.0.8"},{"IP":"10.1.0.9"}]: may specify no more than one IP for each IP family',
    ],
    [
      { podIP: 'x' },
      'status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [{ qosClass: 'Guaranteed' }, 'status.qosClass: Invalid value: "Guaranteed": field is immutable'],
    [
      { conditions: [{ type: 'a/b/c', status: 'True' }] },
      `status.conditions[0].Type: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ],
    [
      { hostIP: '192.0.2.1', hostIPs: [{ ip: '192.0.2.2' }] },
      'status.hostIPs[0].ip: Invalid value: "192.0.2.2": must be equal to `hostIP`',
    ],
  ])('refuses the status %j', (status, error) => {
    expect(update(pod, old, { spec: same.spec, status }, 'status').errors).toEqual([error]);
  });

  it('takes ephemeral containers through their subresource only, and never loses one', () => {
    const ephemeralContainers = [{ name: 'debug', image: 'x' }];
    const added = update(pod, old, { spec: { ephemeralContainers } }, 'ephemeralcontainers');
    expect(added.errors).toEqual([]);
    expect(added.object).toMatchObject({
      spec: { containers: [{ name: 'c' }], ephemeralContainers: [{ name: 'debug' }] },
    });
    expect(update(pod, added.stored, { spec: {} }, 'ephemeralcontainers').errors).toHaveLength(1);
  });

  it('is resized within its quality of service', () => {
    const resources = { requests: { cpu: '1' } };
    const { errors } = update(pod, old, { spec: { containers: [{ ...container, resources }] } }, 'resize');
    expect(errors).toEqual([
      'spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing',
    ]);
  });
});

describe('the grace period of a deletion', () => {
  const grace = (extra: object, status: object, requested?: number) =>
    pod.strategy.gracePeriodSeconds?.(
      read(pod, { metadata: { name: 'a' }, spec: { ...spec, ...extra }, status }),
      requested,
    );

  it.each([
    ['the default on a node', { nodeName: 'n' }, {}, undefined, 30],
    ['what the Pod says', { nodeName: 'n', terminationGracePeriodSeconds: 5 }, {}, undefined, 5],
    ['what the client says', { nodeName: 'n' }, {}, 7, 7],
    ['a second for a negative one', { nodeName: 'n' }, {}, -1, 1],
    ['none without a node', {}, {}, -5, 0],
    ['none when it has ended', { nodeName: 'n' }, { phase: 'Succeeded' }, 30, 0],
  ])('is %s', (_, extra, status, requested, seconds) => {
    expect(grace(extra, status, requested)).toBe(seconds);
  });
});

it('selects by its fields', () => {
  const { strategy } = pod;
  const given = read(pod, {
    metadata: { name: 'a' },
    spec: { ...spec, nodeName: 'n', hostNetwork: true },
    status: { podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] },
  });
  expect(strategy.fields?.(given)).toMatchObject({
    'spec.nodeName': 'n',
    'spec.hostNetwork': 'true',
    'status.podIP': '10.0.0.1',
    'status.podIPs': '10.0.0.1,fd00::1',
    'status.nominatedNodeName': '',
  });
  expect(contextOf().now).toBe(now);
});
