import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { at, isStringList, listAt, textAt } from '../../src/objects/json.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { selectRemote } from '../../src/commands/choices.ts';
import { nodeConfig } from '../../src/flags/node.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { givenFlags } from '../support/command-line.ts';
import { applyStrictly, kustomize, kustomizeText, kustomizeWith, nameOf } from '../support/manifests.ts';

const overlay = 'overlays/homelab';

/** homelab has `agent` and `announce`; a ServiceMonitor's definition is the Prometheus Operator's. */
const components = readdirSync('deploy/components').filter((name) => !['agent', 'announce'].includes(name));

const agent = 'DaemonSet/servicenet-agent';

/** The components that add to the agent. */
const features = ['node', 'announce', 'egress', 'policy', 'flows'];

/** The arguments of a workload's first container. */
function argumentsOf(objects: readonly KubeObject[], name: string): readonly string[] {
  const workload = objects.find((object) => nameOf(object) === name);
  const args = at(listAt(workload, 'spec', 'template', 'spec', 'containers')[0], 'args');
  return isStringList(args) ? args : [];
}

/** What the parts of a list on a command line are together. */
function listOf(args: readonly string[], flag: string): readonly string[] {
  return args.flatMap((word) => (word.startsWith(`${flag}=`) ? word.slice(flag.length + 1).split(',') : []));
}

test('each component can be had alone on the overlay for homelabs, and all together in any order', () => {
  const alone = components.flatMap((name) => [...namesOf(kustomizeWith(name, overlay))]);
  for (const all of [components, components.toReversed()]) {
    expect(namesOf(kustomizeWith(all, overlay))).toEqual(new Set(alone));
  }
});

test('all components together run every controller and feature that one of them adds', async () => {
  const all = kustomizeWith(components.toReversed(), overlay);
  const controllers = listOf(argumentsOf(all, 'Deployment/servicenet'), '--controllers');
  expect(selectRemote(controllers)).toEqual(
    expect.arrayContaining([
      ...['load-balancer-controller', 'service-allocation-controller', 'endpointslice-controller'],
      ...['egress-ip-controller', 'egress-router-controller', 'network-attachment-controller'],
    ]),
  );
  expect(all.filter(({ kind }) => kind === 'DaemonSet').map(nameOf)).toEqual(['DaemonSet/servicenet-agent']);
  expect(
    listOf(argumentsOf(all, agent), '--features')
      .filter((name) => name !== '')
      .sort(),
  ).toEqual(['announce', 'egress', 'policy', 'proxy']);
  const server = await startApiServer();
  try {
    await applyStrictly(server.client, kustomize('deploy/crds'));
    await applyStrictly(
      server.client,
      all.filter(({ kind }) => kind !== 'ServiceMonitor'),
    );
  } finally {
    await server.stop();
  }
});

test('egress without announce is refused', () => {
  expect(() => kustomizeWith(['agent', 'egress'])).toThrow('servicenet-announcer');
});

test.each(features)('%s without the component agent is refused by the name of its DaemonSet', (name) => {
  expect(() => kustomizeWith(name)).toThrow(/servicenet-(agent|announcer)/);
});

test.each([
  ['node', 'policy'],
  ['policy', 'node'],
  ['announce', 'policy'],
  ['node', 'announce'],
  ['announce', 'egress', 'node'],
])('the agent with %s and %s takes all their arguments', (...names) => {
  const [, ...args] = argumentsOf(kustomizeWith(['agent', ...names]), agent);
  const { features: found } = nodeConfig(givenFlags('node', args), { environment: {}, hostname: 'node-1' });
  expect(found).toEqual(names.map((name) => (name === 'node' ? 'proxy' : name)));
});

test('the agent without any feature is refused when it starts', () => {
  const [, ...args] = argumentsOf(kustomizeWith('agent'), agent);
  expect(() => nodeConfig(givenFlags('node', args), { environment: {}, hostname: 'node-1' })).toThrow(
    '--features',
  );
});

test('a feature runs apart by a kustomization of its own, as docs/deploying.md has it', () => {
  const docs = readFileSync('docs/deploying.md', 'utf8');
  const [, text = ''] = /```yaml\n(# policy\/kustomization\.yaml\n[\s\S]*?)```/.exec(docs) ?? [];
  const objects = kustomizeText(text.replaceAll('servicenet/deploy/', '../'));
  const names = new Set(objects.map(nameOf));
  const others = namesOf(kustomizeWith(['agent', 'node', 'announce']));
  expect([...names].filter((name) => others.has(name))).toEqual([]);
  const daemonSet = objects.find(({ kind }) => kind === 'DaemonSet');
  const labels = { 'app.kubernetes.io/name': 'servicenet-agent-policy' };
  expect(at(daemonSet, 'spec', 'selector', 'matchLabels')).toEqual(labels);
  expect(at(daemonSet, 'spec', 'template', 'metadata', 'labels')).toEqual(labels);
  const account = textAt(daemonSet, 'spec', 'template', 'spec', 'serviceAccountName');
  expect(names).toContain(`ServiceAccount/${account}`);
  const binding = objects.find(({ kind }) => kind === 'ClusterRoleBinding');
  expect(at(listAt(binding, 'subjects')[0], 'name')).toBe(account);
  const args = argumentsOf(objects, 'DaemonSet/servicenet-agent-policy').slice(1);
  const { metrics } = nodeConfig(givenFlags('node', args), { environment: {}, hostname: 'node-1' });
  const [container] = listAt(daemonSet, 'spec', 'template', 'spec', 'containers');
  expect(at(listAt(container, 'ports')[0], 'hostPort')).toBe(metrics?.port);
});

test('the way back of docs/replacing-kube-proxy.md cleans every node at once, and then the other features go on', async () => {
  const docs = readFileSync('docs/replacing-kube-proxy.md', 'utf8');
  const [, patch = ''] = /patch daemonset servicenet-agent --type=json -p \\\n +'([^']+)'/.exec(docs) ?? [];
  const path = '/apis/apps/v1/namespaces/servicenet-system/daemonsets/servicenet-agent';
  const server = await startApiServer();
  try {
    await applyStrictly(server.client, kustomizeWith(['agent', 'node', 'policy']));
    const operations: unknown = JSON.parse(patch);
    const answer = await server.client.request('PATCH', path, {
      contentType: 'application/json-patch+json',
      body: operations,
    });
    const patched = answer.json();
    const argsOf = (daemonSet: unknown): unknown =>
      at(listAt(daemonSet, 'spec', 'template', 'spec', 'containers')[0], 'args');
    expect(argsOf(patched)).toEqual(['node', '--cleanup']);
    expect(at(patched, 'spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable')).toBe('100%');
    const without = kustomizeWith(['agent', 'policy']);
    await applyStrictly(server.client, without);
    const daemonSet = (await server.client.request('GET', path)).json();
    expect(argsOf(daemonSet)).toEqual(argumentsOf(without, agent));
    expect(at(daemonSet, 'spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable')).toBe('10%');
    expect(at(daemonSet, 'spec', 'template', 'spec', 'initContainers')).toBeUndefined();
  } finally {
    await server.stop();
  }
});

function namesOf(objects: readonly KubeObject[]): ReadonlySet<string> {
  return new Set(objects.map(nameOf));
}
