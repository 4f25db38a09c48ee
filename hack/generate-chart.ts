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
import { listAt, recordAt, textAt } from '../src/objects/read.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const namespace = 'servicenet-system';

/** A manifest of the base or a component, and the value that switches it on; absent: always there. */
interface Source {
  readonly path: string;
  readonly when?: string;
}

const sources: readonly Source[] = [
  { path: 'base/service-account.yaml' },
  { path: 'base/cluster-role.yaml' },
  { path: 'base/cluster-role-binding.yaml' },
  { path: 'base/role.yaml' },
  { path: 'base/role-binding.yaml' },
  { path: 'base/deployment.yaml' },
  { path: 'base/pod-disruption-budget.yaml' },
  { path: 'base/service.yaml' },
  { path: 'base/network-policy.yaml', when: 'networkPolicy.enabled' },
  { path: 'components/monitoring/service-monitor.yaml', when: 'serviceMonitor.enabled' },
  { path: 'components/endpoints/cluster-role.yaml', when: 'endpoints.enabled' },
  { path: 'components/endpoints/cluster-role-binding.yaml', when: 'endpoints.enabled' },
];

/** Values of the base that users of the chart may change: where they are in the Deployment, and their names. */
const deploymentValues: readonly (readonly [path: readonly (string | number)[], value: string])[] = [
  [['spec', 'replicas'], 'replicas'],
  [['spec', 'template', 'spec', 'priorityClassName'], 'priorityClassName'],
  [['spec', 'template', 'spec', 'containers', 0, 'imagePullPolicy'], 'image.pullPolicy'],
  [['spec', 'template', 'spec', 'containers', 0, 'resources'], 'resources'],
];
const image = ['spec', 'template', 'spec', 'containers', 0, 'image'] as const;
const args = ['spec', 'template', 'spec', 'containers', 0, 'args'] as const;

/** The files of the chart by path. */
export function chartFiles(): Map<string, string> {
  const files = new Map<string, string>();
  const { name, version, description } = readPackage();
  const chart = { apiVersion: 'v2', name, description, type: 'application', version, appVersion: version };
  files.set(
    'Chart.yaml',
    `${generated}${stringify({ ...chart, kubeVersion: '>=1.31.0-0' }, { singleQuote: true })}`,
  );
  files.set('values.yaml', `${generated}${values()}`);
  files.set('crds/servicenet.dev_addresspools.yaml', read('crds/servicenet.dev_addresspools.yaml'));
  for (const source of sources) files.set(`templates/${templateName(source)}`, template(source));
  return files;
}

const generated = '# Written by hack/generate-chart.ts from the kustomize base. Do not edit.\n';

function template({ path, when }: Source): string {
  const document = parseDocument(read(path));
  const placed = new Map<string, string>();
  const place = (expression: string): string => {
    const mark = `PLACE${placed.size}HERE`;
    placed.set(mark, expression);
    return mark;
  };
  if (document.get('kind') === 'Deployment') {
    for (const [at, value] of deploymentValues) document.setIn(at, place(`{{ toJson .Values.${value} }}`));
    document.setIn(image, place('{{ printf "%s:%s" .Values.image.repository .Values.image.tag | quote }}'));
    document.setIn([...args, 1], place('{{ printf "--controllers=%s" .Values.controllers | quote }}'));
    document.setIn([...args, 5], place('{{ printf "--log-level=%s" .Values.logLevel | quote }}'));
  }
  const scoped = ['ClusterRole', 'ClusterRoleBinding'].includes(String(document.get('kind')));
  if (!scoped) document.setIn(['metadata', 'namespace'], place('{{ .Release.Namespace }}'));
  const subjects = document.get('subjects');
  if (isSeq(subjects)) {
    for (const subject of subjects.items) {
      if (isMap(subject) && subject.has('namespace'))
        subject.set('namespace', place('{{ .Release.Namespace }}'));
    }
  }
  let text = document.toString({ lineWidth: 0 });
  if (text.includes(namespace)) throw new Error(`${path} names the namespace in a place that is not known`);
  for (const [mark, expression] of placed) text = text.replace(mark, () => expression);
  // Whatever begins with braces in a manifest would be an expression to Helm.
  if (text.replaceAll(/\{\{ [^}]+ \}\}/g, '').includes('{{'))
    throw new Error(`${path} has braces of its own`);
  return when === undefined ? generated + text : `${generated}{{- if .Values.${when} }}\n${text}{{- end }}\n`;
}

function values(): string {
  const deployment: unknown = parse(read('base/deployment.yaml'));
  const pod = recordAt(deployment, 'spec', 'template', 'spec');
  const [container] = listAt(pod, 'containers');
  const [repository = '', tag = ''] = textAt(container, 'image').split(':');
  const comments: readonly (readonly [name: string, value: unknown, comment: string])[] = [
    ['replicas', recordAt(deployment, 'spec')['replicas'], 'One works; the others take over when it goes.'],
    [
      'image',
      { repository, tag, pullPolicy: textAt(container, 'imagePullPolicy') },
      'Built with the Dockerfile.',
    ],
    ['controllers', flagOf(container, '--controllers'), 'As the flag --controllers: *, name, -name.'],
    ['logLevel', flagOf(container, '--log-level'), 'trace, debug, info, warn or error.'],
    ['resources', recordAt(container, 'resources'), 'Of each Pod.'],
    ['priorityClassName', pod['priorityClassName'], ''],
    ['networkPolicy', { enabled: true }, 'Only metrics come in, only the API server is called.'],
    ['serviceMonitor', { enabled: false }, 'For clusters with the Prometheus operator.'],
    [
      'endpoints',
      { enabled: false },
      'The rights of the endpoints controllers; name those in controllers, too.',
    ],
  ];
  return comments
    .map(
      ([name, value, comment]) =>
        `${comment === '' ? '' : `# ${comment}\n`}${stringify({ [name]: value }, { singleQuote: true })}`,
    )
    .join('');
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
