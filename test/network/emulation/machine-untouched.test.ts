import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { forMakers } from '../support/for-makers.ts';
import { asUser } from '../support/gate.ts';

const main = join(import.meta.dirname, '../../../src/main.js');

/**
 * A machine of its own around `up`: a network namespace with an interface, an address and a default route, by which
 * everything would leave that has no place in the cluster network. Its counters count nothing else.
 */
const machine = `set -e
ip link set lo up
ip link add uplink type veth peer name away
for link in uplink away; do echo 1 >/proc/sys/net/ipv6/conf/$link/disable_ipv6; ip link set $link up; done
ip address add 203.0.113.10/24 dev uplink
ip route add default via 203.0.113.1
look() { ip route show table all; ip rule; ip -o address; nft list ruleset; grep uplink: /proc/net/dev; }
look >"$HOME/before"
"$@"
look >"$HOME/after"
diff "$HOME/before" "$HOME/after"`;

/** What Pods, nodes and machines send that is for no one in the cluster. */
const inside = `for place in 1.1.1.1 203.0.113.1 203.0.113.10 192.168.1.1 172.17.0.1; do
  curl -s --connect-timeout 1 "http://$place" && exit 1
  echo x >"/dev/udp/$place/9" || true
done
getent hosts example.com && exit 1
ip route show default`;

forMakers('the machine around `servicenet up`', (maker) => {
  it('gets no packet from the cluster network, no route and no rule', () => {
    const words = [
      ...(maker === 'user' ? asUser : []),
      ...['unshare', ...(maker === 'user' ? ['--user', '--map-root-user'] : []), '--net', '--mount'],
      ...['sh', '-c', `HOME=$(mktemp -d); export HOME; ${machine}`, 'sh'],
      ...[process.execPath, main, 'up', '--port', '0', '--nodes', '1', '--network', 'on', '--inside', '--'],
      ...['bash', '-c', inside],
    ];
    const [program = '', ...args] = words;
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
    expect(`${stdout}${stderr}`).toContain('default via 169.254.1.1 dev eth0');
    expect(status, `${stdout}${stderr}`).toBe(0);
  });
});
