import { describe, expect, it } from 'vitest';
import { objectsInYaml } from '../../../src/client/yaml.ts';
import { ClusterView } from '../../../src/network/path/cluster-view.ts';
import type { NetworkPolicy } from '../../../src/objects/types/networking.generated.ts';
import { editPolicies, type PolicyEdit } from '../../../src/view/policy-edit.ts';
import { options } from '../network/forwarding/fixtures.ts';

const present: NetworkPolicy = {
  metadata: { namespace: 'shop', name: 'old' },
  spec: { podSelector: { matchLabels: { app: 'web' } } },
};
const view = new ClusterView(
  {
    namespaces: ['shop', 'data'].map((name) => ({ metadata: { name }, spec: {}, status: {} })),
    pods: [
      {
        metadata: { namespace: 'shop', name: 'web', labels: { app: 'web' } },
        spec: { containers: [] },
        status: { phase: 'Running', podIP: '10.1.1.1' },
      },
    ],
    ...{ nodes: [], services: [], slices: [], policies: [present], firewalls: [] },
  },
  options(),
);

function edit(yaml: string, deleted: readonly string[] = []): PolicyEdit {
  return editPolicies(view, objectsInYaml(yaml), deleted, 'shop');
}

/** A policy with such a `spec`, in the flow style of YAML. */
function policy(spec: string, metadata = 'name: new'): string {
  return `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {${metadata}}, spec: ${spec}}`;
}

describe('an edit of NetworkPolicies', () => {
  it('adds, replaces and deletes policies, in the namespace that is asked about unless they name one', () => {
    const { policies, namespaces, problems } = edit(
      [
        policy('{podSelector: {matchLabels: {app: web}}, ingress: }'),
        policy('{}', 'name: all, namespace: data'),
      ].join('\n---\n'),
      ['old'],
    );
    expect(policies.map(({ metadata, spec }) => [metadata.namespace, metadata.name, spec])).toEqual([
      ['shop', 'new', { podSelector: { matchLabels: { app: 'web' } } }],
      ['data', 'all', { podSelector: {} }],
    ]);
    expect(namespaces).toEqual(['data', 'shop']);
    expect(problems).toEqual(['NetworkPolicy data/all: spec.podSelector selects no Pod that is there']);
    expect(edit(policy('{podSelector: {}}', 'name: old')).policies).toHaveLength(1);
  });

  it.each([
    ['{kind: Pod, apiVersion: v1, metadata: {name: a}}', 'Pod a (v1) is no NetworkPolicy'],
    [
      '{kind: ClusterNetworkPolicy, apiVersion: policy.networking.k8s.io/v1alpha2, metadata: {name: a}}',
      'ClusterNetworkPolicy a (policy.networking.k8s.io/v1alpha2) is no NetworkPolicy',
    ],
    [policy('{}', 'name: new, namespace: gone'), 'there is no namespace gone'],
    [policy('{}', 'name: NEW'), 'a lowercase RFC 1123 subdomain'],
    [policy('{podSelector: {}, ingres: []}'), 'unknown field "spec.ingres"'],
    [policy('{ingress: {}}'), 'spec.ingress: it has to be a list'],
    [policy('[]'), 'spec: it has to have members'],
    [policy('{ingress: [{to: []}]}'), 'unknown field "spec.ingress[0].to"'],
    [policy('{ingress: [{from: [{}]}]}'), 'spec.ingress[0].from[0]: it names no peer'],
    [
      policy('{egress: [{to: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}]}'),
      'spec.egress[0].to[0]: an ipBlock goes with no selector',
    ],
    [policy('{podSelector: {matchLabels: {app: 7}}}'), 'spec.podSelector.matchLabels: it has to be labels'],
    [
      policy('{podSelector: {matchExpressions: [{key: a, operator: Is}]}}'),
      'spec.podSelector.matchExpressions[0].operator: it has to be In or NotIn or Exists or DoesNotExist',
    ],
    [policy('{ingress: [{ports: [{port: 70000}]}]}'), 'spec.ingress[0].ports[0].port: it has to be a number'],
    [policy('{ingress: [{ports: [{port: http, endPort: 90}]}]}'), 'spec.ingress[0].ports[0]: endPort needs'],
    [policy('{policyTypes: [ingress]}'), 'spec.policyTypes[0]: it has to be Ingress or Egress'],
  ])('refuses %s', (yaml, message) => {
    expect(() => edit(yaml)).toThrow(message);
  });

  it('names what selects or matches nothing, and a policy that is not there', () => {
    expect(edit(policy('{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: x}}]}]}')).problems).toEqual([
      'NetworkPolicy shop/new: spec.ingress[0].from[0].ipBlock.cidr: "x" is not a CIDR; it matches nothing',
    ]);
    expect(() => edit('', ['none'])).toThrow('there is no NetworkPolicy shop/none to delete');
  });
});
