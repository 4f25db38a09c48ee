import { getSystemErrorMessage, getSystemErrorName } from 'node:util';
import { errno, load } from 'koffi';

/** Calls of libc that Node.js does not have. Programs that may do without load this file when they call. */

const libc = load(null);
const calls = {
  setns: libc.func('int setns(int fd, int nstype)'),
  socket: libc.func('int socket(int domain, int type, int protocol)'),
  bind: libc.func('int bind(int fd, const void *address, unsigned int length)'),
  setsockopt: libc.func(
    'int setsockopt(int fd, int level, int name, const void *value, unsigned int length)',
  ),
};

/** Constants of Linux on all its architectures that Node.js runs on. */
export const linux = {
  cloneNewNet: 0x4000_0000,
  afInet: 2,
  afInet6: 10,
  afNetlink: 16,
  sockStream: 1,
  sockDgram: 2,
  sockRaw: 3,
  sockNonBlockAndCloseOnExec: 0o2004000,
  solSocket: 1,
  soReuseAddr: 2,
  soReceiveBuffer: 8,
  soReceiveBufferForce: 33,
  ipprotoIpv6: 41,
  ipv6Only: 26,
} as const;

/** @returns what the call returns. @throws the system's error. */
export function call(name: keyof typeof calls, ...args: readonly unknown[]): number {
  const result: unknown = calls[name](...args);
  if (typeof result === 'number' && result >= 0) return result;
  const number = errno();
  const code = getSystemErrorName(-number);
  throw Object.assign(new Error(`${name} ${code}: ${getSystemErrorMessage(-number)}`), {
    code,
    errno: -number,
    syscall: name,
  });
}

/** Sets an option of a socket to a whole number. @throws the system's error. */
export function setOption(descriptor: number, level: number, name: number, value: number): void {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  call('setsockopt', descriptor, level, name, bytes, bytes.length);
}
