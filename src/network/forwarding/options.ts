import type { ParsedAddress, ParsedCidr } from '../../objects/address.ts';
import type { Labels } from '../../objects/labels/label-requirement.ts';
import type { IPFamily } from '../../objects/address.ts';

/** The node that a plan is for. */
export interface ForwardingNode {
  readonly name: string;
  /** Of the Node object; only `topology.kubernetes.io/zone` is read. */
  readonly labels: Labels;
  /** The node's own address, one of each family: what `--nodeport-addresses=primary` means. */
  readonly primaryAddresses: readonly ParsedAddress[];
  /** The addresses of all interfaces. */
  readonly interfaceAddresses: readonly ParsedAddress[];
}

/** The forwarding options of the command line; the flags are kube-proxy's. */
export interface ForwardingOptions {
  /** The families that are served. */
  readonly families: readonly IPFamily[];
  /** `--masquerade-all`: masquerade what goes to cluster IPs, from wherever. */
  readonly masqueradeAll: boolean;
  /** `--nodeport-addresses`. With CIDRs of one family only, the other answers on all addresses, as kube-proxy has it. */
  readonly nodePortAddresses: 'primary' | readonly ParsedCidr[];
  /** The ranges of cluster IPs, of `--service-cidr` or ServiceCIDR objects. */
  readonly serviceCIDRs: readonly ParsedCidr[];
  /**
   * `--detect-local-mode`. `cidr` takes the CIDRs of `--cluster-cidr` or of the node; in a family without one, Pods
   * cannot be recognised. Undefined: in no family.
   */
  readonly podDetection:
    | { readonly by: 'cidr'; readonly cidrs: readonly ParsedCidr[] }
    | { readonly by: 'bridge'; readonly interface: string }
    | { readonly by: 'interfacePrefix'; readonly prefix: string }
    | undefined;
  /** The feature gate AllowServiceExternalIPs: without it, `spec.externalIPs` has no effect. */
  readonly allowExternalIPs: boolean;
}
