import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { at, isStringList, listAt } from '../../src/objects/json.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { selectRemote } from '../../src/commands/choices.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { applyStrictly, kustomize, kustomizeWith, nameOf } from '../support/manifests.ts';

const overlay = 'overlays/homelab';

/** homelab has `announce`; a ServiceMonitor's definition is the Prometheus Operator's. */
const components = readdirSync('deploy/components').filter((name) => name !== 'announce');

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

test('each pair of components can be combined on the overlay for homelabs', () => {
  const alone = new Map(components.map((name) => [name, namesOf(kustomizeWith(name, overlay))]));
  for (const [n, one] of components.entries()) {
    for (const other of components.slice(n + 1)) {
      const expected = new Set([...(alone.get(one) ?? []), ...(alone.get(other) ?? [])]);
      expect(namesOf(kustomizeWith([one, other], overlay))).toEqual(expected);
    }
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
  const features = listOf(argumentsOf(all, 'DaemonSet/servicenet-announcer'), '--features');
  expect(features).toEqual(['announce', 'egress']);
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
  expect(() => kustomizeWith('egress')).toThrow('servicenet-announcer');
});

function namesOf(objects: readonly KubeObject[]): ReadonlySet<string> {
  return new Set(objects.map(nameOf));
}
