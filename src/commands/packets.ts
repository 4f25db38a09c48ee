import { askControl } from '../emulation/control-socket.ts';
import { run } from '../host/local-host.ts';
import type { PacketPlace, PlaceOfPackets } from '../view/trace-connection.ts';

/** A connection may take so long. */
const timeoutMs = 2000;

/** Prints the result of a connection to the address and port that follow. */
const program = `
const [address, port] = process.argv.slice(1);
const socket = require('node:net').connect({ host: address, port: Number(port) });
const end = (outcome) => { process.stdout.write(outcome); socket.destroy(); process.exit(0); };
socket.once('connect', () => end('connected'));
socket.once('error', ({ code }) => end(code === 'ETIMEDOUT' ? 'dropped' : 'refused'));
setTimeout(() => end('dropped'), ${timeoutMs});
`;

/**
 * Enters a place of the cluster network of an `up`, to open connections as its programs would.
 *
 * @param socket of the `up` ({@link controlSocketPath}).
 * @throws {Error} where there is no such network, or no such place in it.
 */
export async function enterForPackets(socket: string, where: PacketPlace): Promise<PlaceOfPackets> {
  const place = await askControl(socket, where);
  return {
    open: async (address, port) => {
      const argv = [...place.argv, process.execPath, '-e', program, address, String(port)];
      const { stdout, stderr } = await run(argv[0] ?? '', argv.slice(1));
      if (stdout === 'connected' || stdout === 'refused' || stdout === 'dropped') return stdout;
      throw new Error(`--check: no connection was tried: ${stderr.trim()}`);
    },
    end: () => place.end(),
  };
}
