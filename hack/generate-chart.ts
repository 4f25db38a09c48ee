/**
 * Writes the Helm chart deploy/chart from the kustomize base and its components, so that they cannot drift apart:
 * every manifest is copied, with template expressions in the few places that values.yaml names.
 *
 * `node hack/generate-chart.ts` writes; test/integration/chart.test.ts fails when the files are not what it would write.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMap, isSeq, parse, parseDocument, stringify } from 'yaml';
import { controllerFlags } from '../src/flags/controller.ts';
import { nodeFlags } from '../src/flags/node.ts';
import { type Flag, longName, type Table } from '../src/flags/readers.ts';
import { routerFlags } from '../src/flags/router.ts';
import { listAt, recordAt, textAt } from '../src/objects/json.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const namespace = 'servicenet-system';

/** A manifest of the base or a component, and the condition that switches it on; absent: always there. */
interface Source {
  readonly path: string;
  readonly when?: string;
}

/** The components that add to the agent of nodes, in their order in its arguments, and the values that switch them on. */
const agentComponents = {
  node: 'node.enabled',
  announce: 'announce.enabled',
  egress: 'announce.egress',
  policy: 'policy.enabled',
  flows: 'flows.enabled',
} as const;
const hasAgent = 'or .Values.node.enabled .Values.announce.enabled .Values.policy.enabled';

const sources: readonly Source[] = [
  { path: 'base/service-account.yaml' },
  ...whole('base/service-allocation-', 'controllers.serviceAllocation'),
  ...whole('base/load-balancer-', 'controllers.loadBalancer'),
  { path: 'base/role.yaml' },
  { path: 'base/role-binding.yaml' },
  { path: 'base/deployment.yaml' },
  { path: 'base/pod-disruption-budget.yaml' },
  { path: 'base/service.yaml' },
  { path: 'base/network-policy.yaml', when: 'networkPolicy.enabled' },
  { path: 'components/monitoring/service-monitor.yaml', when: 'serviceMonitor.enabled' },
  ...whole('components/endpoints/', 'controllers.endpoints'),
  ...whole('components/egress-router/', 'controllers.egressRouter'),
  ...whole('components/attachments/', 'controllers.attachments'),
  { path: 'components/agent/service-account.yaml', when: hasAgent },
  { path: 'components/agent/daemon-set.yaml', when: hasAgent },
  ...whole('components/node/', 'node.enabled'),
  ...whole('components/announce/', 'announce.enabled'),
  { path: 'components/announce/role.yaml', when: 'announce.enabled' },
  { path: 'components/announce/role-binding.yaml', when: 'announce.enabled' },
  ...whole('components/egress/', 'announce.egress'),
  ...whole('components/policy/', 'policy.enabled'),
  ...[
    ...['cluster-role', 'cluster-role-binding', 'role', 'role-binding'],
    ...['viewer-cluster-role', 'viewer-role'],
  ].map((name) => ({ path: `components/flows/${name}.yaml`, when: 'flows.enabled' })),
  ...[
    ...['service-account', 'cluster-role', 'cluster-role-binding', 'role', 'role-binding'],
    ...['ingress-class', 'deployment', 'pod-disruption-budget', 'service'],
  ].map((name) => ({ path: `components/router/${name}.yaml`, when: 'router.enabled' })),
];

const definitions = ['servicenet.dev_addresspools.yaml', 'servicenet.dev_bgppeers.yaml'];

/**
 * Templates for names in a release, where the manifests have one that begins with `servicenet` (a second release in the
 * cluster has others), and for the label by which selectors find its Pods.
 */
const definedNames = `{{- define "servicenet.name" -}}
{{ default .Release.Name .Values.fullnameOverride }}
{{- end }}
{{- define "servicenet.label" -}}
{{ default (include "servicenet.name" .) .Values.nameOverride }}
{{- end }}
`;

function named(name: string): string {
  return `"{{ include "servicenet.name" . }}${name.slice('servicenet'.length)}"`;
}

function labelled(name: string): string {
  return `"{{ include "servicenet.label" . }}${name.slice('servicenet'.length)}"`;
}

