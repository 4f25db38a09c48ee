import { closeSync } from 'node:fs';
import type { NetlinkGroups } from './host.ts';
import { call, linux, setOption } from './libc.ts';

/** {@link NetlinkHost.netlink} in the network namespace that this thread is in. */
export function openNetlink({ protocol, groups, receiveBytes }: NetlinkGroups): number {
  const kind = linux.sockRaw | linux.sockNonBlockAndCloseOnExec;
  const descriptor = call('socket', linux.afNetlink, kind, protocol);
  try {
    try {
      setOption(descriptor, linux.solSocket, linux.soReceiveBufferForce, receiveBytes);
    } catch {
      // Without rights over the machine, as many as net.core.rmem_max has.
      setOption(descriptor, linux.solSocket, linux.soReceiveBuffer, receiveBytes);
    }
    // `struct sockaddr_nl`.
    const address = Buffer.alloc(12);
    address.writeUInt16LE(linux.afNetlink, 0);
    address.writeUInt32LE(groups, 8);
    call('bind', descriptor, address, address.length);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}
