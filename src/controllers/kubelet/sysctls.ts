import type { Pod } from '../../objects/types/core.generated.ts';

/**
 * What a kubelet without `--allowed-unsafe-sysctls` lets Pods set (pkg/kubelet/sysctl/safe_sysctls.go). Every kernel with
 * the namespaces that Pods need here has them.
 */
const safeSysctls: ReadonlySet<string> = new Set([
  'kernel.shm_rmid_forced',
  ...[
    ...['ip_local_port_range', 'ip_local_reserved_ports', 'ip_unprivileged_port_start', 'ping_group_range'],
    ...['tcp_fin_timeout', 'tcp_keepalive_intvl', 'tcp_keepalive_probes', 'tcp_keepalive_time'],
    ...['tcp_notsent_lowat', 'tcp_rmem', 'tcp_slow_start_after_idle', 'tcp_syncookies', 'tcp_wmem'],
  ].map((name) => `net.ipv4.${name}`),
]);

/** With dots between its parts: the first dot or slash of a name says which of the two is (`NormalizeName`). */
function normalized(name: string): string {
  return /[./]/.exec(name)?.[0] === '/' ? swapped(name) : name;
}

function swapped(name: string): string {
  return name.replaceAll(/[./]/g, (each) => (each === '.' ? '/' : '.'));
}

/** Why a kubelet does not take a Pod with these sysctls (pkg/kubelet/sysctl/allowlist.go); undefined: it does. */
export function forbiddenSysctl({ spec }: Pod): string | undefined {
  const names = (spec.securityContext?.sysctls ?? []).map(({ name }) => normalized(name));
  const forbidden = names.find((name) => !safeSysctls.has(name));
  return forbidden === undefined ? undefined : `forbidden sysctl: "${forbidden}" not allowlisted`;
}

/** The sysctls of a Pod that are of a kernel namespace: values by paths below `/proc/sys`. */
export function sysctlsOf({ spec }: Pod, namespace: 'net' | 'ipc'): ReadonlyMap<string, string> {
  const all = (spec.securityContext?.sysctls ?? []).map(
    ({ name, value }) => [swapped(normalized(name)), value] as const,
  );
  return new Map(all.filter(([path]) => path.startsWith('net/') === (namespace === 'net')));
}
