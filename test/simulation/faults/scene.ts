import type { Choices } from './random.ts';

/** What kind of cluster a seed gets. */
export interface Scene {
  /** Who gives Services their addresses and node ports. */
  readonly allocation: 'server' | 'controller';
  /** Primary first. */
  readonly families: readonly ('IPv4' | 'IPv6')[];
  /** `--service-cluster-ip-range` */
  readonly serviceRange: string;
  readonly nodePorts: { readonly first: number; readonly last: number };
  /** Whether the garbage collector and the controller of namespaces run: they watch all there is. */
  readonly collects: boolean;
  /** Whether another installation allocates beside the elected one, without an election. */
  readonly hasRival: boolean;
}

const ranges = {
  single: ['10.96.0.0/16', '10.96.0.0/28'],
  dual: ['10.96.0.0/24,fd00:96::/112', '10.96.0.0/28,fd00:96::/112', 'fd00:96::/124,10.96.0.0/24'],
};

/** Chooses a cluster: one in which addresses and ports run out, or not. */
export function chooseScene(choices: Choices): Scene {
  const allocation = choices.chance(0.5) ? 'server' : 'controller';
  const serviceRange = choices.pick(choices.chance(0.4) ? ranges.dual : ranges.single);
  return {
    allocation,
    families: serviceRange.split(',').map((text) => (text.includes(':') ? 'IPv6' : 'IPv4')),
    serviceRange,
    nodePorts: { first: 30000, last: choices.chance(0.3) ? 30011 : 30099 },
    collects: choices.chance(0.15),
    hasRival: allocation === 'controller' && choices.chance(0.4),
  };
}
