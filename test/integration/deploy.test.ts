import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { at, listAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { applyStrictly, kustomize, kustomizeWith, nameOf, parseManifests } from '../support/manifests.ts';

const overlays = ['deploy/overlays/kind', 'deploy/overlays/homelab'];
const components = [
  'monitoring',
  'endpoints',
  // These add to the agent, egress to announce too.
  ['agent', 'node'],
  ['agent', 'announce'],
  ['agent', 'policy'],
  ['agent', 'announce', 'egress'],
  'egress-router',
  'attachments',
  'dns',
  'router',
];
const serviceMonitors = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: servicemonitors.monitoring.coreos.com }
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: { kind: ServiceMonitor, plural: servicemonitors }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: { type: object, properties: { spec: { type: object, x-kubernetes-preserve-unknown-fields: true } } }
`;

describe('manifests', () => {
  test.each(['deploy/base', ...overlays, 'deploy/overlays/kind-node'])(
    '%s is accepted, to the letter',
    async (directory) => {
      const server = await startApiServer();
      try {
        await applyStrictly(server.client, kustomize(directory));
      } finally {
        await server.stop();
      }
    },
  );

  test.each(components)('the base with the component %s is accepted, to the letter', async (component) => {
    const server = await startApiServer();
    try {
      await applyStrictly(server.client, parseManifests(serviceMonitors));
      await applyStrictly(server.client, kustomizeWith(component));
    } finally {
      await server.stop();
    }
  });

  test('the pool of the homelab is accepted once its kind is served', async () => {
    const server = await startApiServer();
    try {
      await applyStrictly(server.client, kustomize('deploy/crds'));
      await applyStrictly(
        server.client,
        parseManifests(readFileSync('deploy/overlays/homelab/pool.yaml', 'utf8')),
      );
    } finally {
      await server.stop();
    }
  });

  // https://kubernetes.io/docs/concepts/security/pod-security-standards/ (restricted); our server does not enforce it.
  test.each(['deploy/base', ...overlays, 'deploy/overlays/kind-router', 'deploy/overlays/kind-announce'])(
    'the Pods of %s meet the restricted standard',
    (directory) => {
      const objects = kustomize(directory);
      const deployment = objects.find((object) => object.kind === 'Deployment');
      const pod = at(deployment, 'spec', 'template', 'spec');
      expect(pod).toMatchObject({
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      });
      for (const member of ['hostNetwork', 'hostPID', 'hostIPC', 'volumes', 'initContainers']) {
        expect(pod).not.toHaveProperty(member);
      }
      expect(at(pod, 'securityContext', 'runAsUser')).toBeGreaterThan(0);
      const containers = listAt(pod, 'containers');
      expect(containers).toHaveLength(1);
      for (const container of containers) {
        expect(listAt(container, 'ports').some((port) => at(port, 'hostPort') !== undefined)).toBe(false);
        expect(container).toMatchObject({
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        });
      }
    },
  );
});

describe('the DaemonSet of the node agent', () => {
  const objects = kustomizeWith(['agent', 'node']);
  const pod = at(
    objects.find(({ kind }) => kind === 'DaemonSet'),
    'spec',
    'template',
    'spec',
  );

  test('has NET_ADMIN alone, on the network of the host, on every node', () => {
    expect(pod).toMatchObject({
      hostNetwork: true,
      dnsPolicy: 'Default',
      priorityClassName: 'system-node-critical',
      tolerations: [{ operator: 'Exists' }],
    });
    for (const member of ['hostPID', 'hostIPC', 'volumes']) expect(pod).not.toHaveProperty(member);
    expect(at(listAt(pod, 'containers')[0], 'securityContext')).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
    });
  });

  test('sets kernel parameters in a container of its own, which alone is privileged', () => {
    const containers = listAt(pod, 'initContainers');
    expect(containers).toMatchObject([{ securityContext: { privileged: true } }]);
    expect(listAt(containers[0], 'args')).toContain('--init-only');
  });

  test('is allowed by its namespace', () => {
    const namespace = objects.find(({ kind }) => kind === 'Namespace');
    expect(namespace?.metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'privileged' });
  });

  test('is what no selector of the base means', () => {
    expect(
      at(
        objects.find(({ kind }) => kind === 'DaemonSet'),
        'spec',
        'template',
        'metadata',
        'labels',
      ),
    ).toEqual({
      'app.kubernetes.io/name': 'servicenet-agent',
    });
  });
});

test('every object of the base says what it belongs to', () => {
  const unlabelled = kustomize('deploy/base').filter(
    ({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] !== 'servicenet',
  );
  expect(unlabelled.map(nameOf)).toEqual([]);
});