/** What a release names for itself. */
const ownNames: readonly (readonly [RegExp, (name: string) => string])[] = [
  [/(?<=^ *(?:- )?(?:name|serviceAccountName): )servicenet(?:-[a-z-]+)?$/gm, (name) => named(name)],
  [/(?<=^ *resourceNames: \[ )servicenet(?:-[a-z-]+)?(?= \]$)/gm, (name) => named(name)],
  [/(?<=^ *app\.kubernetes\.io\/name: )servicenet(?:-[a-z-]+)?$/gm, labelled],
];

/** What the component leaves to its users: by which address nodes reach the API server without a Service. */
const nodeConfigMap = `{{- if .Values.node.enabled }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${named('servicenet-node')}
  namespace: {{ .Release.Namespace }}
  labels:
    app.kubernetes.io/name: ${labelled('servicenet-node')}
data:
  KUBERNETES_SERVICE_HOST: {{ .Values.node.apiServer.host | quote }}
  KUBERNETES_SERVICE_PORT: {{ .Values.node.apiServer.port | quote }}
{{- end }}
`;

/** What `helm install` prints. */
const notes = `servicenet runs in the namespace {{ .Release.Namespace }}.

LoadBalancer Services wait for addresses: now create a pool, of addresses of your network that nothing else uses.

  kubectl apply -f - <<EOF
  apiVersion: servicenet.dev/v1alpha1
  kind: AddressPool
  metadata:
    name: default
  spec:
    addresses: [ 192.168.1.240-192.168.1.250 ]
  EOF
  kubectl get addresspools

With announce.enabled the nodes announce these addresses (docs/announcing.md).
`;

/** The ClusterRole of some controllers and its binding. */
function whole(prefix: string, when: string): Source[] {
  return ['cluster-role.yaml', 'cluster-role-binding.yaml'].map((file) => ({
    path: `${prefix}${file}`,
    when,
  }));
}

/** Values of the base that users of the chart may change: where they are in the Deployment, and their names. */
const deploymentValues: readonly (readonly [path: readonly (string | number)[], value: string])[] = [
  [['spec', 'replicas'], 'replicas'],
  [['spec', 'template', 'spec', 'priorityClassName'], 'priorityClassName'],
  [['spec', 'template', 'spec', 'containers', 0, 'imagePullPolicy'], 'image.pullPolicy'],
  [['spec', 'template', 'spec', 'containers', 0, 'resources'], 'resources'],
];
/** The same of the router's Deployment. */
const routerValues: typeof deploymentValues = [
  [['spec', 'replicas'], 'router.replicas'],
  [['spec', 'template', 'spec', 'containers', 0, 'imagePullPolicy'], 'image.pullPolicy'],
  [['spec', 'template', 'spec', 'containers', 0, 'resources'], 'router.resources'],
];
/** Its flags that depend on the release, by their beginnings. */
const routerExpressions: Readonly<Record<string, string>> = {
  '--ingress-class=': '{{ printf "--ingress-class=%s" .Values.router.ingressClass | quote }}',
  '--publish-service=':
    '"--publish-service={{ .Release.Namespace }}/{{ include "servicenet.name" . }}-router"',
  '--lease-namespace=': '"--lease-namespace={{ .Release.Namespace }}"',
  '--log-level=': '{{ printf "--log-level=%s" .Values.logLevel | quote }}',
};
/** The same of the agent's DaemonSet. */
const daemonSetValues: typeof deploymentValues = [
  [['spec', 'template', 'spec', 'containers', 0, 'imagePullPolicy'], 'image.pullPolicy'],
  [['spec', 'template', 'spec', 'containers', 0, 'resources'], 'agent.resources'],
];
const image = ['spec', 'template', 'spec', 'containers', 0, 'image'] as const;
const args = ['spec', 'template', 'spec', 'containers', 0, 'args'] as const;

/** The flag of the base and of the components that add controllers, by what is switched on. */
const controllersFlag = [
  '--controllers=*',
  '{{ ternary "" ",-service-allocation-controller" .Values.controllers.serviceAllocation }}',
  '{{ ternary "" ",-load-balancer-controller" .Values.controllers.loadBalancer }}',
  ...[
    ['endpoints', 'controllers.endpoints'],
    ['egress-router', 'controllers.egressRouter'],
    ['attachments', 'controllers.attachments'],
    ['egress', 'announce.egress'],
  ].map(
    ([component = '', value = '']) => `{{ ternary ",${addedControllers(component)}" "" .Values.${value} }}`,
  ),
].join('');

