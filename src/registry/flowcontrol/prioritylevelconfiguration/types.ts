import type { KubeObject } from '../../../objects/meta.ts';

/** Flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration. */
export interface PriorityLevelConfiguration extends KubeObject {
  spec: PriorityLevelSpec;
  status?: { conditions?: FlowCondition[] };
}

export interface PriorityLevelSpec {
  type?: string;
  limited?: LimitedLevel;
  exempt?: ExemptLevel;
}

export interface LimitedLevel {
  nominalConcurrencyShares?: number | null;
  limitResponse?: LimitResponse;
  lendablePercent?: number;
  borrowingLimitPercent?: number;
}

export interface LimitResponse {
  type?: string;
  queuing?: Queuing;
}

export interface Queuing {
  queues?: number;
  handSize?: number;
  queueLengthLimit?: number;
}

export interface ExemptLevel {
  nominalConcurrencyShares?: number;
  lendablePercent?: number;
}

/** A condition of a PriorityLevelConfiguration or a FlowSchema. */
export interface FlowCondition {
  type?: string;
}

/** The group of both kinds. */
export const flowcontrolGroup = 'flowcontrol.apiserver.k8s.io';

/** Whether kube-apiserver may restore the spec of an object that it created. */
export const autoUpdateAnnotation = 'apf.kubernetes.io/autoupdate-spec';
