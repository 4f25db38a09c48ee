import type { Host } from '../../../src/host/host.ts';

/** What the nft that stays is run as. */
export const residentNft = 'nft -j -i';

/** The processes of a machine, and of those that share its PID namespace, whose command begins so. */
export async function processesOf(host: Host, command: string): Promise<readonly string[]> {
  const script =
    'for p in /proc/[0-9]*; do tr "\\0" " " < "$p/cmdline" 2>/dev/null | grep -q "^$0 " && echo "${p#/proc/}"; done; true';
  const { stdout } = await host.exec('sh', ['-c', script, command]);
  return stdout.split('\n').filter((line) => line !== '');
}
