import type { Pod } from '../../objects/types/core.generated.ts';
import type { Labels } from '../../objects/labels/label-requirement.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';

/** A Pod as policies see it. */
export interface PolicyPod {
  readonly kind: 'pod';
  readonly key: ObjectKey;
  readonly namespace: string;
  readonly namespaceLabels: Labels;
  readonly labels: Labels;
  readonly node: string;
  /** It has the addresses of its node: no policy applies to it, and no selector finds it. */
  readonly hostNetwork: boolean;
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly port: number }[];
}

/** One side of a connection; what is neither a Pod nor a node is known by its address alone. */
export type PolicySide =
  PolicyPod | { readonly kind: 'node'; readonly name: string } | { readonly kind: 'other' };

/** The first packet of a connection, after Services were translated: the address and port of an endpoint. */
export interface PolicyConnection {
  readonly source: PolicySide;
  readonly sourceAddress: string;
  readonly destination: PolicySide;
  readonly destinationAddress: string;
  readonly protocol: Protocol;
  /** 1 to 65535. */
  readonly port: number;
}

/** A Pod as policies see it. */
export function policyPod(pod: Pod, namespaceLabels: Labels): PolicyPod {
  const { spec, metadata } = pod;
  return {
    kind: 'pod',
    key: keyOf(pod),
    namespace: metadata.namespace ?? '',
    namespaceLabels,
    labels: metadata.labels ?? {},
    node: spec.nodeName ?? '',
    hostNetwork: spec.hostNetwork === true,
    ports: [
      ...(spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always'),
      ...(spec.containers ?? []),
    ]
      .flatMap(({ ports = [] }) => ports)
      .map(({ name = '', protocol = 'TCP', containerPort }) => ({ name, protocol, port: containerPort })),
  };
}