type Blocks = readonly (readonly [after: RegExp, block: readonly string[]])[];

function more(args: string): readonly string[] {
  return [`{{- range .Values.${args} }}`, '- {{ toJson . }}', '{{- end }}'];
}

function entries(map: string): readonly string[] {
  return [`{{- range $key, $value := .Values.${map} }}`, '{{ $key }}: {{ toJson $value }}', '{{- end }}'];
}

/** Labels and annotations of the Pods: behind those that they have. */
const podBlocks: Blocks = [
  [/^( +)app\.kubernetes\.io\/name: .*\n(?= +annotations:\n)/m, entries('podLabels')],
  [/^( +)kubectl\.kubernetes\.io\/default-container: .*\n/m, entries('podAnnotations')],
];

/** Lists and maps that are left out while they are empty: the line of the Deployment that they follow, and what. */
const deploymentBlocks: Blocks = [
  [
    /^( +)priorityClassName: .*\n/m,
    ['imagePullSecrets', 'nodeSelector', 'tolerations', 'topologySpreadConstraints'].flatMap((name) => [
      `{{- with .Values.${name} }}`,
      `${name}: {{ toJson . }}`,
      '{{- end }}',
    ]),
  ],
  [/^( +)- --log-format=.*\n/m, more('extraArgs')],
  ...podBlocks,
];
/** Values of 0.2.0's three DaemonSets that the one does not have: refused with the new name. */
const refusals = ['node', 'announce', 'policy'].flatMap((name) => [
  `{{- with .Values.${name}.resources }}`,
  `{{ fail "${name}.resources: all features run in one process now: set agent.resources" }}`,
  '{{- end }}',
]);
/** The one flag of the agent that depends on the release. */
const flowsNamespace = '--flows-namespace=';
const daemonSetBlocks: Blocks = [
  [
    /^( +)priorityClassName: .*\n/m,
    ['{{- with .Values.imagePullSecrets }}', 'imagePullSecrets: {{ toJson . }}', '{{- end }}'],
  ],
  [
    /^( +)- --log-format=.*\n(?= +env:)/m,
    [
      ...Object.entries(agentComponents).flatMap(([name, value]) => [
        `{{- if .Values.${value} }}`,
        ...agentAdditions(name).args.map(
          (arg) =>
            `- ${arg.startsWith(flowsNamespace) ? `"${flowsNamespace}{{ .Release.Namespace }}"` : arg}`,
        ),
        ...(value.endsWith('.enabled') ? more(`${name}.extraArgs`) : []),
        '{{- end }}',
      ]),
      ...more('agent.extraArgs'),
    ],
  ],
  [/^( +)serviceAccountName: .*\n/m, refusals],
  ...podBlocks,
];

const routerBlocks: Blocks = [
  [
    /^( +)serviceAccountName: .*\n/m,
    ['{{- with .Values.imagePullSecrets }}', 'imagePullSecrets: {{ toJson . }}', '{{- end }}'],
  ],
  [/^( +)- --log-format=.*\n/m, more('router.extraArgs')],
  ...podBlocks,
];
const ingressClassBlocks: Blocks = [
  [
    /^( +)name: .*\n(?= +labels:\n)/m,
    [
      '{{- with .Values.router.defaultClass }}',
      'annotations:',
      "  ingressclass.kubernetes.io/is-default-class: 'true'",
      '{{- end }}',
    ],
  ],
];

/** What a component adds to the DaemonSet of the agent: members of it, and arguments. */
function agentAdditions(component: string): { readonly members: unknown; readonly args: readonly string[] } {
  const patches = listAt(parse(read(`components/${component}/kustomization.yaml`)), 'patches');
  const file = patches.map((patch) => textAt(patch, 'path')).find((path) => path !== '');
  const ofAgent = patches.filter((patch) => textAt(patch, 'target', 'name') === 'servicenet-agent');
  const members: unknown = file === undefined ? {} : parse(read(`components/${component}/${file}`));
  const args = ofAgent.flatMap((patch) => {
    const added: unknown = parse(textAt(patch, 'patch'));
    return listAt({ added }, 'added').map((each) => textAt(each, 'value'));
  });
  return { members, args };
}

