/** The machines of the cluster's LAN: the control plane, two nodes, and one outside that is also the gateway. */
export const machines = {
  cp: { ipv4: '192.168.77.10', ipv6: 'fd77::10' },
  n1: { ipv4: '192.168.77.11', ipv6: 'fd77::11', pods4: '10.244.1.0/24', pods6: 'fd10:244:1::/64' },
  n2: { ipv4: '192.168.77.12', ipv6: 'fd77::12', pods4: '10.244.2.0/24', pods6: 'fd10:244:2::/64' },
  out: { ipv4: '192.168.77.20', ipv6: 'fd77::20' },
} as const;

export type NodeName = 'n1' | 'n2';

export const nodeNames: readonly NodeName[] = ['n1', 'n2'];

/** Where Pods are, and Services. */
export const ranges = {
  pods: ['10.244.0.0/16', 'fd10:244::/32'],
  services: ['10.96.0.0/16', 'fd10:96::/112'],
  dns: '10.96.0.10',
  /** Of the load balancer: in the LAN, where nothing else is. */
  loadBalancers: ['192.168.77.200-192.168.77.230', 'fd77::200-fd77::230'],
} as const;
