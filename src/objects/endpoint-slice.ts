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