/** Lines of a template for what is there where a value is true, and where it is not. */
function condition(value: string, yes: string, no: string): readonly string[] {
  const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');
  return [
    `{{- if .Values.${value} }}`,
    ...lines(yes),
    ...(no === '' ? [] : ['{{- else }}', ...lines(no)]),
    '{{- end }}',
  ];
}

/**
 * Puts marks into a manifest where a patch of a component changes it, as kustomize's strategic merge does: maps member by
 * member, lists by the names of their items.
 *
 * @param mark makes one, of the YAML with the patch and of that without it.
 */
function choose(
  document: ReturnType<typeof parseDocument>,
  path: readonly (string | number)[],
  patch: unknown,
  mark: (yes: string, no: string) => string,
): void {
  const yaml = (value: unknown): string => stringify(value, { singleQuote: true, lineWidth: 0 });
  for (const [key, value] of Object.entries(recordAt(patch))) {
    const at = [...path, key];
    const before: unknown = document.getIn(at);
    if (isMap(before)) choose(document, at, value, mark);
    else if (isSeq(before) && Array.isArray(value)) {
      for (const item of value) {
        const i = before.items.findIndex((each) => isMap(each) && each.get('name') === textAt(item, 'name'));
        if (i < 0) before.items.unshift(document.createNode(mark(yaml([item]), '')));
        else choose(document, [...at, i], item, mark);
      }
    } else if (before !== value) {
      document.setIn(
        [
          ...path,
          mark(
            value === null ? '' : yaml({ [key]: value }),
            before === undefined ? '' : yaml({ [key]: before }),
          ),
        ],
        true,
      );
      document.deleteIn(at);
    }
  }
}

/** The files of the chart by path. */
export function chartFiles(): Map<string, string> {
  const files = new Map<string, string>();
  const { name, version, description } = readPackage();
  const chart = { apiVersion: 'v2', name, description, type: 'application', version, appVersion: version };
  files.set(
    'Chart.yaml',
    `${generated}${stringify({ ...chart, kubeVersion: '>=1.31.0-0' }, { singleQuote: true })}`,
  );
  files.set('values.yaml', `${generated}${valuesText()}`);
  files.set('values.schema.json', `${JSON.stringify(valuesSchema(), undefined, 2)}\n`);
  for (const file of definitions) files.set(`crds/${file}`, read(`crds/${file}`));
  for (const source of sources) files.set(`templates/${templateName(source)}`, template(source));
  files.set('templates/node-config-map.yaml', generated + nodeConfigMap);
  files.set('templates/_helpers.tpl', definedNames);
  files.set('templates/NOTES.txt', notes);
  return files;
}

const generated = '# Written by hack/generate-chart.ts from the kustomize base. Do not edit.\n';

