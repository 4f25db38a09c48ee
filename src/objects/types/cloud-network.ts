/** Kinds of OpenShift's clouds (`cloud.network.openshift.io/v1`), as their definitions have them. */
import type { Condition, KubeObject } from '../meta.ts';

/** cloud.network.openshift.io/v1 CloudPrivateIPConfig: named after its address. */
export interface CloudPrivateIPConfig extends KubeObject {
  /** Absent node: it is given to none. */
  spec: { node?: string };
  status?: { node?: string; conditions: Condition[] };
}
