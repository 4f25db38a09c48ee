import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { chartFiles } from '../../hack/generate-chart.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { at, isRecord, isStringList, listAt, textAt } from '../../src/objects/json.ts';
import { argumentsOf } from '../support/deployed-controllers.ts';
import { kustomize, kustomizeWith, nameOf, parseManifests } from '../support/manifests.ts';
import { definedTemplates, renderTemplate } from '../support/helm-templates.ts';

const chart = 'deploy/chart';
const namespace = 'servicenet-system';

/** The chart's objects with its own values, some of them changed; CRDs come first, as Helm has it. */
function render(changed: object = {}, release = 'servicenet'): KubeObject[] {
  const values: unknown = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'));
  const crds = readdirSync(join(chart, 'crds')).map((file) =>
    readFileSync(join(chart, 'crds', file), 'utf8'),
  );
  const manifests = readdirSync(join(chart, 'templates')).filter((file) => file.endsWith('.yaml'));
  const scope = {
    Values: merged(isRecord(values) ? values : {}, changed),
    Release: { Namespace: namespace, Name: release },
  };
  const defined = definedTemplates(readFileSync(join(chart, 'templates/_helpers.tpl'), 'utf8'));
  const templates = manifests.map((file) =>
    renderTemplate(readFileSync(join(chart, 'templates', file), 'utf8'), scope, defined),
  );
  return [...crds, ...templates].flatMap(parseManifests);
}

/** Values over values, as Helm does it: maps member by member. */
function merged(values: object, changed: object): object {
  const members = Object.entries(changed).map(([name, value]: [string, unknown]) => {
    const before = at(values, name);
    return [name, isRecord(before) && isRecord(value) ? merged(before, value) : value] as const;
  });
  return { ...values, ...Object.fromEntries(members) };
}

/** Values that switch these parts of the chart on. */
function enabled(...names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, { enabled: true }]));
}