function template({ path, when }: Source): string {
  const document = parseDocument(read(path));
  const kind = String(document.get('kind'));
  checkArguments(path, document.toJS(), kind === 'DaemonSet' ? Object.keys(agentComponents) : []);
  const placed = new Map<string, string>();
  const place = (expression: string): string => {
    const mark = `PLACE${placed.size}HERE`;
    placed.set(mark, expression);
    return mark;
  };
  const imageText = '{{ printf "%s:%s" .Values.image.repository .Values.image.tag | quote }}';
  const logLevel = '{{ printf "--log-level=%s" .Values.logLevel | quote }}';
  const [, component = ''] = path.split('/');
  if (kind === 'Deployment' && component === 'router') {
    for (const [at, value] of routerValues) document.setIn(at, place(`{{ toJson .Values.${value} }}`));
    document.setIn(image, place(imageText));
    const flags: unknown = document.getIn(args);
    if (!isSeq(flags)) throw new Error(`${path} has no flags`);
    for (const [i, flag] of flags.items.entries()) {
      const known = Object.keys(routerExpressions).find((name) => String(flag).startsWith(name));
      if (known !== undefined) document.setIn([...args, i], place(routerExpressions[known] ?? ''));
    }
  } else if (kind === 'Deployment') {
    for (const [at, value] of deploymentValues) document.setIn(at, place(`{{ toJson .Values.${value} }}`));
    document.setIn(image, place(imageText));
    document.setIn([...args, 1], place(controllersFlag));
    document.setIn([...args, 5], place(logLevel));
    document.setIn(
      [...args, 4],
      place(`"--leader-elect-resource-name={{ include "servicenet.name" . }}-controller"`),
    );
  }
  if (kind === 'IngressClass')
    document.setIn(['metadata', 'name'], place('{{ .Values.router.ingressClass | quote }}'));
  const chosen: [mark: string, lines: readonly string[]][] = [];
  if (kind === 'DaemonSet') {
    for (const [at, value] of daemonSetValues) document.setIn(at, place(`{{ toJson .Values.${value} }}`));
    document.setIn(image, place(imageText));
    const flags: unknown = document.getIn(args);
    if (!isSeq(flags)) throw new Error(`${path} has no flags`);
    for (const [i, flag] of flags.items.entries()) {
      if (String(flag).startsWith('--log-level=')) document.setIn([...args, i], place(logLevel));
    }
    for (const [name, value] of Object.entries(agentComponents)) {
      choose(document, [], agentAdditions(name).members, (yes, no) => {
        const mark = `CHOOSE${chosen.length}HERE`;
        chosen.push([mark, condition(value, yes, no)]);
        return mark;
      });
    }
  }
  const scoped = ['ClusterRole', 'ClusterRoleBinding', 'IngressClass'].includes(kind);
  if (!scoped) document.setIn(['metadata', 'namespace'], place('{{ .Release.Namespace }}'));
  const subjects = document.get('subjects');
  if (isSeq(subjects)) {
    for (const subject of subjects.items) {
      if (isMap(subject) && subject.has('namespace'))
        subject.set('namespace', place('{{ .Release.Namespace }}'));
    }
  }
  let text = document.toString({ lineWidth: 0 });
  for (const [mark, lines] of chosen) {
    text = text.replace(new RegExp(`^( *)(?:- )?${mark}(?:: true)?\\n`, 'm'), (_, indent: string) =>
      lines.map((line) => `${indent}${line}\n`).join(''),
    );
  }
  if (kind === 'DaemonSet') {
    text = text.replaceAll(/(?<=^ *image: )servicenet:.*/gm, () => place(imageText));
    text = text.replaceAll(/(?<=^ *imagePullPolicy: )[A-Z]\w+$/gm, (policy) =>
      placed.has(policy) ? policy : place('{{ toJson .Values.image.pullPolicy }}'),
    );
  }
  for (const [pattern, own] of ownNames) text = text.replaceAll(pattern, (name) => own(name));
  if (text.includes(namespace)) throw new Error(`${path} names the namespace in a place that is not known`);
  for (const [mark, expression] of placed) text = text.replace(mark, () => expression);
  const blocks: Blocks =
    {
      ...{ Deployment: component === 'router' ? routerBlocks : deploymentBlocks },
      ...{ IngressClass: ingressClassBlocks, DaemonSet: daemonSetBlocks },
      ServiceMonitor: [
        [/^( +)app\.kubernetes\.io\/name: .*\n(?=spec:)/m, entries('serviceMonitor.labels')],
      ] as const,
    }[kind] ?? [];
  for (const [after, block] of blocks) {
    text = text.replace(
      after,
      (line, indent: string) => line + block.map((each) => `${indent}${each}\n`).join(''),
    );
  }
  // The values' is for the controllers: that of the router keeps its own replicas apart.
  if (component !== 'router') {
    text = text.replace(
      /^( +)affinity:\n(?:\1 +.*\n)+/m,
      (base, indent: string) =>
        `${indent}{{- if .Values.affinity }}\n${indent}affinity: {{ toJson .Values.affinity }}\n${indent}{{- else }}\n${base}${indent}{{- end }}\n`,
    );
  }
  // Whatever begins with braces in a manifest would be an expression to Helm.
  if (text.replaceAll(/\{\{-? [^}]+ \}\}/g, '').includes('{{'))
    throw new Error(`${path} has braces of its own`);
  if (when === undefined) return generated + text;
  return `${generated}{{- if ${when === hasAgent ? when : `.Values.${when}`} }}\n${text}{{- end }}\n`;
}

