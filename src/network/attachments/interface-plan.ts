/**
 * The interfaces that a node makes for a Pod's attachments: CNI's plugins `macvlan` and `bridge`, and
 * `egress-router` (containernetworking/plugins `plugins/main`, multus `pkg/multus`). PURE.
 */
import { formatAddress, type IPFamily, parseAddress } from '../../objects/address.ts';
import { egressRouterPlugin, type EgressRouterPlan, readEgressRouter } from '../egress/egress-router.ts';
import type { AttachedInterface } from './attachments.ts';
import { AttachmentError } from './ipam.ts';
import type { AttachmentAddress, AttachmentRoute } from './ipam.ts';
import { parseMac } from './ipam.ts';
import type { InterfacePlugin } from './network-config.ts';
import { networkStart, writtenGateways } from './network-config.ts';

/** Modes of macvlan: which interfaces on one parent reach each other. */
const macvlanModes = ['bridge', 'private', 'vepa', 'passthru'] as const;

/** `plugins/main/bridge`: `defaultBrName`. */
const defaultBridge = 'cni0';

/** The parent of an interface, on the node. */
export type InterfaceBelow =
  | {
      readonly kind: 'macvlan';
      /** Absent: the interface of the node's default route. */
      readonly master: string | undefined;
      readonly mode: (typeof macvlanModes)[number];
    }
  | {
      readonly kind: 'bridge';
      readonly bridge: string;
      /** The addresses of the bridge itself: it is the gateway. */
      readonly addresses: readonly AttachmentAddress[];
    };

/** An interface to be made in a Pod. */
export interface PlannedInterface {
  readonly name: string;
  readonly mac: string;
  readonly mtu: number | undefined;
  readonly below: InterfaceBelow;
  readonly addresses: readonly AttachmentAddress[];
  /** One a destination in the whole Pod, none of them a default route: the first one is that of the cluster's interface. */
  readonly routes: readonly AttachmentRoute[];
  /** By family: whether the Pod's default route uses this interface instead of the cluster's. */
  readonly defaultGateways: ReadonlyMap<IPFamily, string>;
  /** Packets that arrive at the cluster's interface are redirected, and leave by this one. */
  readonly router: EgressRouterPlan | undefined;
}

/** The plan of a Pod's attachments. */
export interface InterfacePlan {
  readonly interfaces: readonly PlannedInterface[];
  /** The interfaces that are not made, with reasons: for Events of the Pod. */
  readonly missing: readonly string[];
}

/** Plans the interfaces of a Pod. @throws {AttachmentError} for what a plugin fails with. */
export function planInterfaces(attached: readonly AttachedInterface[]): InterfacePlan {
  const interfaces: PlannedInterface[] = [];
  const missing: string[] = [];
  const destinations = new Set(['0.0.0.0/0', '::/0']);
  for (const each of attached) {
    const { network, config, interface: name, mac, selection } = each.attachment;
    const { plugin } = config;
    const why = unsupportedPart(plugin);
    if (why !== undefined) {
      missing.push(`network ${network}: ${why}: there is no interface ${name}`);
      continue;
    }
    for (const type of config.chained) {
      missing.push(`network ${network}: there is no plugin ${type}: it changes nothing of interface ${name}`);
    }
    checkName(name);
    const address = parseMac(mac);
    if (address === undefined) throw new AttachmentError(`address ${mac}: invalid MAC address`);
    const router = plugin.type === egressRouterPlugin ? routerOf(plugin) : undefined;
    const routes = ownRoutes(plugin).filter(({ destination }) => {
      // As the plugins do it: of two routes to one destination the first stays.
      const isNew = !destinations.has(destination);
      destinations.add(destination);
      return isNew;
    });
    const gateways = router === undefined ? selection.defaultRoute : [router.gateway];
    interfaces.push({
      ...{ name, mac: address, mtu: plugin.mtu, routes, router, addresses: each.addresses },
      below: router === undefined ? belowOf(plugin, each.addresses) : belowRouter(router),
      defaultGateways: new Map(
        gateways.map((gateway) => [parseAddress(gateway)?.family ?? 'IPv4', gateway] as const),
      ),
    });
  }
  return { interfaces, missing };
}

function unsupportedPart({ type, vlan }: InterfacePlugin): string | undefined {
  if (!['macvlan', 'bridge', egressRouterPlugin].includes(type)) return `there is no plugin ${type}`;
  return vlan === undefined ? undefined : `there are no VLANs (${vlan})`;
}

function ownRoutes({ ipam }: InterfacePlugin): readonly AttachmentRoute[] {
  return ipam.type === 'none' || ipam.type === 'other' ? [] : ipam.routes;
}

function routerOf({ written }: InterfacePlugin): EgressRouterPlan {
  const plan = readEgressRouter(written);
  if ('problem' in plan) throw new AttachmentError(plan.problem);
  return plan;
}

function belowRouter({ master, mode }: EgressRouterPlan): InterfaceBelow {
  if (master !== undefined) checkName(master);
  return { kind: 'macvlan', master, mode: readMode(mode) };
}

function belowOf(plugin: InterfacePlugin, addresses: readonly AttachmentAddress[]): InterfaceBelow {
  const { type, master, mode = 'bridge', bridge = defaultBridge, isGateway } = plugin;
  for (const each of [bridge, ...(master === undefined ? [] : [master])]) checkName(each);
  if (type === 'macvlan') return { kind: 'macvlan', master, mode: readMode(mode) };
  const written = writtenGateways(plugin.written);
  return { kind: 'bridge', bridge, addresses: isGateway ? gatewaysFor(addresses, written) : [] };
}

/** Kernels take more than this, but programs that are given the name may read it as something else. */
function checkName(name: string): void {
  if (/^[A-Za-z0-9][-A-Za-z0-9_.]{0,14}$/.test(name)) return;
  throw new AttachmentError(`failed to lookup ${JSON.stringify(name)}: not a usable name of an interface`);
}

/** `modeFromString` of the plugin. */
function readMode(text: string): (typeof macvlanModes)[number] {
  const mode = macvlanModes.find((each) => each === text);
  if (mode === undefined) throw new AttachmentError(`unknown macvlan mode: "${text}"`);
  return mode;
}

/** The gateway of each address: the one that is written, else the first address of its network (`calcGatewayIP`). */
function gatewaysFor(
  addresses: readonly AttachmentAddress[],
  written: readonly AttachmentAddress[],
): readonly AttachmentAddress[] {
  return addresses.flatMap(({ family, address, prefixLength }) => {
    const value = parseAddress(address)?.value;
    if (value === undefined) return [];
    const start = networkStart(family, value, prefixLength);
    const own = written.find((each) => {
      const gateway = parseAddress(each.address);
      return gateway?.family === family && networkStart(family, gateway.value, prefixLength) === start;
    });
    return [{ family, prefixLength, address: own?.address ?? formatAddress(family, start + 1n) }];
  });
}
