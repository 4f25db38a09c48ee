import type { Authorizer } from '../authorization/authorizer.ts';
import type { AdmissionPlugin } from '../rest/admission.ts';
import type { ServerCore } from '../rest/server-core.ts';
import {
  certificateApproval,
  certificateSigning,
  certificateSubjectRestriction,
  clusterTrustBundleAttest,
  nodeRestriction,
} from './certificates.ts';
import {
  claimResize,
  defaultIngressClass,
  defaultStorageClass,
  namespaceLifecycle,
  storageObjectInUseProtection,
  taintNodesByCondition,
  terminatingDefinitions,
} from './built-in.ts';
import { MutatingPolicies } from './mutating-policies.ts';
import { defaultTolerationSeconds, limitRanger, podTopologyLabels, priority, runtimeClass } from './pods.ts';
import { QuotaAdmission, type QuotaReservations } from './quota.ts';
import { ServiceAccountAdmission } from './service-accounts.ts';
import { ValidatingPolicies } from './validating-policies.ts';

/** What the plugins need besides the store. */
export interface ChainOptions {
  readonly authorizer: Authorizer;
  readonly webhooks: { readonly mutating: AdmissionPlugin; readonly validating: AdmissionPlugin };
  readonly quotas: QuotaReservations;
  /** Runs the ServiceAccount plugin. */
  readonly serviceAccounts: boolean;
}

/**
 * All plugins, in the order of kube-apiserver's AllOrderedPlugins (`pkg/kubeapiserver/options/plugins.go`, 1.37); those
 * that we lack are left out.
 */
export function admissionChain(
  core: ServerCore,
  { authorizer, webhooks, quotas, serviceAccounts }: ChainOptions,
): readonly AdmissionPlugin[] {
  const { storage } = core;
  return [
    terminatingDefinitions(storage),
    namespaceLifecycle(storage),
    limitRanger(storage),
    ...(serviceAccounts ? [new ServiceAccountAdmission(core)] : []),
    nodeRestriction(storage, authorizer),
    taintNodesByCondition,
    priority(core),
    defaultTolerationSeconds,
    defaultStorageClass(core),
    storageObjectInUseProtection,
    claimResize(core),
    runtimeClass(core),
    certificateApproval(authorizer),
    certificateSigning(authorizer),
    clusterTrustBundleAttest(authorizer),
    certificateSubjectRestriction,
    defaultIngressClass(core),
    podTopologyLabels(core),
    // What users define sees the object as the plugins before have made it; a quota counts what becomes of it.
    new MutatingPolicies(core, authorizer),
    webhooks.mutating,
    new ValidatingPolicies(core, authorizer),
    webhooks.validating,
    new QuotaAdmission(core, quotas),
  ];
}
