import { type ParsedCidr, parseCidr } from '../../objects/address.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import { type ParsedLabelSelector, readLabelSelector } from '../../objects/selectors/labels.ts';
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../objects/types/networking.generated.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { Labels } from '../../objects/selectors/label-selector.ts';

/** NetworkPolicies as rules that can be asked (networking.k8s.io/v1; KEP-2079 for endPort). */

/** A direction, as the subject of a policy sees it. */
export type Direction = 'ingress' | 'egress';

/** One NetworkPolicy, parsed. */
export interface PolicyRules {
  readonly key: ObjectKey;
  readonly namespace: string;
  /** Which Pods of the namespace it isolates. */
  readonly podSelector: ParsedLabelSelector;
  /** The rules of a direction; undefined: the policy does not isolate in it. An empty list allows nothing. */
  readonly ingress: readonly NetworkPolicyRule[] | undefined;
  readonly egress: readonly NetworkPolicyRule[] | undefined;
  /** Parts that do not parse, and select or match nothing. */
  readonly problems: readonly string[];
}

/** One rule: a connection has to match one of the peers and one of the ports. */
export interface NetworkPolicyRule {
  /** `all`: `from` or `to` is empty or missing. */
  readonly peers: 'all' | readonly PolicyPeer[];
  /** `all`: `ports` is empty or missing. */
  readonly ports: 'all' | readonly PolicyPort[];
}

/** The peers that one item of `from` or `to` matches. */
export type PolicyPeer =
  | {
      readonly kind: 'pods';
      /** Undefined: the policy's own namespace alone. */
      readonly namespaceSelector: ParsedLabelSelector | undefined;
      /** Undefined: all Pods of the namespaces. */
      readonly podSelector: ParsedLabelSelector | undefined;
    }
  /** `cidr` undefined: it does not parse, and matches nothing. */
  | {
      readonly kind: 'ipBlock';
      readonly cidr: ParsedCidr | undefined;
      readonly except: readonly ParsedCidr[];
    };

/** The ports that one item of `ports` matches. */
export interface PolicyPort {
  readonly protocol: Protocol;
  /** A range of numbers, a name of a container's port of the destination, or any port. */
  readonly port: { readonly first: number; readonly last: number } | { readonly name: string } | 'any';
}

/** Reads a NetworkPolicy. What an older server let through and does not parse matches nothing. */
export function policyRules(policy: NetworkPolicy): PolicyRules {
  const { podSelector, ingress = [], egress = [], policyTypes } = policy.spec;
  const problems: string[] = [];
  const read = (direction: Direction, rules: readonly GivenRule[]): readonly NetworkPolicyRule[] =>
    rules.map(({ ports, peers }, index) => {
      const path = `spec.${direction}[${index}].${direction === 'ingress' ? 'from' : 'to'}`;
      return {
        peers: peers.length === 0 ? 'all' : peers.map((peer, i) => readPeer(peer, `${path}[${i}]`, problems)),
        ports: ports.length === 0 ? 'all' : ports.map(readPort),
      };
    });
  const isolates = (direction: Direction, type: string): boolean =>
    policyTypes === undefined || policyTypes.length === 0
      ? direction === 'ingress' || egress.length > 0
      : policyTypes.includes(type);
  const selected = readLabelSelector(
    podSelector,
    { path: 'spec.podSelector', consequence: 'it selects no Pods' },
    problems,
  );
  return {
    key: keyOf(policy),
    namespace: policy.metadata.namespace ?? '',
    podSelector: selected ?? 'nothing',
    ingress: isolates('ingress', 'Ingress')
      ? read(
          'ingress',
          ingress.map(({ ports = [], from = [] }) => ({ ports, peers: from })),
        )
      : undefined,
    egress: isolates('egress', 'Egress')
      ? read(
          'egress',
          egress.map(({ ports = [], to = [] }) => ({ ports, peers: to })),
        )
      : undefined,
    problems,
  };
}

/** A rule of either direction. */
interface GivenRule {
  readonly ports: readonly NetworkPolicyPort[];
  readonly peers: readonly NetworkPolicyPeer[];
}

function readPeer(peer: NetworkPolicyPeer, path: string, problems: string[]): PolicyPeer {
  const { ipBlock, namespaceSelector, podSelector } = peer;
  if (ipBlock !== undefined) {
    const cidr = readCidr(ipBlock.cidr, `${path}.ipBlock.cidr`, 'it matches nothing', problems);
    const except = (ipBlock.except ?? []).flatMap(
      (text, i) => readCidr(text, `${path}.ipBlock.except[${i}]`, 'nothing is excepted', problems) ?? [],
    );
    return { kind: 'ipBlock', cidr, except };
  }
  const consequence = 'it matches nothing';
  return {
    kind: 'pods',
    namespaceSelector: readLabelSelector(
      namespaceSelector,
      { path: `${path}.namespaceSelector`, consequence },
      problems,
    ),
    podSelector: readLabelSelector(podSelector, { path: `${path}.podSelector`, consequence }, problems),
  };
}

function readCidr(
  text: string,
  path: string,
  consequence: string,
  problems: string[],
): ParsedCidr | undefined {
  const cidr = parseCidr(text);
  if (cidr === undefined) problems.push(`${path}: ${JSON.stringify(text)} is not a CIDR; ${consequence}`);
  return cidr;
}

function readPort({ protocol = 'TCP', port, endPort }: NetworkPolicyPort): PolicyPort {
  const of = protocol === 'UDP' || protocol === 'SCTP' ? protocol : 'TCP';
  if (port === undefined) return { protocol: of, port: 'any' };
  if (typeof port === 'string') return { protocol: of, port: { name: port } };
  return { protocol: of, port: { first: port, last: endPort ?? port } };
}

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