function byName(objects: readonly KubeObject[]): KubeObject[] {
  return [...objects].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** A workload whose lists on the command line are whole: components give them in parts. */
function withWholeLists(object: KubeObject): KubeObject {
  const copy = structuredClone(object);
  const [container] = listAt(copy, 'spec', 'template', 'spec', 'containers');
  const args = at(container, 'args');
  if (!isRecord(container) || !isStringList(args)) return object;
  const whole = new Map<string, string>();
  for (const word of args) {
    const [, flag = word, value] = /^(--(?:controllers|features))=(.*)$/.exec(word) ?? [];
    const before = whole.get(flag);
    whole.set(
      flag,
      value === undefined ? word : `${before === undefined ? `${flag}=` : `${before},`}${value}`,
    );
  }
  container['args'] = [...whole.values()];
  return copy;
}

describe('the Helm chart', () => {
  test('is what the generator makes of the base: run `node hack/generate-chart.ts`', () => {
    const written = readdirSync(chart, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(chart.length + 1));
    const files = chartFiles();
    expect(written.sort()).toEqual([...files.keys()].sort());
    for (const [path, text] of files) expect(readFileSync(join(chart, path), 'utf8'), path).toBe(text);
  });

  test('renders to the objects of the base, but for the namespace, which Helm makes', () => {
    const base = kustomize('deploy/base').filter(({ kind }) => kind !== 'Namespace');
    expect(byName(render())).toEqual(byName(base));
  });

  test('takes its values', () => {
    const objects = render({
      replicas: 3,
      image: { repository: 'registry.example:5000/servicenet', tag: 'v1', pullPolicy: 'Always' },
      imagePullSecrets: [{ name: 'registry' }],
      extraArgs: ['--lb-class=example.com/edge', '--no-compat'],
      nodeSelector: { 'example.com/edge': 'true' },
      tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }],
      serviceMonitor: { enabled: true, labels: {} },
      networkPolicy: { enabled: false },
    });
    const names = objects.map(nameOf);
    expect(names).toContain('ServiceMonitor/servicenet');
    expect(names).not.toContain('NetworkPolicy/servicenet');
    const deployment = objects.find(({ kind }) => kind === 'Deployment');
    expect(at(deployment, 'spec', 'replicas')).toBe(3);
    const [container] = listAt(deployment, 'spec', 'template', 'spec', 'containers');
    expect(container).toMatchObject({
      image: 'registry.example:5000/servicenet:v1',
      imagePullPolicy: 'Always',
    });
    expect(listAt(container, 'args').slice(-2)).toEqual(['--lb-class=example.com/edge', '--no-compat']);
    expect(at(deployment, 'spec', 'template', 'spec')).toMatchObject({
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { 'example.com/edge': 'true' },
      tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }],
    });
  });

  test('places, labels and annotates Pods as it is asked to', () => {
    const affinity = { nodeAffinity: {} };
    const spread = [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }];
    const objects = render({
      ...{ affinity, topologySpreadConstraints: spread },
      ...{ podLabels: { team: 'net' }, podAnnotations: { 'example.com/a': 'b' } },
      ...{
        ...enabled('node', 'announce', 'policy', 'router'),
        serviceMonitor: { enabled: true, labels: { release: 'prom' } },
      },
    });
    const kinds = ['Deployment', 'DaemonSet'];
    const templates = objects
      .filter(({ kind }) => kinds.includes(kind ?? ''))
      .map((each) => at(each, 'spec', 'template'));
    expect(templates).toHaveLength(3);
    for (const template of templates) {
      expect(at(template, 'metadata')).toMatchObject({
        labels: { team: 'net', 'app.kubernetes.io/name': expect.any(String) as string },
        annotations: {
          'example.com/a': 'b',
          'kubectl.kubernetes.io/default-container': expect.any(String) as string,
        },
      });
    }
    const deployment = objects.find(({ kind }) => kind === 'Deployment');
    expect(at(deployment, 'spec', 'template', 'spec')).toMatchObject({
      affinity,
      topologySpreadConstraints: spread,
    });
    expect(objects.find(({ kind }) => kind === 'ServiceMonitor')?.metadata.labels).toMatchObject({
      release: 'prom',
    });
  });

  test.each([
    ['edge', {}, 'edge', 'edge'],
    ['edge', { fullnameOverride: 'lb' }, 'lb', 'lb'],
    ['edge', { nameOverride: 'lb' }, 'edge', 'lb'],
  ])(
    'a release %s with %j shares no name with another, and selects its own Pods',
    (release, values, name, label) => {
      const everything = {
        controllers: { endpoints: true, egressRouter: true, attachments: true },
        ...enabled('node', 'announce', 'policy', 'serviceMonitor'),
        announce: { enabled: true, egress: true },
      };
      const own = (objects: readonly KubeObject[]) =>
        objects.filter(({ kind }) => kind !== 'CustomResourceDefinition');
      const objects = own(render({ ...everything, ...values }, release));
      const others = own(render(everything));
      expect(objects.map(nameOf)).toEqual(
        others.map((other) => nameOf(other).replace('/servicenet', `/${name}`)),
      );
      const text = (each: unknown) =>
        JSON.stringify(each).replaceAll('servicenet.dev', '').replaceAll(namespace, '');
      // But for the image and the words of flags, nothing is called servicenet.
      expect(
        objects
          .map((each) => text(each).match(/servicenet[\w-]*(?!:)/g) ?? [])
          .flat()
          .filter((found) => found !== 'servicenet'),
      ).toEqual([]);
      const deployment = objects.find(({ kind }) => kind === 'Deployment');
      const selector = { 'app.kubernetes.io/name': label };
      expect(at(deployment, 'spec', 'selector', 'matchLabels')).toEqual(selector);
      expect(at(deployment, 'spec', 'template', 'metadata', 'labels')).toEqual(selector);
      expect(argumentsOf(objects)).toContain(`--leader-elect-resource-name=${name}-controller`);
    },
  );

  test('says after the installation that a pool is needed, with one that the API takes', () => {
    const notes = renderTemplate(readFileSync(join(chart, 'templates/NOTES.txt'), 'utf8'), {
      Values: {},
      Release: { Namespace: namespace, Name: 'servicenet' },
    });
    expect(notes).toContain(`in the namespace ${namespace}`);
    const manifest = /<<EOF\n([\s\S]*?) {2}EOF/.exec(notes)?.[1] ?? '';
    const [pool] = parseManifests(manifest.replaceAll(/^ {2}/gm, ''));
    expect(pool).toMatchObject({ apiVersion: 'servicenet.dev/v1alpha1', kind: 'AddressPool' });
    expect(Array.isArray(at(pool, 'spec', 'addresses'))).toBe(true);
  });

  const endpoints = ',endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller';
  test.each([
    { on: ['serviceAllocation', 'loadBalancer'], flag: '*', roles: ['service-allocation', 'load-balancer'] },
    { on: ['loadBalancer'], flag: '*,-service-allocation-controller', roles: ['load-balancer'] },
    { on: ['serviceAllocation'], flag: '*,-load-balancer-controller', roles: ['service-allocation'] },
    {
      on: ['endpoints'],
      flag: `*,-service-allocation-controller,-load-balancer-controller${endpoints}`,
      roles: ['endpoints'],
    },
    {
      on: ['serviceAllocation', 'loadBalancer', 'endpoints'],
      flag: `*${endpoints}`,
      roles: ['service-allocation', 'load-balancer', 'endpoints'],
    },
  ])('runs $on with their rights, and no others', ({ on, flag, roles }) => {
    const all = ['serviceAllocation', 'loadBalancer', 'endpoints'];
    const objects = render({ controllers: Object.fromEntries(all.map((name) => [name, on.includes(name)])) });
    expect(argumentsOf(objects)).toContain(`--controllers=${flag}`);
    for (const granting of ['ClusterRole', 'ClusterRoleBinding']) {
      const found = objects.filter(({ kind }) => kind === granting).map(({ metadata }) => metadata.name);
      expect(found.sort()).toEqual(roles.map((name) => `servicenet-${name}`).sort());
    }
  });

  test.each<[components: string | readonly string[], values: object]>([
    ['endpoints', { controllers: { endpoints: true } }],
    ['egress-router', { controllers: { egressRouter: true } }],
    ['attachments', { controllers: { attachments: true } }],
    [['agent', 'announce'], enabled('announce')],
    [['agent', 'announce', 'egress'], { announce: { enabled: true, egress: true } }],
    [['agent', 'policy'], enabled('policy')],
    [
      ['agent', 'announce', 'egress', 'policy'],
      { announce: { enabled: true, egress: true }, ...enabled('policy') },
    ],
    ['router', enabled('router')],
    ['monitoring', enabled('serviceMonitor')],
  ])('has the objects of the component %s, switched on by %j', (name, values) => {
    const component = kustomizeWith(name).filter(({ kind }) => kind !== 'Namespace');
    expect(byName(render(values).map(withWholeLists))).toEqual(byName(component.map(withWholeLists)));
  });

  test('adds the controllers of several components to one flag', () => {
    const controllers = { endpoints: true, egressRouter: true, attachments: true };
    expect(argumentsOf(render({ controllers, announce: { enabled: true, egress: true } }))).toContain(
      `--controllers=*${endpoints},egress-router-controller,network-attachment-controller,egress-ip-controller,egress-qos-controller`,
    );
  });

  test('has one agent for all features, and the address by which it reaches the API server', () => {
    const component = kustomizeWith(['agent', 'node', 'announce', 'egress', 'policy']).filter(
      ({ kind }) => kind !== 'Namespace',
    );
    const node = { enabled: true, apiServer: { host: '192.168.1.10', port: 6443 }, extraArgs: [] };
    const others = { announce: { enabled: true, egress: true }, ...enabled('policy') };
    const objects = render({ node, ...others });
    const configMap = objects.find(({ kind }) => kind === 'ConfigMap');
    expect(configMap).toMatchObject({
      metadata: { name: 'servicenet-node', namespace },
      data: { KUBERNETES_SERVICE_HOST: '192.168.1.10', KUBERNETES_SERVICE_PORT: '6443' },
    });
    expect(byName(objects.filter((object) => object !== configMap).map(withWholeLists))).toEqual(
      byName(component.map(withWholeLists)),
    );
    const more = render({ node: { ...node, extraArgs: ['--masquerade-all'] } });
    const daemonSet = more.find(({ kind }) => kind === 'DaemonSet');
    const [changed] = listAt(daemonSet, 'spec', 'template', 'spec', 'containers');
    expect(listAt(changed, 'args').at(-1)).toBe('--masquerade-all');
    const [sysctls] = listAt(daemonSet, 'spec', 'template', 'spec', 'initContainers');
    expect(listAt(sysctls, 'args')).not.toContain('--masquerade-all');
  });

  test.each([
    ['node', '--masquerade-all'],
    ['announce', '--on-api-loss=withdraw'],
    ['policy', '--beside-other-engines'],
  ])('gives the agent with %s more flags', (name, flag) => {
    const objects = render({ [name]: { enabled: true, extraArgs: [flag] } });
    const daemonSet = objects.find(({ kind }) => kind === 'DaemonSet');
    const [agent] = listAt(daemonSet, 'spec', 'template', 'spec', 'containers');
    expect(listAt(agent, 'args').at(-1)).toBe(flag);
  });

  test.each(['node', 'announce', 'policy'])('refuses the resources of %s with the new name', (name) => {
    const changed = { enabled: true, resources: { limits: { memory: '1Gi' } } };
    expect(() => render({ ...enabled('policy'), [name]: changed })).toThrow('set agent.resources');
  });

  test('has a router with names of the release and a class that can be the default one', () => {
    const changed = { enabled: true, replicas: 3, ingressClass: 'web', defaultClass: true };
    const objects = render({ router: { ...changed, extraArgs: ['--no-routes'] } }, 'edge');
    const named = (name: string) => objects.find((object) => nameOf(object) === name);
    expect(named('IngressClass/web')?.metadata.annotations).toEqual({
      'ingressclass.kubernetes.io/is-default-class': 'true',
    });
    const deployment = named('Deployment/edge-router');
    expect(at(deployment, 'spec', 'replicas')).toBe(3);
    const [container] = listAt(deployment, 'spec', 'template', 'spec', 'containers');
    expect(listAt(container, 'args')).toEqual(
      expect.arrayContaining([
        ...['--ingress-class=web', '--publish-service=servicenet-system/edge-router', '--no-routes'],
        '--lease-namespace=servicenet-system',
      ]),
    );
    expect(at(named('Service/edge-router'), 'spec', 'selector')).toEqual({
      'app.kubernetes.io/name': 'edge-router',
    });
  });

  test('has the version of the package', () => {
    const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'));
    const values: unknown = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'));
    expect(at(values, 'image', 'tag')).toBe(textAt(manifest, 'version'));
  });
});
