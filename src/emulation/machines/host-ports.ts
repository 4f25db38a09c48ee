import type { Host } from '../../host/host.ts';
import { Nft } from '../../node/nftables/nft.ts';

/** A `hostPort` of a container: connections to the node go to the Pod. All addresses are of one family. */
export interface HostPort {
  readonly protocol: 'TCP' | 'UDP';
  readonly hostPort: number;
  /** Of the node; undefined: all of them. */
  readonly hostIP: string | undefined;
  readonly podIP: string;
  readonly containerPort: number;
}

/** Before that of Services (dstnat, -100), as the CNI plugin portmap comes before kube-proxy. */
const priority = -105;

/** The host ports of one node: a table of its own, written as a whole. */
export class HostPorts {
  readonly #nft: Nft;
  /** By uid of the Pod. */
  readonly #ports = new Map<string, readonly HostPort[]>();
  #lastWrite = Promise.resolve();

  constructor(host: Host) {
    this.#nft = new Nft(host);
  }

  /** Forwards these ports for a Pod, and no others of it. @throws {Error} of nft. */
  async set(pod: string, ports: readonly HostPort[]): Promise<void> {
    if (ports.length === 0 && !this.#ports.has(pod)) return;
    if (ports.length === 0) this.#ports.delete(pod);
    else this.#ports.set(pod, ports);
    const write = (): Promise<void> => this.#nft.runText(hostPortTable([...this.#ports.values()].flat()));
    const written = this.#lastWrite.then(write, write);
    this.#lastWrite = written;
    await written;
  }
}

/** The table as a transaction. What is put in are numbers and addresses of the API, which are valid there. */
export function hostPortTable(ports: readonly HostPort[]): string {
  const rules = ports.map(({ protocol, hostPort, hostIP, podIP, containerPort }) => {
    const isV6 = podIP.includes(':');
    const family = isV6 ? 'ip6' : 'ip';
    const to = hostIP === undefined ? `meta nfproto ${isV6 ? 'ipv6' : 'ipv4'}` : `${family} daddr ${hostIP}`;
    const target = isV6 ? `[${podIP}]:${containerPort}` : `${podIP}:${containerPort}`;
    const l4 = protocol.toLowerCase();
    return `fib daddr type local ${to} meta l4proto ${l4} ${l4} dport ${hostPort} dnat ${family} to ${target}`;
  });
  const chain = (name: string): string =>
    `  chain ${name} {\n    type nat hook ${name} priority ${priority};\n${rules.map((rule) => `    ${rule}\n`).join('')}  }`;
  return `table inet host-ports\ndelete table inet host-ports\n${
    rules.length === 0 ? '' : `table inet host-ports {\n${chain('prerouting')}\n${chain('output')}\n}\n`
  }`;
}
