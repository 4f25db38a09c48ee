import { pino } from 'pino';
import { expect, test } from 'vitest';
import { admissionChain } from '../../../../src/apiserver/admission/chain.ts';
import { QuotaStatuses } from '../../../../src/apiserver/admission/quota.ts';
import { alwaysAllow } from '../../../../src/apiserver/authorization/authorizer.ts';
import { Admission } from '../../../../src/apiserver/rest/admission.ts';
import { ResourceTable, serveResource } from '../../../../src/apiserver/rest/served-resource.ts';
import type { ServerCore } from '../../../../src/apiserver/rest/server-core.ts';
import { OpenWatches } from '../../../../src/apiserver/rest/watch/open-watches.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';
import { createMemoryStorage } from '../../../../src/apiserver/storage/multi-version.ts';
import { otherKindsTable } from '../../../../src/apiserver/tables/cluster.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { definitionOf, read } from '../../registry/decide.ts';

/** AllOrderedPlugins of kube-apiserver 1.37 (`pkg/kubeapiserver/options/plugins.go`). */
const allOrderedPlugins = [
  'AlwaysAdmit',
  'NamespaceAutoProvision',
  'NamespaceLifecycle',
  'NamespaceExists',
  'LimitPodHardAntiAffinityTopology',
  'LimitRanger',
  'ServiceAccount',
  'NodeRestriction',
  'TaintNodesByCondition',
  'AlwaysPullImages',
  'ImagePolicyWebhook',
  'PodSecurity',
  'PodNodeSelector',
  'Priority',
  'DefaultTolerationSeconds',
  'PodTolerationRestriction',
  'EventRateLimit',
  'ExtendedResourceToleration',
  'DefaultStorageClass',
  'StorageObjectInUseProtection',
  'PodGroupProtection',
  'OwnerReferencesPermissionEnforcement',
  'PersistentVolumeClaimResize',
  'RuntimeClass',
  'CertificateApproval',
  'CertificateSigning',
  'ClusterTrustBundleAttest',
  'CertificateSubjectRestriction',
  'DefaultIngressClass',
  'DenyServiceExternalIPs',
  'PodTopologyLabels',
  'NodeDeclaredFeatureValidator',
  'PodResizeValidator',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionWebhook',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionWebhook',
  'ResourceQuota',
  'AlwaysDeny',
];

/** Wraps the chain in kube-apiserver (apiextensions `customresource_handler.go`). */
const wrapper = 'forbidCreateAdmission';

function newCore(): ServerCore {
  const log = pino({ enabled: false });
  const storage = createMemoryStorage({
    encode: (object) => JSON.stringify(object),
    retain: { revisions: 10, milliseconds: 1000 },
    clock: () => 0,
    onListenerError: (error) => {
      throw error;
    },
  });
  return {
    storage,
    watches: new OpenWatches(log),
    firstRevision: 1,
    resources: new ResourceTable(),
    admission: new Admission([]),
    log,
    random: () => 0,
    now: () => 0,
    newUid: () => 'uid',
  };
}

const none = { handles: () => false };
const webhooks = {
  mutating: { name: 'MutatingAdmissionWebhook', ...none },
  validating: { name: 'ValidatingAdmissionWebhook', ...none },
};

function chainOf(core: ServerCore, serviceAccounts: boolean) {
  const quotas = new QuotaStatuses(core);
  return admissionChain(core, { authorizer: alwaysAllow, webhooks, quotas, serviceAccounts });
}

test.each([true, false])("plugins are in kube-apiserver's order, ServiceAccount: %s", (serviceAccounts) => {
  const [first, ...names] = chainOf(newCore(), serviceAccounts).map(({ name }) => name);
  expect(first).toBe(wrapper);
  expect(names).toEqual(allOrderedPlugins.filter((name) => names.includes(name)));
  expect(names.includes('ServiceAccount')).toBe(serviceAccounts);
});

test('a write that needs to wait for nothing is admitted at once', async () => {
  const core = newCore();
  const namespace: KubeObject = { kind: 'Namespace', metadata: { name: 'ns' } };
  const account: KubeObject = { kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'ns' } };
  await core.storage.commit([
    { key: 'core/namespaces//ns', expect: 'absent', object: namespace },
    { key: 'core/serviceaccounts/ns/default', expect: 'absent', object: account },
  ]);
  const admission = new Admission(chainOf(core, true));
  const definition = definitionOf('Pod');
  const object = read(definition, {
    metadata: { name: 'a' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  const attributes = {
    operation: 'CREATE' as const,
    resource: serveResource(definition, builtinSchema(definition.schema), () => otherKindsTable),
    ...{ subresource: '', namespace: 'ns', name: 'a', object, oldObject: undefined, dryRun: false },
    user: { name: 'jane', uid: '', groups: [], extra: {} },
  };
  const reply = { warn: () => undefined };
  const mutated = admission.mutate(attributes, reply);
  expect(mutated).not.toBeInstanceOf(Promise);
  expect(mutated).toMatchObject({
    spec: { serviceAccountName: 'default', priority: 0, tolerations: [{}, {}] },
  });
  expect(admission.validate(attributes, reply)).toBeUndefined();
});
