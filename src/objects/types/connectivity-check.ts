/** PodNetworkConnectivityCheck of OpenShift (`controlplane.operator.openshift.io/v1alpha1`), as its definition has it. */
import type { KubeObject } from '../meta.ts';

/** Whether an endpoint can be reached from a Pod, by TCP. */
export interface PodNetworkConnectivityCheck extends KubeObject {
  spec: {
    /** A Pod of the namespace. */
    sourcePod: string;
    /** `host:port`. */
    targetEndpoint: string;
    tlsClientCert?: { name: string };
  };
  status?: ConnectivityCheckStatus;
}

/** The results so far; all lists begin with the newest. */
export interface ConnectivityCheckStatus {
  successes?: CheckEntry[];
  failures?: CheckEntry[];
  outages?: OutageEntry[];
  conditions?: CheckCondition[];
}

/** One action of a check. */
export interface CheckEntry {
  /** RFC 3339: when it began. */
  time: string | null;
  success: boolean;
  reason?: string;
  message?: string;
  /** A Go duration. */
  latency?: string | null;
}

/** A time in which the endpoint was not reached. */
export interface OutageEntry {
  /** RFC 3339. */
  start: string | null;
  /** Absent while it lasts. */
  end?: string | null;
  startLogs?: CheckEntry[];
  endLogs?: CheckEntry[];
  message?: string;
}

/** A condition of a check. */
export interface CheckCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime: string | null;
}
