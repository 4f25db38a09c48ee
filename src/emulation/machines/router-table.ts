import type { EgressRouterPlan } from '../../network/egress/egress-router.ts';

/**
 * The rules of a router's Pod as a transaction of nft, with the plugin's own table and chains. What is put in are numbers
 * and addresses that were read as such, and the name of an interface that the kernel has taken.
 *
 * @param device the interface of the router.
 */
export function routerTable(
  { family, address, redirects }: EgressRouterPlan,
  cluster: string,
  device: string,
): string {
  const table = `${family === 'IPv4' ? 'ip' : 'ip6'} egress_cni`;
  const rules = redirects.map(({ match, destination, targetPort }) => {
    const port = match === undefined ? '' : ` ${match.protocol.toLowerCase()} dport ${match.port}`;
    const host = targetPort !== undefined && family === 'IPv6' ? `[${destination}]` : destination;
    const target = targetPort === undefined ? host : `${host}:${targetPort}`;
    return `    iifname "${cluster}"${port} dnat to ${target}\n`;
  });
  return [
    `table ${table}\ndelete table ${table}\ntable ${table} {\n`,
    `  chain prerouting {\n    type nat hook prerouting priority -100;\n${rules.join('')}  }\n`,
    `  chain postrouting {\n    type nat hook postrouting priority 100;\n`,
    `    oifname "${device}" snat to ${address}\n  }\n}\n`,
  ].join('');
}
