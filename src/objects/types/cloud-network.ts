/** Kinds of OpenShift's clouds (`cloud.network.openshift.io/v1`), as their definitions have them. */
import type { Condition, KubeObject } from '../meta.ts';

/** cloud.network.openshift.io/v1 CloudPrivateIPConfig: named after its address. */
export interface CloudPrivateIPConfig extends KubeObject {
  /** Absent: it is given to no node. */
  spec: { node?: string };
  status?: { node?: string; conditions: Condition[] };
}
