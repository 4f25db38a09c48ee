import type { KubeObject } from '../../../objects/meta.ts';
import type { FlowCondition } from '../prioritylevelconfiguration/types.ts';

/** Flowcontrol.apiserver.k8s.io/v1 FlowSchema. */
export interface FlowSchema extends KubeObject {
  spec: FlowSchemaSpec;
  status?: { conditions?: FlowCondition[] };
}

/** Lists without `omitempty` are null where the client sent none. */
export interface FlowSchemaSpec {
  priorityLevelConfiguration?: { name?: string };
  matchingPrecedence?: number;
  distinguisherMethod?: { type?: string };
  rules?: FlowRule[];
}

export interface FlowRule {
  subjects?: FlowSubject[] | null;
  resourceRules?: ResourceRule[];
  nonResourceRules?: NonResourceRule[];
}

export interface FlowSubject {
  kind?: string;
  user?: { name?: string };
  group?: { name?: string };
  serviceAccount?: { namespace?: string; name?: string };
}

export interface ResourceRule {
  verbs?: string[] | null;
  apiGroups?: string[] | null;
  resources?: string[] | null;
  clusterScope?: boolean;
  namespaces?: string[] | null;
}

export interface NonResourceRule {
  verbs?: string[] | null;
  nonResourceURLs?: string[] | null;
}
