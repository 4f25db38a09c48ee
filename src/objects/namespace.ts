import type { KubeObject } from './meta.ts';
import type { PodCondition } from './pod.ts';

/** Core/v1 Namespace. */
export interface Namespace extends KubeObject {
  spec: { finalizers?: string[] };
  status: { phase?: string; conditions?: PodCondition[] };
}