/** The commands that run in the chart's Pods. */
const commandTables: ReadonlyMap<string, Table> = new Map<string, Table>([
  ['controller', controllerFlags],
  ['node', nodeFlags],
  ['router', routerFlags],
]);

/**
 * @param components add to the arguments.
 * @throws {Error} where a container has an argument that its command does not take.
 */
function checkArguments(path: string, manifest: unknown, components: readonly string[]): void {
  const pod = recordAt(manifest, 'spec', 'template', 'spec');
  for (const container of listAt(pod, 'containers')) {
    const added = components.flatMap((name) => agentAdditions(name).args);
    const [command, ...args] = [...listAt(container, 'args').map(String), ...added];
    const table = commandTables.get(command ?? '');
    if (table === undefined) throw new Error(`${path}: there is no command ${command ?? ''}`);
    const flags = new Map(flagsOf(table).map((flag) => [longName(flag.flag), flag]));
    const given = new Map<string, string | undefined>();
    for (const arg of args) {
      const [name = '', value] = arg.split(/=(.*)/s);
      const flag = flags.get(name);
      if (flag === undefined) throw new Error(`${path}: ${command ?? ''} has no flag ${name}`);
      if (flag.flag.includes('<') !== (value !== undefined)) throw new Error(`${path}: ${arg} is incomplete`);
      const before = flag.isList === true ? given.get(name) : undefined;
      given.set(name, before === undefined ? value : `${before},${value ?? ''}`);
    }
    for (const [name, value] of given) {
      // What the kubelet puts in is not known here.
      if (value?.includes('$(') !== true) flags.get(name)?.read(value ?? true);
    }
  }
}

function flagsOf(table: Table): readonly Flag<unknown>[] {
  return Object.values(table).flatMap((entry) => ('flags' in entry ? flagsOf(entry.flags) : [entry]));
}

/** What users of the chart may say: a default, what it is for, and its JSON schema. */
interface Value {
  readonly name: string;
  readonly value: unknown;
  readonly comment: string;
  readonly schema: object;
}

const text = { type: 'string', minLength: 1 };
const boolean = { type: 'boolean' };
const texts = { type: 'object', additionalProperties: { type: 'string' } };
const moreFlags = { type: 'array', items: { type: 'string', pattern: '^--' } };

/** An object with all of these members and no others. */
function members(properties: Readonly<Record<string, object>>): object {
  const required = Object.keys(properties);
  return { type: 'object', additionalProperties: false, required, properties };
}

