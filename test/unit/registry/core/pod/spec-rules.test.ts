import { describe, expect, it } from 'vitest';
import { create, definitionOf, memberOf, update } from '../../decide.ts';

const pod = definitionOf('Pod');
const container = { name: 'c', image: 'example.com/c' };
const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';

describe('the spec of a Pod', () => {
  it.each([
    [
      { affinity: { nodeAffinity: { [required]: { nodeSelectorTerms: [] } } } },
      [
        `spec.affinity.nodeAffinity.${required}.nodeSelectorTerms: Required value: must have at least one node selector term`,
      ],
    ],
    [
      {
        affinity: {
          nodeAffinity: {
            [preferred]: [
              { weight: 0, preference: { matchExpressions: [{ key: 'k', operator: 'Gt', values: [] }] } },
              { weight: 1, preference: { matchFields: [{ key: 'x', operator: 'Exists' }] } },
            ],
          },
        },
      },
      [
        `spec.affinity.nodeAffinity.${preferred}[0].weight: Invalid value: 0: must be in the range 1-100`,
        `spec.affinity.nodeAffinity.${preferred}[0].preference.matchExpressions[0].values: Required value: must be specified single value when \`operator\` is 'Lt' or 'Gt'`,
        `spec.affinity.nodeAffinity.${preferred}[1].preference.matchFields[0].operator: Invalid value: "Exists": not a valid selector operator`,
        `spec.affinity.nodeAffinity.${preferred}[1].preference.matchFields[0].key: Invalid value: "x": not a valid field selector key`,
      ],
    ],
    [
      { affinity: { podAntiAffinity: { [required]: [{ topologyKey: 'z', matchLabelKeys: ['a'] }] } } },
      [
        `spec.affinity.podAntiAffinity.${required}[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`,
      ],
    ],
    [
      {
        topologySpreadConstraints: [
          { maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'Never', minDomains: 1 },
          { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' },
          { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule', nodeTaintsPolicy: 'X' },
        ],
      },
      [
        'spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero',
        'spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty',
        'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"',
        'spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Never',
        'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"',
        'spec.topologySpreadConstraints[2].nodeTaintsPolicy: Unsupported value: "X": supported values: "Honor", "Ignore"',
      ],
    ],
    [
      {
        securityContext: { runAsUser: -1, sysctls: [{ name: 'Bad' }], seccompProfile: { type: 'Localhost' } },
        hostNetwork: true,
        hostUsers: false,
        hostPID: true,
      },
      [
        'spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive',
        'spec.securityContext.sysctls[0].name: Invalid value: "Bad": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$',
        'spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost',
        'spec.hostNetwork: Forbidden: when `hostUsers` is false',
        'spec.HostPID: Forbidden: when `hostUsers` is false',
      ],
    ],
    [
      {
        containers: [
          { ...container, securityContext: { privileged: true, allowPrivilegeEscalation: false } },
        ],
      },
      [
        'spec.containers[0].securityContext: Invalid value: {"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
      ],
    ],
    [
      { hostnameOverride: 'h', hostNetwork: true, os: { name: 'plan9' } },
      [
        'spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true',
        'spec.os: Unsupported value: "plan9": supported values: "linux", "windows"',
      ],
    ],
    [
      { dnsConfig: { searches: ['.', '_a.b.', 'a..b'] } },
      [expect.stringContaining('spec.dnsConfig.searches[2]')],
    ],
    [{ dnsConfig: { nameservers: ['FD00::1'] } }, []],
    [
      { containers: [{ ...container, restartPolicyRules: [{ action: 'Restart' }] }] },
      [
        'spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used',
        'spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified',
      ],
    ],
    [
      {
        restartPolicy: 'Never',
        containers: [
          { ...container, resizePolicy: [{ resourceName: 'disk', restartPolicy: 'RestartContainer' }] },
        ],
      },
      [
        'spec.containers[0].resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"',
        `spec.containers[0].resizePolicy: Invalid value: "RestartContainer": must be 'NotRequired' when pod \`restartPolicy\` is 'Never'`,
      ],
    ],
  ])('%j has the errors %j', (spec, errors) => {
    expect(create(pod, { spec: { containers: [container], ...spec } }).errors).toEqual(errors);
  });

  it('completes selectors with the labels of the Pod', () => {
    const constraint = { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' };
    const keys = { labelSelector: {}, matchLabelKeys: ['app', 'none'] };
    const { object } = create(pod, {
      metadata: { name: 'a', labels: { app: 'x' } },
      spec: { containers: [container], topologySpreadConstraints: [{ ...constraint, ...keys }] },
    });
    const matchExpressions = [{ key: 'app', operator: 'In', values: ['x'] }];
    expect(object).toMatchObject({
      spec: { topologySpreadConstraints: [{ labelSelector: { matchExpressions } }] },
    });
  });
});

it.each([
  [
    { metadata: { name: 'a.b' } },
    [
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    ],
  ],
  [
    { spec: { nodeSelector: { 'beta.kubernetes.io/os': 'linux' } } },
    ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
  ],
  [
    { spec: { hostAliases: [{ ip: 'FD00::1', hostnames: ['h'] }], imagePullSecrets: [{}] } },
    [
      'spec.imagePullSecrets[0].name: invalid empty name ""',
      'spec.hostAliases[0].ip: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
    ],
  ],
  [
    { spec: { containers: [{ ...container, resources: { requests: { memory: '1m' } } }] } },
    [
      'spec.containers[0].resources.requests[memory]: fractional byte value "1m" is invalid, must be an integer',
    ],
  ],
  [
    { spec: { affinity: { podAffinity: { [required]: [{ topologyKey: 'z' }] } } } },
    [
      `spec.affinity.podAffinity.${required}[0].labelSelector: a null labelSelector results in matching no pod`,
    ],
  ],
])('%j is warned of', (body, warnings) => {
  const { spec = {}, ...rest }: { spec?: object; metadata?: object } = body;
  expect(create(pod, { ...rest, spec: { containers: [container], ...spec } }).warnings).toEqual(warnings);
});

describe('the status of a Pod', () => {
  const old = create(pod, { spec: { containers: [container], restartPolicy: 'Never' } }).stored;
  const containerStatus = { name: 'c', ready: false, restartCount: 0, image: '', imageID: '' };
  const write = (before: typeof old, status: object) => update(pod, before, { status }, 'status');

  it('does not bring a container back that has ended', () => {
    const ended = { containerStatuses: [{ ...containerStatus, state: { terminated: { exitCode: 0 } } }] };
    const { stored } = write(old, ended);
    const running = { containerStatuses: [{ ...containerStatus, state: { running: {} } }] };
    expect(write(stored, running).errors).toEqual([
      'status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state',
    ]);
    expect(write(stored, ended).errors).toEqual([]);
  });

  it('remembers observed generations that a client leaves out', () => {
    const condition = { type: 'Ready', status: 'True' };
    const { stored } = write(old, {
      observedGeneration: 3,
      conditions: [{ ...condition, observedGeneration: 2 }],
    });
    expect(write(stored, { conditions: [condition] }).object).toMatchObject({
      status: { observedGeneration: 3, conditions: [{ type: 'Ready', observedGeneration: 2 }] },
    });
  });

  it('is warned of odd addresses', () => {
    expect(write(old, { podIP: 'FD00::1' }).warnings).toEqual([
      'status.podIPs[0].ip: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
    ]);
  });
});

describe('containers for debugging', () => {
  const old = create(pod, { spec: { containers: [container] } }).stored;
  const write = (ephemeralContainers: object[]) =>
    update(pod, old, { spec: { ephemeralContainers } }, 'ephemeralcontainers').errors;
  const debug = { name: 'd', image: 'i' };

  it.each([
    [[debug], []],
    [
      [{ ...debug, name: 'c', targetContainerName: 'x' }],
      [
        'spec.ephemeralContainers[0].name: Duplicate value: "c"',
        'spec.ephemeralContainers[0].targetContainerName: Not found: "x"',
      ],
    ],
    [
      [{ ...debug, ports: [{ containerPort: 80 }], lifecycle: { preStop: { exec: { command: ['x'] } } } }],
      [
        'spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container',
        'spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container',
      ],
    ],
  ])('%j have the errors %j', (containers, errors) => {
    expect(write(containers)).toEqual(errors);
  });
});

it('fields of features that are off are dropped, in Pods and templates', () => {
  const item = { key: 'k', path: 'p', user: 1 };
  const httpGet = { port: 80, protocol: 'HTTP2' };
  const spec = {
    serviceAccountName: 'robot',
    evictionResponders: [{ name: 'example.com/r', priority: 1 }],
    containers: [
      {
        name: 'c',
        image: 'i',
        volumeMounts: [{ name: 'v', mountPath: '/v', bindMountOptions: ['noexec'] }],
        livenessProbe: { httpGet },
        readinessProbe: { grpc: { port: 80, mode: 'TLS' } },
        lifecycle: { preStop: { httpGet } },
      },
    ],
    volumes: [
      { name: 'v', emptyDir: { mode: 0 } },
      { name: 's', secret: { secretName: 's', defaultUser: 1, items: [item] } },
      {
        name: 'p',
        projected: {
          defaultUser: 1,
          sources: [
            { configMap: { name: 'm', items: [item] } },
            { serviceAccountToken: { path: 't', user: 1 } },
          ],
        },
      },
    ],
  };
  const off = /"(?:evictionResponders|bindMountOptions|protocol":"HTTP|mode|defaultUser|user)"/;
  expect(JSON.stringify(spec)).toMatch(off);
  const pod = create(definitionOf('Pod'), { spec, status: { volumeHealth: [{ name: 'v' }] } });
  const job = create(definitionOf('Job'), {
    spec: { scheduling: {}, template: { spec: { ...spec, restartPolicy: 'Never' } } },
  });
  for (const { object, errors } of [pod, job]) {
    expect(errors).toEqual([]);
    expect(JSON.stringify(object)).not.toMatch(off);
  }
  expect(job.object).not.toHaveProperty('spec.scheduling');
});

it('fields of a feature that is off stay where the stored Pod has them', () => {
  const plain = { containers: [{ name: 'c', image: 'i' }] };
  const old = create(definitionOf('Pod'), { spec: plain }).stored;
  const evictionResponders = [{ name: 'example.com/r', priority: 1 }];
  const spec = { ...plain, evictionResponders };
  expect(update(definitionOf('Pod'), old, { spec }).object).not.toHaveProperty('spec.evictionResponders');
  const using = { ...old, spec: { ...memberOf(old, 'spec'), evictionResponders } };
  const kept = update(definitionOf('Pod'), using, { spec });
  expect(kept.errors).toEqual([]);
  expect(kept.object).toHaveProperty('spec.evictionResponders', evictionResponders);
});

it('the reference of an image volume is required, unless the stored template has none', () => {
  const template = definitionOf('PodTemplate');
  const object = {
    template: { spec: { containers: [{ name: 'c', image: 'i' }], volumes: [{ name: 'v', image: {} }] } },
  };
  const { errors, stored } = create(template, object);
  expect(errors).toEqual(['template.spec.volumes[0].image.reference: Required value']);
  expect(update(template, stored, object).errors).toEqual([]);
});

it('CAP_SYS_ADMIN without escalation is refused to new Pods alone', () => {
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { add: ['CAP_SYS_ADMIN'] } };
  const spec = { containers: [{ ...container, securityContext }] };
  const { errors, stored } = create(pod, { spec });
  expect(errors).toEqual([
    expect.stringMatching(/^spec.containers\[0\].securityContext: Invalid value: .*CAP_SYS_ADMIN$/),
  ]);
  expect(update(pod, stored, { spec }).errors).toEqual([]);
});

it('a Pod of Windows has nothing of Linux, and one of Linux nothing of Windows', () => {
  const securityContext = { runAsUser: 1, windowsOptions: { runAsUserName: 'u' } };
  const spec = { containers: [{ ...container, securityContext }], hostPID: true, securityContext };
  expect(create(pod, { spec: { ...spec, os: { name: 'windows' } } }).errors).toEqual([
    'spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod',
    'spec.hostPID: Forbidden: cannot be set for a windows pod',
    'spec.containers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod',
  ]);
  expect(create(pod, { spec: { ...spec, os: { name: 'linux' } } }).errors).toEqual([
    'spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod',
    'spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod',
  ]);
});

it('shares the processes of the host or of its containers, not both', () => {
  const { errors } = create(pod, {
    spec: { containers: [container], hostPID: true, shareProcessNamespace: true },
  });
  expect(errors).toEqual([
    'spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled',
  ]);
});
