import { isRecord, isStringList } from './json.ts';
import type { KubeObject, ObjectReference } from './meta.ts';

/** discovery.k8s.io/v1 EndpointSlice. `endpoints` and `ports` have no omitempty: an empty list is `null`. */
export interface EndpointSlice extends KubeObject {
  addressType: string;
  endpoints: SliceEndpoint[] | null;
  ports: SlicePort[] | null;
}

export interface SliceEndpoint {
  addresses: string[];
  conditions: EndpointConditions;
  hostname?: string;
  targetRef?: ObjectReference;
  deprecatedTopology?: Record<string, string>;
  nodeName?: string;
  zone?: string;
  hints?: EndpointHints;
}

export interface EndpointConditions {
  ready?: boolean;
  serving?: boolean;
  terminating?: boolean;
}

export interface EndpointHints {
  forZones?: { name: string }[];
  forNodes?: { name: string }[];
}

export interface SlicePort {
  name?: string;
  protocol?: string;
  port?: number;
  appProtocol?: string;
}

/** Adds what kube-apiserver shows always: both lists, and the conditions of each endpoint. */
export function completeSlice(slice: object): void {
  for (const list of ['endpoints', 'ports']) {
    if (Reflect.get(slice, list) === undefined) Reflect.set(slice, list, null);
  }
  const endpoints: unknown = Reflect.get(slice, 'endpoints');
  if (!Array.isArray(endpoints)) return;
  for (const endpoint of endpoints) if (isRecord(endpoint)) endpoint['conditions'] ??= {};
}

/** True for endpoints in the shape that all readers rely on. */
export function isSliceEndpoint(value: unknown): value is SliceEndpoint {
  if (!isRecord(value) || !isStringList(value['addresses'])) return false;
  const { conditions, targetRef, hints } = value;
  return (
    isRecord(conditions) &&
    (targetRef === undefined || isRecord(targetRef)) &&
    (hints === undefined || isRecord(hints))
  );
}
