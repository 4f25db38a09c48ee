/** The filters of a node as sets, chains and verdicts: policies without the objects they are made of. */
import type { IPFamily } from '../../objects/address.ts';
import type { Direction } from './network-policy.ts';

/**
 * A set of addresses or ports. Its elements are texts:
 *
 * - `address`: `10.0.0.1`
 * - `range`: `10.0.0.0-10.0.0.255`, none of which touches another one
 * - `port`: `tcp 80-90`, none of which touches another one
 * - `endpoint`, a port of an address: `10.0.0.1 tcp 80`
 * - `self`, Pods whose connections to themselves are allowed: `10.0.0.1`
 */
export interface FilterSet {
  readonly kind: 'address' | 'range' | 'port' | 'endpoint' | 'self';
  /** Of its addresses; undefined for ports. */
  readonly family: IPFamily | undefined;
  /** Is another object whenever the elements are others. */
  readonly elements: ReadonlySet<string>;
}

/** One step of a chain. The first that decides does. */
export type FilterRule =
  /** The connections that the chain of a policy allows. */
  | { readonly kind: 'policy'; readonly chain: string }
  /** A connection is allowed whose other side and port are in the sets, as far as they are named. */
  | {
      readonly kind: 'allow';
      readonly direction: Direction;
      /** Undefined: of any, and of both families where no other set has one. */
      readonly family: IPFamily | undefined;
      readonly peers: string | undefined;
      readonly ports: string | undefined;
      /** Ports of destinations. */
      readonly endpoints: string | undefined;
    }
  /** Decides on a connection that leads there: what one step allows, the next ones do not see. */
  | {
      readonly kind: 'firewall';
      readonly allow: boolean;
      readonly family: IPFamily;
      readonly to: string;
      /** Undefined: any, and protocols that have none. */
      readonly ports: string | undefined;
    }
  | { readonly kind: 'drop' };

/** The filters of a connection: both NetworkPolicies and the EgressFirewall have to let it pass. */
export type FilterStage = Direction | 'firewall';

/**
 * The filter of one node. Names are made of hashes: a chain, and a set of ranges or of ports, is never another one by the
 * same name, and a set of addresses or endpoints follows Pods.
 */
export interface PolicyPlan {
  /** Always with {@link selfSets}. */
  readonly sets: ReadonlyMap<string, FilterSet>;
  readonly chains: ReadonlyMap<string, readonly FilterRule[]>;
  /** The chain for connections to (ingress) or from (egress, firewall) an address of a Pod of the node. */
  readonly subjects: Readonly<Record<FilterStage, ReadonlyMap<string, string>>>;
}

/** The sets of the node's Pods that are filtered: a Pod always reaches itself. */
export const selfSets = { IPv4: 'self-4', IPv6: 'self-6' } as const;
