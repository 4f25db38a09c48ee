/** The configuration of a network: CNI's JSON, of one plugin or of a list (multus `pkg/types/conf.go`, CNI's specification). */
import { isRecord, type JsonRecord, parseRecord } from '../../objects/json.ts';
import { at, listAt, numberAt, textAt } from '../../objects/read.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/attachments.ts';
import { egressRouterPlugin, readEgressRouter } from '../egress/egress-router.ts';
import { AttachmentError } from './errors.ts';
import { type Ipam, readDNS, readIpam } from './ipam.ts';

/** The plugin that makes the interface: that of a configuration of one, the first of a list. */
export interface InterfacePlugin {
  /** `macvlan`, `bridge` … */
  readonly type: string;
  /** The node's interface below; absent: that of the node's default route. */
  readonly master?: string;
  /** Of `bridge`: the node's bridge. */
  readonly bridge?: string;
  /** Of `macvlan`: `bridge`, `private`, `vepa` or `passthru`; of `ipvlan`: `l2` … */
  readonly mode?: string;
  /** Of `bridge` and `vlan`: 1 to 4094. */
  readonly vlan?: number;
  readonly mtu?: number;
  /** Of `bridge`: the bridge gets the gateway's address. */
  readonly isGateway: boolean;
  /** Of `bridge`: the Pod's default route goes over the bridge, which is the gateway. */
  readonly isDefaultGateway: boolean;
  readonly ipam: Ipam;
  readonly dns: JsonRecord;
  /** All members, for plugins that have others. */
  readonly written: JsonRecord;
}

/** A network that can be attached. */
export interface NetworkConfig {
  /** Its own, else that of the NetworkAttachmentDefinition. */
  readonly name: string;
  readonly plugin: InterfacePlugin;
  /** Types of the plugins behind it: `tuning`, `portmap`, … */
  readonly chained: readonly string[];
}

/** The folder in which multus finds the configuration of a NetworkAttachmentDefinition without one. */
const confDir = '/etc/cni/multus/net.d';

/**
 * Reads a network's configuration.
 *
 * @throws {AttachmentError} for one that multus or the plugin would fail with.
 */
export function readNetworkConfig({ metadata, spec }: NetworkAttachmentDefinition): NetworkConfig {
  const text = spec?.config ?? '';
  // There are no files of nodes here.
  if (text === '') {
    throw new AttachmentError(`GetCNIConfig: err in GetCNIConfigFromFile: No networks found in ${confDir}`);
  }
  const config = parseRecord(text);
  if (config === undefined) {
    throw new AttachmentError(
      'GetCNIConfig: err in getCNIConfigFromSpec: failed to unmarshal Spec.Config: invalid JSON',
    );
  }
  const own = textAt(config, 'name');
  const name = own === '' ? (metadata.name ?? '') : own;
  const isList = textAt(config, 'type') === '';
  const plugins = isList ? listAt(config, 'plugins') : [config];
  const [first, ...rest] = plugins;
  if (first === undefined) {
    throw new AttachmentError(
      `LoadDelegateNetConf: delegate must have the 'type' or 'plugin' field, or plugins that have it`,
    );
  }
  return { name, plugin: readPlugin(first), chained: rest.map((plugin) => textAt(plugin, 'type')) };
}

function readPlugin(written: unknown): InterfacePlugin {
  const type = textAt(written, 'type');
  if (!isRecord(written) || type === '') {
    throw new AttachmentError(`LoadDelegateNetConfList: a plugin delegate must have the 'type' field`);
  }
  const mtu = numberAt(written, 'mtu');
  const vlan = numberAt(written, 'vlan') || numberAt(written, 'vlanId');
  const text = (member: 'master' | 'bridge' | 'mode'): object => {
    const found = textAt(written, member);
    return found === '' ? {} : { [member]: found };
  };
  return {
    type,
    ...text('master'),
    ...text('bridge'),
    ...text('mode'),
    ...(vlan === 0 ? {} : { vlan }),
    ...(mtu === 0 ? {} : { mtu }),
    isDefaultGateway: at(written, 'isDefaultGateway') === true,
    isGateway: at(written, 'isGateway') === true || at(written, 'isDefaultGateway') === true,
    ipam: type === egressRouterPlugin ? routerAddresses(written) : readIpam(written),
    dns: readDNS(written),
    written,
  };
}

/** The plugin has its address beside `ipam`, and the Pod's default route. */
function routerAddresses(written: JsonRecord): Ipam {
  const router = readEgressRouter(written);
  if ('problem' in router) throw new AttachmentError(router.problem);
  const { family, address, prefixLength, gateway } = router;
  const destination = family === 'IPv4' ? '0.0.0.0/0' : '::/0';
  return {
    type: 'static',
    addresses: [{ family, address, prefixLength }],
    routes: [{ destination, gateway }],
  };
}
