/**
 * Where a router Pod leads what comes to it (the CNI plugin `egress-router`, openshift/egress-router-cni
 * `pkg/macvlan/macvlan.go`). PURE.
 *
 * The plugin gives the Pod an interface with an address of its own, and the Pod's default route. What comes in by the
 * cluster's interface is translated by the first rule that has its protocol and port; without one it goes to the fallback,
 * if there is one. Else it is for the Pod itself, where nothing listens: it is refused. What leaves by the interface has
 * the router's address.
 */
import { type IPFamily, parseAddress, parseCidr } from '../../objects/address.ts';
import type { JsonRecord } from '../../objects/json.ts';
import { at, listAt, textAt, textsAt } from '../../objects/json.ts';

/** The `type` of the plugin in a configuration. */
export const egressRouterPlugin = 'egress-router';

/** Protocols of rules. */
export type RedirectProtocol = 'TCP' | 'UDP' | 'SCTP';

/** One rule of a router; the first that matches decides. */
export interface Redirect {
  /** Absent: all protocols and ports. */
  readonly match?: { readonly protocol: RedirectProtocol; readonly port: number };
  /** Canonical, of the router's family. */
  readonly destination: string;
  /** 1 to 65535; absent: the port stays. */
  readonly targetPort?: number;
}

/** The plugin's settings of a Pod. */
export interface EgressRouterPlan {
  readonly family: IPFamily;
  /** The interface's address, with its prefix length; the address alone is the source of outgoing packets. */
  readonly address: string;
  readonly prefixLength: number;
  /** The next hop of the default route. */
  readonly gateway: string;
  readonly redirects: readonly Redirect[];
  /** `interfaceArgs`: the node's interface, absent that of its default route; the mode of macvlan, in lower case. */
  readonly master?: string;
  readonly mode: string;
}

/** Where a connection to a router's Pod goes. */
export type RedirectVerdict =
  | {
      readonly verdict: 'redirected';
      readonly destination: string;
      readonly port: number;
      readonly by: 'rule' | 'fallback';
    }
  | { readonly verdict: 'rejected' };

/** Reads a configuration of the plugin. @returns the plan, or why the plugin fails: a message for an Event of the Pod. */
export function readEgressRouter(config: JsonRecord): EgressRouterPlan | { readonly problem: string } {
  const [text = ''] = textsAt(config, 'ip', 'addresses');
  const cidr = parseCidr(text);
  const address = parseAddress(text.slice(0, text.indexOf('/')));
  if (cidr === undefined || address === undefined) {
    return { problem: `unable to parse IP address "${text}": invalid CIDR address` };
  }
  const { family } = cidr;
  const ofFamily = (written: string): string | undefined => {
    const parsed = parseAddress(written);
    return parsed?.family === family ? parsed.canonical : undefined;
  };
  const gatewayText = textAt(config, 'ip', 'gateway');
  const gateway = ofFamily(gatewayText);
  if (gateway === undefined) {
    return { problem: `no route to the gateway "${gatewayText}": it is no ${family} address` };
  }
  const interfaceType = textAt(config, 'interfaceType') || 'macvlan';
  if (interfaceType !== 'macvlan') {
    return { problem: `there is no interfaceType "${interfaceType}": only macvlan` };
  }
  const redirects: Redirect[] = [];
  for (const each of listAt(config, 'ip', 'destinations')) {
    const redirect = readDestination(String(each), ofFamily);
    if (redirect === undefined) {
      return { problem: `invalid destination "${String(each)}" of a router with an ${family} address` };
    }
    redirects.push(redirect);
  }
  const fallbackText = textAt(config, 'ip', 'fallbackIP');
  if (fallbackText !== '') {
    const destination = ofFamily(fallbackText);
    if (destination === undefined) {
      return { problem: `invalid fallbackIP "${fallbackText}" of a router with an ${family} address` };
    }
    redirects.push({ destination });
  }
  const master = at(config, 'interfaceArgs', 'master');
  return {
    ...{ family, address: address.canonical, prefixLength: cidr.prefixLength, gateway, redirects },
    ...(typeof master === 'string' && master !== '' ? { master } : {}),
    mode: textAt(config, 'interfaceArgs', 'mode') || 'bridge',
  };
}

/** `<port> <protocol> <address>[ <target port>]`, or an address alone: everything goes there. */
function readDestination(
  text: string,
  ofFamily: (written: string) => string | undefined,
): Redirect | undefined {
  const words = text.split(' ');
  if (words.length === 1) {
    const destination = ofFamily(text);
    return destination === undefined ? undefined : { destination };
  }
  const [portText = '', protocolText = '', addressText = '', targetText] = words;
  const port = portOf(portText);
  const protocol = (['TCP', 'UDP', 'SCTP'] as const).find((known) => known === protocolText.toUpperCase());
  const destination = ofFamily(addressText);
  const targetPort = targetText === undefined ? undefined : portOf(targetText);
  if (words.length > 4 || port === undefined || protocol === undefined || destination === undefined) {
    return undefined;
  }
  if (targetText !== undefined && targetPort === undefined) return undefined;
  return { match: { protocol, port }, destination, ...(targetPort === undefined ? {} : { targetPort }) };
}

function portOf(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65535 ? port : undefined;
}

/** Where a connection to a port of the router's Pod goes. */
export function redirectOf(
  { redirects }: Pick<EgressRouterPlan, 'redirects'>,
  protocol: RedirectProtocol,
  port: number,
): RedirectVerdict {
  const found = redirects.find(
    ({ match }) => match === undefined || (match.protocol === protocol && match.port === port),
  );
  if (found === undefined) return { verdict: 'rejected' };
  return {
    verdict: 'redirected',
    destination: found.destination,
    port: found.targetPort ?? port,
    by: found.match === undefined ? 'fallback' : 'rule',
  };
}
