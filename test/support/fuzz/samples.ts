import { fixedAuthority, fixedStubRequest } from '../certificates.ts';

/** Objects that a server takes, by `group/plural`, to be spoilt by the fuzz test. */
type Sample = Readonly<Record<string, unknown>>;

const template = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'nginx', ports: [{ name: 'http', containerPort: 80 }] }] },
};
const backend = { service: { name: 'a', port: { number: 80 } } };

const claim = {
  devices: {
    requests: [
      {
        name: 'gpu',
        exactly: {
          deviceClassName: 'gpu.example.com',
          selectors: [{ cel: { expression: 'device.attributes["gpu.example.com"].model == "x"' } }],
          tolerations: [{ key: 'a', operator: 'Exists' }],
        },
      },
      { name: 'any', firstAvailable: [{ name: 'a', deviceClassName: 'gpu.example.com', count: 2 }] },
    ],
    constraints: [{ requests: ['gpu'], matchAttribute: 'gpu.example.com/model' }],
    config: [{ requests: ['any/a'], opaque: { driver: 'gpu.example.com', parameters: { a: 1 } } }],
  },
};

export const samples: ReadonlyMap<string, Sample> = new Map<string, Sample>([
  [
    '/services',
    {
      spec: {
        type: 'NodePort',
        selector: { app: 'web' },
        ports: [
          { name: 'a', port: 80, targetPort: 'http', protocol: 'TCP' },
          { name: 'b', port: 53, protocol: 'UDP', appProtocol: 'example.com/x' },
        ],
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
        externalIPs: ['192.0.2.9'],
        ipFamilyPolicy: 'PreferDualStack',
        internalTrafficPolicy: 'Local',
        externalTrafficPolicy: 'Local',
      },
    },
  ],
  [
    '/endpoints',
    {
      subsets: [
        {
          addresses: [{ ip: '192.0.2.1', hostname: 'h', targetRef: { kind: 'Pod', name: 'p' } }],
          notReadyAddresses: [{ ip: '192.0.2.2' }],
          ports: [{ name: 'a', port: 80, protocol: 'TCP' }],
        },
      ],
    },
  ],
  [
    'discovery.k8s.io/endpointslices',
    {
      addressType: 'IPv4',
      endpoints: [
        { addresses: ['192.0.2.1'], conditions: { ready: true }, hints: { forZones: [{ name: 'z' }] } },
      ],
      ports: [{ name: 'a', port: 80, protocol: 'TCP' }],
    },
  ],
  ['/configmaps', { data: { a: 'b' }, binaryData: { c: 'AAE=' }, immutable: false }],
  ['/secrets', { type: 'Opaque', data: { a: 'Yg==' }, stringData: { c: 'd' } }],
  ['/serviceaccounts', { automountServiceAccountToken: false, secrets: [{ name: 'a' }] }],
  ['/namespaces', { spec: { finalizers: ['kubernetes'] } }],
  ['/nodes', { spec: { podCIDR: '10.1.0.0/24', taints: [{ key: 'a', effect: 'NoSchedule' }] } }],
  ['/pods', template],
  ['/podtemplates', { template }],
  ['/replicationcontrollers', { spec: { replicas: 1, selector: { app: 'web' }, template } }],
  ['/resourcequotas', { spec: { hard: { services: '100000', 'requests.cpu': '100' } } }],
  ['/limitranges', { spec: { limits: [{ type: 'Container', max: { cpu: '2' }, min: { cpu: '1m' } }] } }],
  [
    '/persistentvolumes',
    {
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' } },
    },
  ],
  [
    '/persistentvolumeclaims',
    { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
  ],
  ['/events', { involvedObject: { kind: 'Pod', name: 'a' }, reason: 'R', message: 'm', type: 'Normal' }],
  ...['deployments', 'replicasets', 'daemonsets', 'statefulsets'].map((plural): [string, Sample] => [
    `apps/${plural}`,
    { spec: { selector: { matchLabels: { app: 'web' } }, template } },
  ]),
  ['batch/jobs', { spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } } }],
  [
    'batch/cronjobs',
    {
      spec: {
        schedule: '*/5 * * * *',
        jobTemplate: { spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } } },
      },
    },
  ],
  [
    'networking.k8s.io/ingresses',
    {
      spec: {
        defaultBackend: backend,
        tls: [{ hosts: ['a.example'], secretName: 's' }],
        rules: [{ host: 'a.example', http: { paths: [{ path: '/x', pathType: 'Prefix', backend }] } }],
      },
    },
  ],
  ['networking.k8s.io/ingressclasses', { spec: { controller: 'example.com/x' } }],
  [
    'networking.k8s.io/networkpolicies',
    {
      spec: {
        podSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] },
        ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }] }],
        egress: [{ ports: [{ port: 80, endPort: 90, protocol: 'TCP' }] }],
        policyTypes: ['Ingress', 'Egress'],
      },
    },
  ],
  [
    'networking.k8s.io/ipaddresses',
    { spec: { parentRef: { resource: 'services', namespace: 'fuzz', name: 'a' } } },
  ],
  ['networking.k8s.io/servicecidrs', { spec: { cidrs: ['10.200.0.0/24'] } }],
  ['coordination.k8s.io/leases', { spec: { holderIdentity: 'me', leaseDurationSeconds: 15 } }],
  [
    'rbac.authorization.k8s.io/roles',
    { rules: [{ apiGroups: [''], resources: ['services'], verbs: ['get'] }] },
  ],
  [
    'rbac.authorization.k8s.io/rolebindings',
    {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'a' },
      subjects: [{ kind: 'User', name: 'u', apiGroup: 'rbac.authorization.k8s.io' }],
    },
  ],
  [
    'policy/poddisruptionbudgets',
    { spec: { minAvailable: '50%', selector: { matchLabels: { app: 'web' } } } },
  ],
  [
    'apiextensions.k8s.io/customresourcedefinitions',
    {
      spec: {
        group: 'fuzz.example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget', shortNames: ['w'] },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: {
              status: {},
              scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' },
            },
            additionalPrinterColumns: [{ name: 'N', type: 'integer', jsonPath: '.spec.n' }],
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: {
                  spec: {
                    type: 'object',
                    properties: {
                      n: { type: 'integer', minimum: 0, maximum: 9, default: 1 },
                      text: { type: 'string', pattern: '^[a-z]*$', maxLength: 9 },
                      list: {
                        type: 'array',
                        items: { type: 'object', properties: { k: { type: 'string' } }, required: ['k'] },
                        'x-kubernetes-list-type': 'map',
                        'x-kubernetes-list-map-keys': ['k'],
                      },
                      any: { 'x-kubernetes-preserve-unknown-fields': true },
                      either: { 'x-kubernetes-int-or-string': true },
                    },
                  },
                  status: { type: 'object', properties: { n: { type: 'integer' } } },
                },
              },
            },
          },
        ],
      },
    },
  ],
  [
    'fuzz.example.com/widgets',
    {
      spec: { n: 3, text: 'abc', list: [{ k: 'a' }, { k: 'b' }], any: { x: [1, { y: null }] }, either: '5%' },
    },
  ],
  ['certificates.k8s.io/clustertrustbundles', { spec: { trustBundle: fixedAuthority } }],
  [
    'certificates.k8s.io/podcertificaterequests',
    {
      spec: {
        signerName: 'example.com/signer',
        podName: 'a',
        podUID: 'b',
        serviceAccountName: 'c',
        serviceAccountUID: 'd',
        nodeName: 'e',
        nodeUID: 'f',
        stubPKCS10Request: fixedStubRequest,
      },
    },
  ],
  ['storagemigration.k8s.io/storageversionmigrations', { spec: { resource: { resource: 'pods' } } }],
  [
    'resource.k8s.io/deviceclasses',
    {
      spec: {
        selectors: [{ cel: { expression: 'device.driver == "gpu.example.com"' } }],
        config: [{ opaque: { driver: 'gpu.example.com', parameters: { a: 1 } } }],
        extendedResourceName: 'example.com/gpu',
      },
    },
  ],
  [
    'resource.k8s.io/devicetaintrules',
    { spec: { deviceSelector: { driver: 'gpu.example.com' }, taint: { key: 'a', effect: 'NoExecute' } } },
  ],
  ['resource.k8s.io/resourceclaims', { spec: claim }],
  ['resource.k8s.io/resourceclaimtemplates', { spec: { metadata: { labels: { a: 'b' } }, spec: claim } }],
  [
    'resource.k8s.io/resourceslices',
    {
      spec: {
        driver: 'gpu.example.com',
        pool: { name: 'a', generation: 1, resourceSliceCount: 1 },
        nodeName: 'a',
        devices: [
          {
            name: 'gpu-0',
            attributes: { model: { string: 'x' }, version: { version: '1.2.3' }, count: { int: 4 } },
            capacity: { memory: { value: '16Gi' } },
            taints: [{ key: 'a', value: 'b', effect: 'NoSchedule' }],
          },
        ],
      },
    },
  ],
]);