function values(): readonly Value[] {
  const deployment: unknown = parse(read('base/deployment.yaml'));
  const pod = recordAt(deployment, 'spec', 'template', 'spec');
  const [container] = listAt(pod, 'containers');
  const routerDeployment: unknown = parse(read('components/router/deployment.yaml'));
  const [routerContainer] = listAt(routerDeployment, 'spec', 'template', 'spec', 'containers');
  const [repository = '', tag = ''] = textAt(container, 'image').split(':');
  const agentDaemonSet: unknown = parse(read('components/agent/daemon-set.yaml'));
  const [agent] = listAt(agentDaemonSet, 'spec', 'template', 'spec', 'containers');
  /** A feature of the agent; `resources` had each while it was a process of its own. */
  const feature = (properties: Readonly<Record<string, object>>): object => {
    const schema = members({ enabled: boolean, ...properties, extraArgs: moreFlags });
    return { ...schema, properties: { ...recordAt(schema, 'properties'), resources: { type: 'object' } } };
  };
  return [
    {
      name: 'replicas',
      value: recordAt(deployment, 'spec')['replicas'],
      comment: 'One replica works; the others take over if it fails.',
      schema: { type: 'integer', minimum: 0 },
    },
    {
      name: 'image',
      value: { repository, tag, pullPolicy: textAt(container, 'imagePullPolicy') },
      comment: 'Build the image with the Dockerfile; none is published.',
      schema: members({
        ...{ repository: text, tag: text },
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
      }),
    },
    {
      name: 'imagePullSecrets',
      value: [],
      comment: 'For a registry that requires credentials: a list of names, as in a Pod.',
      schema: { type: 'array', items: members({ name: text }) },
    },
    {
      name: 'controllers',
      value: {
        ...{ serviceAllocation: true, loadBalancer: true },
        ...{ endpoints: false, egressRouter: false, attachments: false },
      },
      comment:
        'The controllers to run, each with its permissions: the audit of cluster IPs and node ports; the load balancer;\n' +
        '# Endpoints and EndpointSlices, for clusters whose kube-controller-manager does not write them; the objects of\n' +
        '# EgressRouters (docs/kinds/egress-router.md); the addresses of further networks of Pods\n' +
        '# (docs/kinds/network-attachment-definition.md). The last two need the definitions of their kinds: deploy/crds.',
      schema: members({
        ...{ serviceAllocation: boolean, loadBalancer: boolean },
        ...{ endpoints: boolean, egressRouter: boolean, attachments: boolean },
      }),
    },
    {
      name: 'extraArgs',
      value: [],
      comment: 'More flags: --lb-class=…, --service-node-port-range=… (docs/configuration.md).',
      schema: moreFlags,
    },
    {
      name: 'logLevel',
      value: flagOf(container, '--log-level'),
      comment: 'trace, debug, info, warn or error.',
      schema: { enum: ['trace', 'debug', 'info', 'warn', 'error'] },
    },
    {
      name: 'resources',
      value: recordAt(container, 'resources'),
      comment: 'Resources of each Pod.',
      schema: { type: 'object' },
    },
    {
      name: 'priorityClassName',
      value: pod['priorityClassName'],
      comment: 'Priority class of each Pod; "" for none.',
      schema: { type: 'string' },
    },
    {
      name: 'nodeSelector',
      value: {},
      comment: 'Node selector and tolerations, as in a Pod.',
      schema: texts,
    },
    { name: 'tolerations', value: [], comment: '', schema: { type: 'array', items: { type: 'object' } } },
    {
      name: 'affinity',
      value: {},
      comment: 'Affinity, as in a Pod; by default the replicas are on different nodes where that can be.',
      schema: { type: 'object' },
    },
    {
      name: 'topologySpreadConstraints',
      value: [],
      comment: 'How the replicas are spread, as in a Pod.',
      schema: { type: 'array', items: { type: 'object' } },
    },
    {
      name: 'podLabels',
      value: {},
      comment: 'More labels and annotations of all Pods.',
      schema: texts,
    },
    { name: 'podAnnotations', value: {}, comment: '', schema: texts },
    {
      name: 'nameOverride',
      value: '',
      comment: 'Instead of the name of the release: in the label app.kubernetes.io/name, and in all names.',
      schema: { type: 'string' },
    },
    { name: 'fullnameOverride', value: '', comment: '', schema: { type: 'string' } },
    {
      name: 'agent',
      value: { extraArgs: [], resources: recordAt(agent, 'resources') },
      comment:
        'The agent, one process on every node for node, announce and policy, where one of these is enabled. The namespace\n' +
        '# must admit privileged Pods.',
      schema: members({ extraArgs: moreFlags, resources: { type: 'object' } }),
    },
    {
      name: 'node',
      value: {
        enabled: false,
        apiServer: { host: '', port: 6443 },
        extraArgs: [],
      },
      comment:
        'Forwarding of Services, for clusters without kube-proxy (docs/replacing-kube-proxy.md). apiServer: the address by which\n' +
        '# nodes reach the API server without a Service.',
      schema: {
        ...feature({
          apiServer: members({
            host: { type: 'string' },
            port: { type: 'integer', minimum: 1, maximum: 65535 },
          }),
        }),
        if: { properties: { enabled: { const: true } } },
        then: { properties: { apiServer: { properties: { host: { minLength: 1 } } } } },
      },
    },
    {
      name: 'announce',
      value: { enabled: false, egress: false, extraArgs: [] },
      comment:
        'The addresses of load balancers, announced from every node by ARP, NDP and BGP\n' +
        '# (docs/announcing.md). egress: EgressIPs and EgressQoSes too, whose\n' +
        '# definitions must be there (docs/kinds/egress-ip.md).',
      schema: {
        ...feature({ egress: boolean }),
        if: { properties: { egress: { const: true } } },
        then: { properties: { enabled: { const: true } } },
      },
    },
    {
      name: 'policy',
      value: { enabled: false, extraArgs: [] },
      comment: 'NetworkPolicies on every node, for clusters where nothing enforces them (docs/policies.md).',
      schema: feature({}),
    },
    {
      name: 'flows',
      value: { enabled: false, extraArgs: [] },
      comment:
        'The flows of nodes, for who may get /flows, on port 10263 of every node that has the agent, which node or policy\n' +
        '# switches on (docs/flows.md). Bind the roles …-flows-viewer to who looks.',
      schema: members({ enabled: boolean, extraArgs: moreFlags }),
    },
    {
      name: 'router',
      value: {
        enabled: false,
        replicas: recordAt(routerDeployment, 'spec')['replicas'],
        ingressClass: flagOf(routerContainer, '--ingress-class'),
        defaultClass: false,
        extraArgs: [],
        resources: recordAt(routerContainer, 'resources'),
      },
      comment:
        'The router for Ingresses and Routes, behind a Service of type LoadBalancer (docs/router.md). ingressClass: the name\n' +
        '# of its IngressClass; defaultClass: for Ingresses that name none.',
      schema: members({
        enabled: boolean,
        replicas: { type: 'integer', minimum: 0 },
        ingressClass: text,
        defaultClass: boolean,
        extraArgs: moreFlags,
        resources: { type: 'object' },
      }),
    },
    {
      name: 'networkPolicy',
      value: { enabled: true },
      comment: 'Admit only traffic to the metrics port, and let out only traffic to the API server.',
      schema: members({ enabled: boolean }),
    },
    {
      name: 'serviceMonitor',
      value: { enabled: false, labels: {} },
      comment: 'For clusters with the Prometheus Operator, which selects by labels.',
      schema: members({ enabled: boolean, labels: texts }),
    },
  ];
}

