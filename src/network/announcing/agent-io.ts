import type { Node } from '../../objects/types/core.generated.ts';
import type { AnnouncerLease } from './agent-report.ts';
import type {
  AnnouncementRefusal,
  Announcer,
  AnnouncerInterface,
  PoolAnnouncement,
} from './announcement-plan.ts';
import type { AnnouncedPool, ServiceAddress } from './assigned-addresses.ts';

/** The objects that announcing depends on, besides the Leases of agents. */
export interface AnnouncingView {
  /** The addresses of Services and of EgressIPs, by their canonical text; of both, it is the Service's. */
  readonly addresses: ReadonlyMap<string, ServiceAddress>;
  /** In their order. */
  readonly pools: readonly AnnouncedPool[];
  /** By name. */
  readonly nodes: ReadonlyMap<string, Node>;
  /**
   * Whether agents need each other's Leases: there are addresses, or EgressIPs with addresses in known networks of
   * nodes.
   */
  readonly isNeeded: boolean;
  /** The interfaces that pools name; none while the Leases are not needed. */
  readonly namedInterfaces: ReadonlySet<string>;
}

/** The addresses by which other nodes reach a node. */
export function internalAddresses({ status }: Node): readonly string[] {
  return (status.addresses ?? []).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []));
}

/** Layer 2 of a node as it is at a moment. */
export interface KernelState {
  /** The addresses that are announced, canonical, with the interfaces on which they are. */
  readonly announced: ReadonlyMap<string, readonly string[]>;
  /** Those that were announced to neighbours: the node that had them before may withdraw them. */
  readonly confirmed: readonly string[];
  readonly refused: readonly AnnouncementRefusal[];
  /** Interfaces with a link on which addresses can be announced. */
  readonly interfaces: readonly AnnouncerInterface[];
  /** When neighbours are to hear of addresses again, monotonic; infinite: there are none. */
  readonly announceAgainAtMs: number;
}

/** An address that a node is to announce by layer 2. */
export interface AddressToAnnounce {
  /** Canonical. */
  readonly address: string;
  readonly announcement: PoolAnnouncement;
  /** Names of the interfaces to announce it on. */
  readonly interfaces: readonly string[];
}

/** What an agent hears. Each `kernel` and `sessions` replaces the one before. */
export type AgentEvent =
  /** The objects as they are now. The first one begins the agent: Leases and `kernel` come before. */
  | { readonly on: 'view'; readonly view: AnnouncingView }
  /** A Lease of an agent was seen new or changed, the own one too; undefined: it is gone. */
  | { readonly on: 'lease'; readonly node: string; readonly lease: AnnouncerLease | undefined }
  /** Comes before each `tick`, and before the end of each work in the kernel. */
  | { readonly on: 'kernel'; readonly kernel: KernelState }
  /** The BGPPeers with which a session is established. */
  | { readonly on: 'sessions'; readonly established: readonly string[] }
  /** The action of the name has ended, whether it succeeded or not. */
  | { readonly on: 'looked' | 'announced' | 'stayed' }
  /** @param leaseSeconds the duration that is written now: never less than before. */
  | { readonly on: 'renewed'; readonly version: string; readonly leaseSeconds: number }
  /** It may have been written nevertheless. */
  | { readonly on: 'renewalFailed' }
  /** @param isDone false: the request failed, or the agent has renewed its Lease. */
  | { readonly on: 'released'; readonly node: string; readonly isDone: boolean }
  /** Another agent asks whether it may keep addresses. @param from where the datagram came from. */
  | {
      readonly on: 'asked';
      readonly node: string;
      readonly from: string;
      readonly addresses: readonly string[];
      readonly ticket: string;
    }
  /**
   * Another agent consents to a question of this process.
   *
   * @param except the addresses to withdraw: the agent that consents has them.
   */
  | {
      readonly on: 'consented';
      readonly node: string;
      readonly from: string;
      readonly askedAtMs: number;
      readonly except: readonly string[];
    }
  /** Time has passed: comes at {@link AnnouncingAgent.deadlineMs}, or later. */
  | { readonly on: 'tick' }
  /** The agent is to end in an orderly way. */
  | { readonly on: 'leave' };

/**
 * What the owner of an agent begins to do, in this order, without waiting for one before the next. Of `look`, `announce`,
 * `renew`, `release` and `stay`, an event reports their end; no action is given twice at once.
 */
export type AgentAction =
  /** Read what the kernel has: addresses end there by themselves. Ends in `looked`. */
  | { readonly do: 'look' }
  /** Write the own Lease, held by this node. Ends in `renewed` or `renewalFailed`. @param leaseSeconds at least. */
  | { readonly do: 'renew'; readonly report: string; readonly leaseSeconds: number }
  /** Write the own Lease without a holder: others take over. Ends in `released`. */
  | { readonly do: 'releaseOwn'; readonly report: string }
  /** Write the Lease of another agent without a holder, if it has that version. Ends in `released`. */
  | { readonly do: 'release'; readonly node: string; readonly version: string }
  /** Ask an agent for its consent. @param to the address of its node. */
  | {
      readonly do: 'ask';
      readonly to: string;
      readonly addresses: readonly string[];
      readonly askedAtMs: number;
    }
  | {
      readonly do: 'consent';
      readonly to: string;
      readonly ticket: string;
      readonly except: readonly string[];
    }
  /**
   * Make layer 2 equal to this, and refresh the lifetimes in the kernel, each at the moment as long as
   * {@link AnnouncingAgent.lifetimeSeconds} says. Ends in `announced`.
   */
  | { readonly do: 'announce'; readonly announcement: Layer2Plan }
  /**
   * Announce routes by BGP, or withdraw them.
   *
   * @param others the nodes that announce, too, where this one is being drained.
   */
  | { readonly do: 'routes'; readonly mayAnnounce: boolean; readonly others: readonly Announcer[] }
  /** Let all addresses live on for so long without refreshes. Ends in `stayed`. */
  | { readonly do: 'stay'; readonly seconds: number }
  | { readonly do: 'log'; readonly fields: Readonly<Record<string, unknown>>; readonly message: string }
  /** End layer 2: these addresses live on for so long, others end now. There is no action after it. */
  | { readonly do: 'end'; readonly addresses: ReadonlySet<string>; readonly seconds: number };

/** What a node is to announce by layer 2. */
export interface Layer2Plan {
  readonly addresses: readonly AddressToAnnounce[];
  /** Names of interfaces on which this node may have to take over: it prepares them. */
  readonly standbyInterfaces: ReadonlySet<string>;
  /** Those of the addresses that another node is to have, once it announces them. */
  readonly leaving: ReadonlySet<string>;
}

/** Before anything is known. */
export const emptyView: AnnouncingView = {
  ...{ addresses: new Map(), pools: [], nodes: new Map(), isNeeded: false, namedInterfaces: new Set() },
};

export const emptyKernel: KernelState = {
  ...{
    announced: new Map(),
    confirmed: [],
    refused: [],
    interfaces: [],
    announceAgainAtMs: Number.POSITIVE_INFINITY,
  },
};
