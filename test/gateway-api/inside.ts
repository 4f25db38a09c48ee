/**
 * Runs a program on the machine outside of a cluster network, where the API server of `up` is not reached: its port of
 * 127.0.0.1 is led there through a socket in the file system, which has no network.
 *
 * Arguments: the socket, the port, the program and its arguments.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** Passes on what either side sends, until one of them ends. */
export function join(a: Socket, b: Socket): void {
  a.pipe(b).pipe(a);
  for (const [one, other] of [
    [a, b],
    [b, a],
  ] as const) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroy());
  }
}

if (import.meta.main) {
  const [socketPath = '', port = '', program = '', ...args] = process.argv.slice(2);
  const server = createServer((client) => join(client, connect(socketPath)));
  server.listen(Number(port), '127.0.0.1');
  await once(server, 'listening');
  const child = spawn(program, args, { stdio: 'inherit' });
  await once(child, 'exit');
  process.exit(child.exitCode ?? 1);
}