function valuesText(): string {
  return values()
    .map(
      ({ name, value, comment }) =>
        `${comment === '' ? '' : `# ${comment}\n`}${stringify({ [name]: value }, { singleQuote: true })}`,
    )
    .join('');
}

/** Helm refuses values that do not fit, misspelt ones among them. `global` is Helm's own. */
function valuesSchema(): object {
  const properties = Object.fromEntries(values().map(({ name, schema }) => [name, schema]));
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...members(properties),
    properties: { ...properties, global: { type: 'object' } },
  };
}

/** The names that a component adds to the flag. */
function addedControllers(component: string): string {
  const patch = read(`components/${component}/kustomization.yaml`);
  const names = /value: --controllers=(\S+)/.exec(patch)?.[1];
  if (names === undefined) throw new Error(`the component ${component} adds no controllers`);
  return names;
}

function flagOf(container: unknown, flag: string): string {
  const found = listAt(container, 'args').find(
    (arg) => typeof arg === 'string' && arg.startsWith(`${flag}=`),
  );
  return typeof found === 'string' ? found.slice(flag.length + 1) : '';
}

function templateName({ path }: Source): string {
  const [kind = '', component = '', file = ''] = path.split('/');
  return kind === 'base' ? component : `${component}-${file}`;
}

function readPackage(): { name: string; version: string; description: string } {
  const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return {
    name: textAt(manifest, 'name'),
    version: textAt(manifest, 'version'),
    description: textAt(manifest, 'description'),
  };
}

function read(path: string): string {
  return readFileSync(join(root, 'deploy', path), 'utf8');
}

if (import.meta.main) {
  const chart = join(root, 'deploy', 'chart');
  rmSync(chart, { recursive: true, force: true });
  for (const [path, text] of chartFiles()) {
    mkdirSync(dirname(join(chart, path)), { recursive: true });
    writeFileSync(join(chart, path), text);
  }
  process.stdout.write(`${readdirSync(join(chart, 'templates')).length} templates in ${chart}\n`);
}
